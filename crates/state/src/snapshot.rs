//! A frozen state, for other threads and for databases that another process writes.

use std::fmt;
use std::sync::Arc;

use arbor_store::Reader;
use arbor_versions::{DirLock, DirReader, Snapshot};

use crate::head::Head;
use crate::recovery::check_recovered;
use crate::{Network, StateError, Tree};

/// A version and the retained ones before it, which stay as they are while later ones are committed, flushed and pruned.
///
/// Made by [`State::snapshot`](crate::State::snapshot) beside a writer in this process, or opened, without any
/// lock, on a store that another process may write meanwhile. Any number of threads may read it.
#[derive(Clone)]
pub struct StateSnapshot {
    pub(crate) versions: Snapshot,
    pub(crate) tree: Tree,
}

impl fmt::Debug for StateSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StateSnapshot")
            .field(&self.reader())
            .finish()
    }
}

impl StateSnapshot {
    /// Opens the state of a network for reading alone, at its last flushed version. `dir` is the directory that the head
    /// record lies in, looked at before the store was opened; none for a store in memory.
    ///
    /// # Errors
    /// A store of another tree, chain, hash or layout; an older copy of the store than the head record knows; a database
    /// whose load or recovery did not finish.
    pub fn open(
        base: Arc<dyn Reader>,
        dir: Option<DirReader>,
        tree: Tree,
        network: Network,
    ) -> Result<Self, StateError> {
        let state = Self::open_unfinished(base, dir, tree, network)?;
        check_recovered(state.reader().meta())?;
        Ok(state)
    }

    /// Like [`open`](Self::open), but opens a database whose recovery did not finish, too: its head record can be written
    /// anew, and what it holds is a part of a state.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_unfinished(
        base: Arc<dyn Reader>,
        dir: Option<DirReader>,
        tree: Tree,
        network: Network,
    ) -> Result<Self, StateError> {
        let versions = Snapshot::open(base, dir, &tree.identity(network), tree.kind().tables)?;
        Ok(Self { versions, tree })
    }

    /// The latest version and the retained ones before it.
    pub fn reader(&self) -> Head<'_> {
        Head::new(self.versions.view(), &self.tree)
    }

    /// Writes the head record of a directory anew from what the store there says, as [`Snapshot::rebuild_head_file`] does.
    ///
    /// # Errors
    /// As there.
    pub fn rebuild_head_file(&self, lock: &DirLock, network: Network) -> Result<(), StateError> {
        let identity = self.tree.identity(network);
        Ok(self.versions.rebuild_head_file(lock, &identity)?)
    }
}

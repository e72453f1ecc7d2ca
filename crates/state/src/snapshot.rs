//! A frozen state, for other threads and for databases that another process writes.

use std::fmt;
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use arbor_store::Reader;
use arbor_verify::Proof;
use arbor_versions::{DirLock, DirReader, Meta, Snapshot, TableSpec};

use crate::head::Head;
use crate::recovery::check_recovered;
use crate::rewinds::{Rewinds, Scratch};
use crate::{Network, StateError, Tree};

/// A version and the retained ones before it, which stay as they are while later ones are committed, flushed and pruned.
///
/// Made by [`State::snapshot`](crate::State::snapshot) beside a writer in this process, or opened, without any
/// lock, on a store that another process may write meanwhile. Any number of threads may read it.
#[derive(Clone)]
pub struct StateSnapshot {
    pub(crate) versions: Snapshot,
    pub(crate) tree: Tree,
    /// How versions are read that lie too far back for memory, if there is a way.
    pub(crate) rewinds: Option<Arc<Rewinds>>,
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
        Ok(Self {
            versions,
            tree,
            rewinds: None,
        })
    }

    /// Has versions that lie too far back for memory made in stores of their own. Some of them stay for those that ask for earlier ones,
    /// until the snapshot is dropped.
    #[must_use]
    pub fn with_scratch(self, scratch: Scratch) -> Self {
        let rewinds = Rewinds::new(scratch, self.versions.clone(), self.tree.clone());
        Self {
            rewinds: Some(Arc::new(rewinds)),
            ..self
        }
    }

    /// The latest version; `None` before genesis.
    pub fn meta(&self) -> Option<&Meta> {
        self.versions.view().head()
    }

    /// The root of the latest version; that of the empty tree before genesis.
    pub fn root(&self) -> B256 {
        self.reader().root()
    }

    /// Proves an account and some of its slots at the latest version, present or absent.
    ///
    /// # Errors
    /// A state without any version; the store's errors.
    pub fn prove(&self, address: Address, slots: &[U256]) -> Result<Box<dyn Proof>, StateError> {
        self.reader().latest()?.prove(address, slots)
    }

    /// The latest version and the retained ones before it.
    pub fn reader(&self) -> Head<'_> {
        Head::new(self.versions.view(), &self.tree).rewound_by(self.rewind())
    }

    /// The first block whose version has the root of the tree: 0, or where the state [arrived](crate::State::arrived) from another tree.
    ///
    /// # Errors
    /// A record of what the database is that cannot be read.
    pub fn roots_since(&self) -> Result<u64, StateError> {
        let stored = self.versions.identity()?;
        let kind = self.tree.kind();
        if stored.moves_to.is_some() && stored.tree != kind.stored_as.tree {
            // It has arrived, which the next writer will enter.
            let view = self.versions.view();
            let oldest = match view.oldest() {
                Some(oldest) => view.meta(oldest)?,
                None => None,
            };
            return Ok(oldest.map_or(0, |oldest| oldest.block_number));
        }
        Ok(stored.since.unwrap_or_default())
    }

    /// The tables of the database as the store has them, ascending.
    pub fn stored_tables(&self) -> &[TableSpec] {
        self.versions.stored_tables()
    }

    /// Writes the head record of a directory anew from what the store there says, as [`Snapshot::rebuild_head_file`] does.
    ///
    /// # Errors
    /// As there, and a record of what the database is that cannot be read.
    pub fn rebuild_head_file(&self, lock: &DirLock) -> Result<(), StateError> {
        let identity = self.versions.identity()?;
        Ok(self.versions.rebuild_head_file(lock, &identity)?)
    }
}

//! The store of a database without its HEAD, for what mends or clears a folder.

use std::sync::Arc;

use arbor_state::{Network, StateSnapshot, Tree};
use arbor_store::{Reader, Store};
use arbor_versions::{DirLock, DirReader, Identity, stored_identity};

use crate::folder::{Folder, io_error};
use crate::store::open_store;
use crate::{Budget, DatabaseError, StoreKind};

/// The store in a folder that is locked, whatever HEAD says of it.
pub struct LockedStore {
    lock: DirLock,
    store: Arc<dyn Store>,
}

impl Folder<'_> {
    /// Locks the folder and opens its store, for a repair: HEAD is not read.
    ///
    /// # Errors
    /// A folder without a store; one that another process writes; errors of the store.
    pub fn lock_store(self, budget: Budget) -> Result<LockedStore, DatabaseError> {
        Ok(LockedStore {
            lock: self.lock()?,
            store: open_store(self.dir, None, false, budget)?,
        })
    }

    /// Removes the stores in the folder, which nobody may have open.
    ///
    /// # Errors
    /// A folder that another process writes; a store that cannot be removed.
    pub fn remove_stores(self) -> Result<(), DatabaseError> {
        let _lock = DirLock::acquire(self.dir)?;
        for store in StoreKind::FOLDERS.map(|name| self.dir.join(name)) {
            if store.is_dir() {
                let removed = std::fs::remove_dir_all(&store);
                removed.map_err(|source| io_error("removing", store, source))?;
            }
        }
        Ok(())
    }
}

impl LockedStore {
    /// Reads what database the store has; `None` if it has none yet.
    ///
    /// # Errors
    /// The store's errors; a malformed record.
    pub fn identity(&self) -> Result<Option<Identity>, DatabaseError> {
        Ok(stored_identity(&*self.store)?)
    }

    /// Opens the last flushed state, also of a recovery that did not finish. The state is compared with HEAD if `head` is given.
    ///
    /// # Errors
    /// Those of [`StateSnapshot::open_unfinished`].
    pub fn state(
        &self,
        tree: &Tree,
        network: Network,
        head: Option<DirReader>,
    ) -> Result<StateSnapshot, arbor_state::StateError> {
        let reader: Arc<dyn Reader> = self.store.clone();
        StateSnapshot::open_unfinished(reader, head, tree.clone(), network)
    }

    /// Writes HEAD anew, from what the store says.
    ///
    /// # Errors
    /// Those of files.
    pub fn rebuild_head_file(&self, state: &StateSnapshot) -> Result<(), arbor_state::StateError> {
        state.rebuild_head_file(&self.lock)
    }
}

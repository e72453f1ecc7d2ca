//! The latest state for threads that do not write it.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use crate::snapshot::StateSnapshot;

/// Hands out the state after the latest commit, to any number of threads and without waiting for the writer.
///
/// [`State::shared_reader`](crate::State::shared_reader) makes one. As long as it or a clone lives, every commit and every rollback publishes
/// a snapshot. The last one stays when the [`State`](crate::State) is dropped.
#[derive(Clone)]
pub struct StateReader(Arc<RwLock<StateSnapshot>>);

impl StateReader {
    pub(crate) fn new(snapshot: StateSnapshot) -> Self {
        Self(Arc::new(RwLock::new(snapshot)))
    }

    /// Returns the state after the latest commit or rollback, which stays as it is.
    pub fn latest(&self) -> StateSnapshot {
        let latest = self.0.read().unwrap_or_else(PoisonError::into_inner);
        latest.clone()
    }

    pub(crate) fn publish(&self, snapshot: StateSnapshot) {
        let mut latest = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *latest, snapshot);
        // Its layers may be large; nobody needs to wait for their memory.
        drop(latest);
        drop(before);
    }

    /// Whether nobody else has it.
    pub(crate) fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

impl fmt::Debug for StateReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StateReader").field(&self.latest()).finish()
    }
}

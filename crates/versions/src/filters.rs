//! Which keys versions changed, for versions that no index has.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, PoisonError};

use arbor_store::Table;
use foldhash::fast::FixedState;

/// Which keys a version changed, as sorted 64-bit hashes: made when a version without an index is
/// first searched, so that searching it again costs no read unless it may have the key.
///
/// Versions are numbered anew after a rollback; the writer then starts with empty filters, while
/// older snapshots keep theirs.
#[derive(Default, Debug)]
pub(crate) struct Filters {
    by_version: Mutex<HashMap<u64, Arc<[u64]>>>,
}

/// Filters that are kept; an index epoch, the usual pending versions and some more.
const MOST_FILTERS: usize = 4096;

impl Filters {
    pub(crate) fn hash(table: Table, key: &[u8]) -> u64 {
        FixedState::default().hash_one((table.0, key))
    }

    pub(crate) fn get(&self, version: u64) -> Option<Arc<[u64]>> {
        let filters = self
            .by_version
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        filters.get(&version).cloned()
    }

    pub(crate) fn forget(&self, version: u64) {
        let mut filters = self
            .by_version
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        filters.remove(&version);
    }

    pub(crate) fn insert(&self, version: u64, mut hashes: Vec<u64>) -> Arc<[u64]> {
        hashes.sort_unstable();
        let filter: Arc<[u64]> = hashes.into();
        let mut filters = self
            .by_version
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if filters.len() >= MOST_FILTERS {
            filters.clear();
        }
        filters.insert(version, filter.clone());
        filter
    }
}

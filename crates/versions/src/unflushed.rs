//! What lies above the store: unflushed layers, versions not yet stored, and what is retained.

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use arbor_store::Table;
use foldhash::fast::FixedState;

use crate::error::VersionsError;
use crate::identity::Schema;
use crate::layer::Layer;
use crate::meta::Meta;
use crate::old_nodes::KeptNodes;
use crate::undo::UndoRecord;
use crate::version::Version;

/// A version that is not in the store yet.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) meta: Arc<Meta>,
    /// `None` for the first version of all and for versions whose history is not retained.
    pub(crate) undo: Option<Arc<UndoRecord>>,
    /// The nodes that changed since the [kept](crate::old_nodes) version before, if this one is kept.
    pub(crate) nodes: Option<Arc<UndoRecord>>,
}

impl Pending {
    /// Bytes of its records.
    pub(crate) fn bytes(&self) -> usize {
        let records = self.undo.iter().chain(&self.nodes);
        records.map(|record| record.bytes()).sum()
    }

    /// Drops what leads back from it; returns the bytes of that.
    pub(crate) fn forget(&mut self) -> usize {
        let bytes = self.bytes();
        (self.undo, self.nodes) = (None, None);
        bytes
    }
}

/// Everything that a reader needs besides a store; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Unflushed {
    pub(crate) schema: Arc<Schema>,
    /// Versions an index epoch.
    pub(crate) epoch: u64,
    /// Immutable layers, oldest first.
    pub(crate) layers: Vec<Arc<Layer>>,
    /// The newest versions, consecutive up to the head.
    pub(crate) pending: Vec<Pending>,
    pub(crate) head: Option<Arc<Meta>>,
    /// The oldest readable version.
    pub(crate) oldest: u64,
    /// Epochs that have an index.
    pub(crate) indexed: Arc<BTreeSet<u64>>,
    pub(crate) filters: Arc<Filters>,
    /// `None` if old nodes are not kept.
    pub(crate) nodes: Option<KeptNodes>,
    /// Reads of callers' tables at the head that layers answered.
    pub(crate) answered: Arc<AtomicU64>,
}

impl Unflushed {
    pub(crate) fn pending_of(&self, version: u64) -> Option<&Pending> {
        let head = self.head.as_ref()?.version.0;
        let from_end = usize::try_from(head.checked_sub(version)?).ok()?;
        let place = self.pending.len().checked_sub(from_end + 1)?;
        self.pending.get(place)
    }

    /// Returns the head's number where `version` can be read.
    pub(crate) fn retained(&self, version: Version) -> Result<u64, VersionsError> {
        let head = self.head.as_ref().map(|meta| meta.version);
        match head {
            Some(head) if (self.oldest..=head.0).contains(&version.0) => Ok(head.0),
            _ => Err(VersionsError::NotRetained {
                version,
                oldest: head.map(|_| Version(self.oldest)),
                head,
            }),
        }
    }

    /// Returns bytes of the undo that waits for a flush.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending.iter().map(Pending::bytes).sum()
    }
}

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

//! What lies above the store: unflushed layers, versions not yet stored, and what is retained.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::error::VersionsError;
use crate::filters::Filters;
use crate::identity::Schema;
use crate::kept_nodes::KeptNodes;
use crate::layer::Layer;
use crate::meta::Meta;
use crate::open_id::OpenId;
use crate::undo::UndoRecord;
use crate::version::Version;

/// A version that is not in the store yet.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) meta: Arc<Meta>,
    /// `None` for the first version of all and for versions whose history is not retained.
    pub(crate) undo: Option<Arc<UndoRecord>>,
    /// The nodes that changed since the [kept](crate::kept_nodes) version before, if this one is kept.
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
    pub(crate) open_id: OpenId,
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

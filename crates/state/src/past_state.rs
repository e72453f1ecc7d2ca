//! The state at an older version that owns all it is read from.

use std::fmt;
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use arbor_verify::Proof;
use arbor_versions::{Meta, Version};

use crate::history::{Historical, Rebuilt};
use crate::snapshot::StateSnapshot;
use crate::{HeadId, StateError};

/// The state of a retained version, which owns the snapshot that it is read from: for other threads, and for as long as anybody needs it.
///
/// It costs and does what a [`Historical`] does. Nodes that a proof rebuilt stay for the next one, also in clones.
#[derive(Clone)]
pub struct PastState {
    snapshot: StateSnapshot,
    rebuilt: Arc<Rebuilt>,
}

impl StateSnapshot {
    /// Returns the state as it was at a retained version.
    ///
    /// # Errors
    /// A version that is not retained; the store's errors.
    pub fn at(&self, version: Version) -> Result<PastState, StateError> {
        Ok(self.owned(&self.reader().at(version)?))
    }

    /// Returns the state after the block with this number, as [`Head::at_block`](crate::Head::at_block) does.
    ///
    /// # Errors
    /// [`StateError::NoBlock`] if no retained version is of that block; the store's errors.
    pub fn at_block(&self, number: u64) -> Result<PastState, StateError> {
        Ok(self.owned(&self.reader().at_block(number)?))
    }

    /// Returns the state after the block with this hash, as [`Head::at_block_hash`](crate::Head::at_block_hash) does.
    ///
    /// # Errors
    /// Those of [`at_block`](Self::at_block).
    pub fn at_block_hash(&self, hash: B256) -> Result<PastState, StateError> {
        Ok(self.owned(&self.reader().at_block_hash(hash)?))
    }

    /// Returns the newest state with this root, as [`Head::at_root`](crate::Head::at_root) does.
    ///
    /// # Errors
    /// Those of [`at_block`](Self::at_block).
    pub fn at_root(&self, root: B256) -> Result<PastState, StateError> {
        Ok(self.owned(&self.reader().at_root(root)?))
    }

    fn owned(&self, then: &Historical<'_>) -> PastState {
        PastState {
            snapshot: self.clone(),
            rebuilt: then.rebuilt().clone(),
        }
    }
}

impl PastState {
    /// The state for reading and proving.
    pub fn reader(&self) -> Historical<'_> {
        Historical::of_rebuilt(self.snapshot.reader(), self.rebuilt.clone())
    }

    /// The version's block and root.
    pub fn meta(&self) -> &Meta {
        self.rebuilt.meta()
    }

    /// The version's root.
    pub fn root(&self) -> B256 {
        self.meta().root.into()
    }

    /// Proves an account and some of its slots, present or absent.
    ///
    /// # Errors
    /// The store's errors; nodes that do not lead to the version's root.
    pub fn prove(&self, address: Address, slots: &[U256]) -> Result<Box<dyn Proof>, StateError> {
        self.reader().prove(address, slots)
    }
}

impl fmt::Debug for PastState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PastState")
            .field("tree", &self.snapshot.tree.kind().name)
            .field("version", &HeadId::of(self.meta()))
            .finish()
    }
}

//! What goes into an update and what comes out.

use crate::{Form, NodeKey, Stem};
use arbor_ipa::{Point, ValueChange};
use std::sync::Arc;

/// Changes of the values under one stem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StemUpdate {
    /// The stem.
    pub stem: Stem,
    /// Changes, ascending by suffix. `None` is absent, which a stored zero is not; a removal (`Some` to `None`), which the specification does not
    /// know, is for undoing.
    pub changes: Vec<ValueChange>,
}

/// How to apply updates. The default is what is recommended; the rest is there to be measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The form of the records written.
    pub form: Form,
    /// Whether commitments are mapped to the scalar field in batches with one inversion, or one by one.
    pub batched_images: bool,
    /// Whether points are made affine in batches with one inversion, or one by one.
    pub batched_affine: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            form: Form::default(),
            batched_images: true,
            batched_affine: true,
        }
    }
}

/// A node written (`Some` record) or deleted (`None`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeChange {
    /// Where the node hangs.
    pub key: NodeKey,
    /// The new record.
    pub record: Option<Arc<[u8]>>,
}

/// What an update does to a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeUpdate {
    /// Nodes written and deleted, ascending by key, each key once.
    pub nodes: Vec<NodeChange>,
    /// The root's commitment; the identity for an empty tree.
    pub root: Point,
    /// What was done.
    pub stats: TreeStats,
}

impl TreeUpdate {
    /// The root as headers have it: its commitment, compressed; zeros for an empty tree.
    #[must_use]
    pub fn root_hash(&self) -> [u8; 32] {
        self.root.to_bytes()
    }
}

/// Counts of one update's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TreeStats {
    /// Internal nodes read.
    pub internals_read: usize,
    /// Leaves read.
    pub leaves_read: usize,
    /// Internal nodes written.
    pub internals_written: usize,
    /// Leaves written.
    pub leaves_written: usize,
    /// Values that changed.
    pub values: usize,
    /// Leaves written by how many suffixes they have: 1, 2, 3 to 4, 5 to 8, and so on to 129 to 256.
    pub filled: [usize; 9],
}

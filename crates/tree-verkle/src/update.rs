//! What goes into an update and what comes out.

use crate::{ByteSet, Form, NodeKey, Stem};
use arbor_ipa::{Point, ValueChange};
use std::ops::AddAssign;
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

/// What updates that follow each other do to a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepsUpdate {
    /// Nodes written and deleted by all of them, ascending by key, each key once.
    pub nodes: Vec<NodeChange>,
    /// The root's commitment after each; the identity for an empty tree.
    pub roots: Vec<Point>,
    /// What was done. What is written counts for each update that changes it; what is read, and a leaf that only moves, once.
    pub stats: TreeStats,
}

impl TreeUpdate {
    /// What one step does, or several that are told of as one.
    pub(crate) fn of_steps(steps: StepsUpdate) -> Self {
        Self {
            nodes: steps.nodes,
            root: steps.roots.last().copied().unwrap_or(Point::IDENTITY),
            stats: steps.stats,
        }
    }

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
    /// Bytes of the leaves written in go-verkle's form (encoding.go), without their values.
    pub published_leaves: usize,
    /// Bytes of the values in them.
    pub published_values: usize,
}

impl AddAssign for TreeStats {
    fn add_assign(&mut self, other: Self) {
        self.internals_read += other.internals_read;
        self.leaves_read += other.leaves_read;
        self.internals_written += other.internals_written;
        self.leaves_written += other.leaves_written;
        self.values += other.values;
        for (filled, other) in self.filled.iter_mut().zip(other.filled) {
            *filled += other;
        }
        self.published_leaves += other.published_leaves;
        self.published_values += other.published_values;
    }
}

impl TreeStats {
    /// Counts a leaf that is written.
    pub(crate) fn leaf(&mut self, suffixes: &ByteSet) {
        self.leaves_written += 1;
        let count = suffixes.len();
        self.filled[count.next_power_of_two().trailing_zeros() as usize] += 1;
        let [leaf, values] = published(suffixes);
        self.published_leaves += leaf;
        self.published_values += values;
    }
}

/// Bytes of a leaf in go-verkle's form, and of the values in it.
fn published(suffixes: &ByteSet) -> [usize; 2] {
    const KIND_AND_STEM: usize = 1 + 31;
    let only = |of: &[u8]| suffixes.len() == of.len() && of.iter().all(|byte| suffixes.has(*byte));
    match suffixes.len() {
        // Cn and C, the index.
        1 => [KIND_AND_STEM + 2 * 64 + 1, 32],
        // An account without code: C1 and C; the hash of no code is not stored. With code there are chunks of it.
        2 if only(&[0, 1]) => [KIND_AND_STEM + 2 * 64, 32],
        // A bit for each suffix; C, C1 and C2.
        count => [KIND_AND_STEM + 32 + 3 * 64, 32 * count],
    }
}

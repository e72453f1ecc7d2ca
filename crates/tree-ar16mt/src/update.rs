//! What goes into an update and what comes out.

use std::sync::Arc;
use std::time::Duration;

use arbor_tree::Path;

use crate::Hash;

/// What a leaf holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its number, from 1 on, which the caller gives: in zkSync leaves are numbered in the order in which they came.
    pub index: u64,
    /// Its value.
    pub value: Hash,
}

/// A change of one leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeafUpdate {
    /// Its key, most significant byte first.
    pub key: Hash,
    /// Whether it is in the tree, which the caller knows from reading its old value.
    pub existed: bool,
    /// What it is to hold; `None` removes it, which the specification does not know, and which is for undoing.
    pub new: Option<Entry>,
}

/// A node written (`Some` record) or deleted (`None`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeChange {
    /// Where the node hangs.
    pub path: Path,
    /// The new record.
    pub record: Option<Arc<[u8]>>,
}

/// What an update does to a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeUpdate {
    /// The root.
    pub root: Hash,
    /// Nodes written and deleted, each path once.
    pub nodes: Vec<NodeChange>,
    /// The leaves that [`apply_unread`](crate::apply_unread) found, ascending by key, with what they held.
    pub found: Vec<(Hash, Entry)>,
    /// What was done.
    pub stats: TreeStats,
}

/// Counts of one update's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TreeStats {
    /// Leaves that came.
    pub new_leaves: u64,
    /// Times that a leaf had to go deeper, since another one came beside it, if new leaves come one after the other in the order of their indices.
    pub moved_leaves: u64,
    /// Leaves with new contents.
    pub updated_leaves: u64,
    /// Leaves removed.
    pub removed_leaves: u64,
    /// Internal nodes that came.
    pub new_internals: u64,
    /// Nodes read.
    pub nodes_read: u64,
    /// Nodes written.
    pub nodes_written: u64,
    /// Levels from the root, in bits, that leaves lie at when they have come or moved, added up.
    pub level_sum: u64,
    /// The deepest of them.
    pub level_max: u64,
    /// Hashes of leaves and of folds from the bottom up to the checkpoint.
    pub fold_hashes: u64,
    /// Of these, hashes of leaves themselves, whose messages have 40 bytes where all others have 64.
    pub leaf_hashes: u64,
    /// Hashes of folds from the checkpoint on.
    pub rise_hashes: u64,
    /// Hashes within nodes.
    pub node_hashes: u64,
    /// Time for reading nodes, over all threads.
    pub load: Duration,
    /// Time for placing leaves, likewise.
    pub place: Duration,
    /// Time for hashing, likewise.
    pub hash: Duration,
}

impl TreeStats {
    /// All hashes.
    #[must_use]
    pub fn hashes(&self) -> u64 {
        self.fold_hashes + self.rise_hashes + self.node_hashes
    }

    /// Bytes of the messages that were hashed: index and value of a leaf, two hashes of a node.
    #[must_use]
    pub fn hashed_bytes(&self) -> u64 {
        64 * self.hashes() - 24 * self.leaf_hashes
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.new_leaves += other.new_leaves;
        self.moved_leaves += other.moved_leaves;
        self.updated_leaves += other.updated_leaves;
        self.removed_leaves += other.removed_leaves;
        self.new_internals += other.new_internals;
        self.nodes_read += other.nodes_read;
        self.nodes_written += other.nodes_written;
        self.level_sum += other.level_sum;
        self.level_max = self.level_max.max(other.level_max);
        self.fold_hashes += other.fold_hashes;
        self.leaf_hashes += other.leaf_hashes;
        self.rise_hashes += other.rise_hashes;
        self.node_hashes += other.node_hashes;
        self.load += other.load;
        self.place += other.place;
        self.hash += other.hash;
    }
}

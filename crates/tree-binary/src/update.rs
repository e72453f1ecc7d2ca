//! What goes into an update and what comes out.

use std::sync::Arc;

use crate::{Hash, Path};

/// A leaf that gets a value, or is removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeafUpdate<V = Hash> {
    /// The whole key.
    pub key: Path,
    /// The value. Which one removes the leaf is up to the tree: see [`Value`](crate::Value).
    pub value: V,
}

/// A record written (`Some`) or deleted (`None`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeChange {
    /// The path that the record's nodes lie below.
    pub path: Path,
    /// The new record.
    pub record: Option<Arc<[u8]>>,
}

/// What an update does to a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeUpdate {
    /// The root; zeros for a tree without leaves.
    pub root: Hash,
    /// Records written and deleted, each path once.
    pub nodes: Vec<NodeChange>,
    /// What was done.
    pub stats: TreeStats,
}

/// Counts of one update's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TreeStats {
    /// Records read.
    pub records_read: u64,
    /// Bytes of them.
    pub bytes_read: u64,
    /// Records written.
    pub records_written: u64,
    /// Bytes of them.
    pub bytes_written: u64,
    /// Rounds of reading, each of which asks for all its records together.
    pub rounds: u64,
    /// Hashes of leaves.
    pub leaf_hashes: u64,
    /// Hashes of branches.
    pub branch_hashes: u64,
    /// Calls of the hash function, those for nodes between two branches included.
    pub calls: u64,
}

//! Leaves as some trees have them: written by key, below any account.

use std::time::Duration;

use arbor_tree::Hash;

use crate::Computed;

/// A leaf written by its key, below any account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeafWrite {
    /// Its key, most significant byte first.
    pub key: Hash,
    /// Its index, from 1 on. No two leaves may share one.
    pub index: u64,
    /// Its value.
    pub value: Hash,
}

/// Counts of the work that writing leaves takes. A tree leaves at zero what it does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LeafStats {
    /// Leaves that came.
    pub new_leaves: u64,
    /// Times that a leaf had to go deeper, because another one came next to it.
    pub moved_leaves: u64,
    /// Leaves with new contents.
    pub updated_leaves: u64,
    /// Internal nodes that came.
    pub new_internals: u64,
    /// Nodes read.
    pub nodes_read: u64,
    /// Nodes written.
    pub nodes_written: u64,
    /// Levels from the root, in bits, at which leaves lie that came or moved, added up.
    pub level_sum: u64,
    /// The deepest of these levels.
    pub level_max: u64,
    /// Bytes hashed.
    pub hashed_bytes: u64,
    /// Hashes of leaves, and of the levels below a checkpoint that folds of several leaves share.
    pub fold_hashes: u64,
    /// Hashes of levels from the checkpoint on.
    pub rise_hashes: u64,
    /// Hashes within nodes.
    pub node_hashes: u64,
    /// Time for reading nodes, over all threads.
    pub load: Duration,
    /// Time for placing leaves, over all threads.
    pub place: Duration,
    /// Time for hashing, over all threads.
    pub hash: Duration,
}

/// Proofs of operations on leaves, which follow each other: writes, then reads.
pub trait LeafProofs {
    /// The number of operations.
    fn count(&self) -> usize;

    /// The root after an operation.
    fn root_after(&self, operation: usize) -> Hash;

    /// The leaf that an operation found at its key; `None` if there was none. The proof shows it if it [holds](Self::holds).
    fn found(&self, operation: usize, key: &Hash) -> Option<LeafWrite>;

    /// Whether a proof leads from the root `before` to the root after the operation on `key`: a write of a leaf, or a
    /// read.
    fn holds(&self, operation: usize, before: &Hash, key: &Hash, write: Option<&LeafWrite>)
    -> bool;
}

/// Leaves that were written and read with proofs.
pub struct ProvenLeaves {
    /// What the writes make of the state.
    pub computed: Computed,
    /// The work of it.
    pub stats: LeafStats,
    /// The proof of each operation.
    pub proofs: Box<dyn LeafProofs>,
}

/// The leaves that a version writes on top of the one before, in the binary form that a prover is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeafLogs {
    /// The form's bytes.
    pub bytes: Vec<u8>,
    /// The number of leaves.
    pub count: usize,
    /// The index that the next new leaf would have had before them.
    pub next_index: u64,
}

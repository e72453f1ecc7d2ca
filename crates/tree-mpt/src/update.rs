//! What goes in and comes out of [`apply`](crate::apply).

use arbor_tree::{Hash, LeafChange, NodeChange};
use smallvec::SmallVec;

/// The bytes of an outer leaf with a hole of 32 bytes for the root of its inner trie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeafTemplate {
    /// The leaf's bytes; what stands in the hole is ignored.
    pub bytes: Vec<u8>,
    /// Where the 32 bytes of the inner root begin.
    pub hole: usize,
}

impl LeafTemplate {
    /// Returns the leaf's bytes with an inner root in the hole.
    ///
    /// # Panics
    /// If the hole does not lie within the bytes.
    pub fn fill(&self, inner_root: &Hash) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        bytes[self.hole..self.hole + 32].copy_from_slice(inner_root);
        bytes
    }
}

/// The value of an inner key. A storage slot's, of at most 33 bytes, lies here itself: thousands in a block, each in memory of its own, would each be a walk to where nobody has been for long.
pub type InnerValue = SmallVec<[u8; 40]>;

/// One key of an inner trie: set (`Some`) or removed (`None`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InnerUpdate {
    /// The hashed key.
    pub key: Hash,
    /// Whether the key was present before; lets the tree replace a leaf without reading it. An update that wrongly
    /// says that its key is new is an error.
    pub existed: bool,
    /// The value as hashed into the leaf (RLP for Ethereum storage), `None` to remove the key.
    pub value: Option<InnerValue>,
}

/// One key of the outer trie with everything that changes below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OuterUpdate {
    /// The hashed key.
    pub key: Hash,
    /// Whether the key was present before.
    pub existed: bool,
    /// Root of the inner trie that `inner` applies to: the old root, or
    /// [`EMPTY_ROOT`](crate::EMPTY_ROOT) for a new or cleared one. The caller deletes the nodes of a
    /// cleared trie before it writes those returned.
    pub inner_root: Hash,
    /// The new leaf, `None` to remove the key.
    pub leaf: Option<LeafTemplate>,
    /// Changes of the inner trie, ascending by key, each key once. Empty when `leaf` is `None`.
    pub inner: Vec<InnerUpdate>,
}

/// The result of applying updates.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TreeUpdate {
    /// The new root of the outer trie.
    pub root: Hash,
    /// The inner root of each outer update, in their order (`EMPTY_ROOT` for removed keys).
    pub inner_roots: Vec<Hash>,
    /// Nodes written and deleted, each position once.
    pub nodes: Vec<NodeChange>,
    /// Leaves placed; see [`LeafChange`].
    pub leaves: Vec<LeafChange>,
    /// Outer keys that were removed, or whose inner trie started empty: inner nodes stored under
    /// them before this update no longer count. [`Overlay`](crate::Overlay) heeds it.
    pub fresh: Vec<Hash>,
    /// What the work was.
    pub stats: ApplyStats,
}

/// Counts of what is dear.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ApplyStats {
    /// Nodes asked of the reader.
    pub nodes_read: u64,
    /// Leaves asked of the reader: at splits and collapses.
    pub leaves_read: u64,
    /// RLP nodes hashed.
    pub nodes_hashed: u64,
    /// Keccak-f\[1600\] permutations for them.
    pub permutations: u64,
}

impl ApplyStats {
    pub(crate) fn add(&mut self, other: &Self) {
        self.nodes_read += other.nodes_read;
        self.leaves_read += other.leaves_read;
        self.nodes_hashed += other.nodes_hashed;
        self.permutations += other.permutations;
    }
}

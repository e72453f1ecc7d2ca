//! What the nodes of a tree hash to: all that binary trees differ in here.

use std::fmt;

use crate::{Hash, Path};

/// A node whose children have hashes.
#[derive(Clone, Copy, Debug)]
pub struct NodeView<'a> {
    /// A leaf's key; for a branch the path down to the bit in which its children differ.
    pub path: &'a Path,
    /// Bits of the path that lead to the node: those down to the branch above, and the bit that
    /// the node hangs at. The bits of the path behind them are the node's own.
    pub start: usize,
    /// What the node has.
    pub contents: Contents<'a>,
}

/// What a node has.
#[derive(Clone, Copy, Debug)]
pub enum Contents<'a> {
    /// A leaf's value.
    Leaf(&'a Hash),
    /// The hashes of a branch's children, that of a zero first.
    Branch([&'a Hash; 2]),
}

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// A branch.
    Branch,
    /// A leaf.
    Leaf,
}

/// How the nodes of a tree are hashed.
///
/// The engine stores a branch only where keys differ. A tree whose specification has a node for
/// each bit computes the nodes between two branches when it hashes the lower one.
pub trait NodeHash: Copy + PartialEq + Eq + fmt::Debug + Send + Sync {
    /// The value that an update gives a leaf.
    type Value: Value;

    /// Hashes nodes, which do not depend on each other, in their order.
    fn hash_nodes<'a>(self, nodes: impl Iterator<Item = NodeView<'a>>) -> Vec<Hash>;

    /// Whether a node with a path of so many bits has another hash at the second start than at the
    /// first one, which differ.
    fn is_moved(kind: NodeKind, path_len: usize, starts: [usize; 2]) -> bool;

    /// How often the function is called for a node with a path of so many bits.
    fn calls(path_len: usize, start: usize) -> u64;

    /// Whether a branch with this hash of its left child could be another node, so that a proof
    /// has to show the left child.
    fn shows_left(path: &Path, left: &Hash) -> bool;

    /// Whether a branch could be another node unless a proof shows a leaf below it.
    fn shows_leaf(path: &Path, start: usize) -> bool;
}

/// What an update makes of a leaf.
pub trait Value: Copy + PartialEq + Eq + fmt::Debug + Send + Sync {
    /// Whether a leaf can have a value of zeros.
    const HAS_ZEROS: bool;
    /// The value that removes a leaf.
    const REMOVAL: Self;

    /// The value that a leaf gets; `None` if it is removed.
    fn stored(self) -> Option<Hash>;
}

/// Zeros remove the leaf.
impl Value for Hash {
    const HAS_ZEROS: bool = false;
    const REMOVAL: Self = [0; 32];

    fn stored(self) -> Option<Hash> {
        (self != [0; 32]).then_some(self)
    }
}

/// Zeros are a value like any other.
impl Value for Option<Hash> {
    const HAS_ZEROS: bool = true;
    const REMOVAL: Self = None;

    fn stored(self) -> Option<Hash> {
        self
    }
}

//! Chains of hashes up a binary tree.

use super::Digest;

/// A chain of hashes up a binary tree of 256 levels, from a node on the way of `key` towards the root, with siblings that all such chains share at a height.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chain {
    /// The way, most significant byte first: bit 0, the lowest of the last byte, says on which side of its parent a leaf is (1: right), bit 255 which side of the root.
    pub key: Digest,
    /// The hash of the node where the chain starts; after the fold of the node where it ends.
    pub hash: Digest,
    /// The height at which it ends: of a leaf 0, of the root 256.
    pub to: usize,
}

//! What nodes hash to.

use std::ops::Deref;

use arbor_tree_binary::{Contents, HashFunction, NodeHash, NodeKind, NodeView};

use crate::{Hash, Path};

/// First byte of a leaf's message (EIP-8297, "Node hashing").
pub const LEAF: u8 = 0;
/// First byte of a branch's message.
pub const BRANCH: u8 = 1;

/// The hash function of a tree, which the EIP leaves open: BLAKE3 is its placeholder.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Hasher(pub HashFunction);

impl Hasher {
    /// The names of all functions as a database has them, the usual one first.
    pub const NAMES: [&'static str; 3] = HashFunction::NAMES;

    /// BLAKE3, on the widest instructions that the processor has.
    #[must_use]
    pub fn blake3() -> Self {
        Self::default()
    }

    /// Returns the function with this name, on the widest instructions that the processor has.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        HashFunction::named(name).map(Self)
    }
}

impl Deref for Hasher {
    type Target = HashFunction;

    fn deref(&self) -> &HashFunction {
        &self.0
    }
}

/// A node commits to its own bits: a leaf to its whole key, wherever it hangs, and a branch to
/// those behind the branch above. The first byte tells one from the other.
impl NodeHash for Hasher {
    /// Zero is absence (EIP-8297, revision of 31 July 2026).
    type Value = Hash;

    fn hash_nodes<'a>(self, nodes: impl Iterator<Item = NodeView<'a>>) -> Vec<Hash> {
        let mut batch = self.batch();
        for node in nodes {
            batch.push_with(|message| write_node(&node, message));
        }
        batch.finish().to_vec()
    }

    fn is_moved(kind: NodeKind, _: usize, _: [usize; 2]) -> bool {
        kind == NodeKind::Branch
    }

    fn calls(_: usize, _: usize) -> u64 {
        1
    }

    fn shows_left(_: &Path, _: &Hash) -> bool {
        false
    }

    fn shows_leaf(_: &Path, _: usize) -> bool {
        false
    }
}

/// Writes the message of a node.
pub(crate) fn write_node(node: &NodeView<'_>, out: &mut Vec<u8>) {
    match node.contents {
        Contents::Leaf(value) => write_leaf(node.path, value, out),
        Contents::Branch(children) => write_branch(node.path, node.start, children, out),
    }
}

/// Writes the message of a leaf: `00 || key || value`.
pub fn write_leaf(key: &Path, value: &Hash, out: &mut Vec<u8>) {
    out.push(LEAF);
    out.extend_from_slice(key.packed());
    out.extend_from_slice(value);
}

/// Writes the message of a branch at a path, whose prefix begins with bit `start`: `01 || count of
/// bits (2 bytes, big-endian) || bits || left || right`.
pub fn write_branch(path: &Path, start: usize, [left, right]: [&Hash; 2], out: &mut Vec<u8>) {
    out.push(BRANCH);
    out.extend(((path.len() - start) as u16).to_be_bytes());
    path.write_bits(start, path.len(), out);
    out.extend_from_slice(left);
    out.extend_from_slice(right);
}

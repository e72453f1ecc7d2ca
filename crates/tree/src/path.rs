//! Paths of nibbles and the places of nodes.

use crate::Hash;

/// A path of at most 64 nibbles, packed two a byte, the high nibble first.
///
/// Unused nibbles are zero, so equality and order (first by packed bytes, then by length) are
/// those of the nibble sequences.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Path {
    packed: [u8; 32],
    len: u8,
}

/// Where a node hangs: the trie it belongs to and the path from that trie's root.
///
/// `trie` is `None` for the outer trie and the outer key for a trie nested under that key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Position {
    /// The outer key that the trie hangs under; `None`: the outer trie itself.
    pub trie: Option<Hash>,
    /// The path from the root of that trie.
    pub path: Path,
}

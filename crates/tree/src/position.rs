//! The places of nodes and their database keys.

use std::fmt;
use std::ops::Deref;

use crate::{Hash, Path, PathError};

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

/// The database key of a node: a slice of bytes that lives on the stack.
#[derive(Clone, Copy, Debug)]
pub struct PositionKey {
    bytes: [u8; Self::MAX],
    len: u8,
}

impl PositionKey {
    /// Outer key, length, and a path of 64 nibbles.
    const MAX: usize = 65;
}

impl Deref for PositionKey {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Why bytes are not the database key of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PositionError {
    /// The key of an inner node is shorter than the 32 bytes of its trie's outer key.
    #[error("the key of an inner node has {0} bytes, fewer than its trie's 32")]
    NoOwner(usize),
    /// The path is malformed.
    #[error("the key of a node: {0}")]
    Path(#[from] PathError),
}

impl Position {
    /// A place in the outer trie.
    pub const fn outer(path: Path) -> Self {
        Self { trie: None, path }
    }

    /// A place in the trie nested under an outer key.
    pub const fn inner(owner: Hash, path: Path) -> Self {
        Self {
            trie: Some(owner),
            path,
        }
    }

    /// Returns the database key; see [`key`](Self::key).
    pub fn encode(&self) -> Vec<u8> {
        self.key().to_vec()
    }

    /// Returns the database key: for a nested trie its 32-byte outer key, then for both
    /// the path's length in nibbles as one byte and the packed nibbles.
    ///
    /// Outer and inner nodes are kept in two tables, so their keys need no tag. All nodes of a
    /// nested trie lie together, the nodes nearest to its root first.
    pub fn key(&self) -> PositionKey {
        let mut bytes = [0; PositionKey::MAX];
        let owner = self.trie.as_ref().map_or(0, |owner| {
            bytes[..32].copy_from_slice(owner);
            32
        });
        let path = self.path.packed();
        bytes[owner] = self.path.len() as u8;
        bytes[owner + 1..owner + 1 + path.len()].copy_from_slice(path);
        PositionKey {
            bytes,
            len: (owner + 1 + path.len()) as u8,
        }
    }

    /// Reads the database key of a node of the outer trie.
    ///
    /// # Errors
    /// When the bytes are not such a key.
    pub fn decode_outer(key: &[u8]) -> Result<Self, PositionError> {
        Ok(Self::outer(Path::decode(key)?))
    }

    /// Reads the database key of a node of a nested trie.
    ///
    /// # Errors
    /// When the bytes are not such a key.
    pub fn decode_inner(key: &[u8]) -> Result<Self, PositionError> {
        let (owner, path) = key
            .split_first_chunk::<32>()
            .ok_or(PositionError::NoOwner(key.len()))?;
        Ok(Self::inner(*owner, Path::decode(path)?))
    }
}

impl fmt::Display for Position {
    /// `path 3fa` in the outer trie, `path 3fa of the trie under 0x...` in a nested one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str("the root")?;
        } else {
            write!(f, "path {}", self.path)?;
        }
        match &self.trie {
            None => f.write_str(" of the outer trie"),
            Some(owner) => write!(f, " of the trie under 0x{}", Path::from_key(owner)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_both_tables() {
        let path = Path::from_nibbles(&[1, 2, 3]);
        let outer = Position::outer(path);
        assert_eq!(outer.encode(), [3, 0x12, 0x30]);
        assert_eq!(Position::decode_outer(&outer.encode()), Ok(outer));
        let inner = Position::inner([7; 32], path);
        assert_eq!(inner.encode()[..32], [7; 32]);
        assert_eq!(inner.encode()[32..], [3, 0x12, 0x30]);
        assert_eq!(Position::decode_inner(&inner.encode()), Ok(inner));
        assert_eq!(
            Position::decode_inner(&[0; 31]),
            Err(PositionError::NoOwner(31))
        );
        assert_eq!(
            Position::decode_inner(&[0; 32]),
            Err(PositionError::Path(PathError::Empty))
        );
    }

    #[test]
    fn display_names_trie_and_path() {
        let path = Path::from_nibbles(&[1, 15]);
        assert_eq!(
            Position::outer(path).to_string(),
            "path 1f of the outer trie"
        );
        let shown = Position::inner([0xab; 32], Path::ROOT).to_string();
        assert_eq!(
            shown,
            format!("the root of the trie under 0x{}", "ab".repeat(32))
        );
    }
}

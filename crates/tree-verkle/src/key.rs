//! The places of nodes.

use std::fmt;

/// The first 31 bytes of a tree key: what the values of one leaf have in common.
pub type Stem = [u8; 31];

/// A stored value.
pub type Value = [u8; 32];

/// Where a node hangs: the bytes on the way from the root to it.
///
/// Internal nodes have depths 0 to 30, leaves 1 to 31. Keys are ordered by depth first, so that the children of a node are neighbours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeKey(
    /// The depth, the bytes of the way, and zeros.
    [u8; 32],
);

/// Why bytes are not the database key of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a node's key has its depth, at most 31, and as many bytes after it; not {depth:?} and {bytes} bytes"
)]
pub struct KeyError {
    depth: Option<u8>,
    bytes: usize,
}

impl NodeKey {
    /// The place of the root.
    pub const ROOT: Self = Self([0; 32]);

    /// Most bytes on the way to a node: a leaf whose stem differs from another one's in the last byte.
    pub const MAX_DEPTH: usize = 31;

    /// The place on the way to a stem after `depth` bytes.
    ///
    /// # Panics
    /// If `depth` is above 31.
    #[must_use]
    pub fn on_way(stem: &Stem, depth: usize) -> Self {
        let mut key = Self::ROOT;
        key.0[0] = depth as u8;
        key.0[1..=depth].copy_from_slice(&stem[..depth]);
        key
    }

    /// The place of a child.
    ///
    /// # Panics
    /// If this place is at depth 31, where only leaves are.
    #[must_use]
    pub fn child(mut self, byte: u8) -> Self {
        self.0[0] += 1;
        self.0[self.depth()] = byte;
        self
    }

    /// The place of the parent; none for the root.
    #[must_use]
    pub fn parent(mut self) -> Option<Self> {
        let above = self.0[0].checked_sub(1)?;
        self.0[self.depth()] = 0;
        self.0[0] = above;
        Some(self)
    }

    /// Bytes between the root and this place.
    #[must_use]
    pub fn depth(&self) -> usize {
        usize::from(self.0[0])
    }

    /// The bytes between the root and this place.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        &self.encode()[1..]
    }

    /// The database key: depth, then path.
    #[must_use]
    pub fn encode(&self) -> &[u8] {
        &self.0[..=self.depth()]
    }

    /// Reads a database key.
    ///
    /// # Errors
    /// When the bytes are not such a key.
    pub fn decode(bytes: &[u8]) -> Result<Self, KeyError> {
        match bytes.split_first() {
            Some((&depth, path)) if path.len() == usize::from(depth) && path.len() <= 31 => {
                let mut key = Self::ROOT;
                key.0[..bytes.len()].copy_from_slice(bytes);
                Ok(key)
            }
            first => Err(KeyError {
                depth: first.map(|(&depth, _)| depth),
                bytes: bytes.len(),
            }),
        }
    }
}

impl fmt::Display for NodeKey {
    /// `the root` or `path 01fe`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ROOT {
            return f.write_str("the root");
        }
        f.write_str("path ")?;
        self.path()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeKey({self})")
    }
}

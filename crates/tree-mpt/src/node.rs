//! Trie nodes in their RLP form, and how a parent refers to a child.

use arbor_hashing::keccak256;
use arbor_tree::{Hash, Path};

use crate::rlp::{self, RlpError};

/// How a parent refers to a child: its hash, or its RLP where that has fewer than 32 bytes
/// (Yellow Paper, appendix D, function `n`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reference {
    /// 32: a hash; 1 to 31: inlined RLP of so many bytes; 0: no child.
    len: u8,
    bytes: [u8; 32],
}

impl Reference {
    pub(crate) const NONE: Self = Self {
        len: 0,
        bytes: [0; 32],
    };

    pub(crate) const fn hash(hash: Hash) -> Self {
        Self {
            len: 32,
            bytes: hash,
        }
    }

    /// A child of fewer than 32 bytes of RLP.
    pub(crate) fn inline(rlp: &[u8]) -> Self {
        debug_assert!(rlp.len() < 32);
        let mut bytes = [0; 32];
        bytes[..rlp.len()].copy_from_slice(rlp);
        Self {
            len: rlp.len() as u8,
            bytes,
        }
    }

    /// The reference to a node with this RLP.
    pub(crate) fn to_rlp_node(rlp: &[u8]) -> Self {
        if rlp.len() < 32 {
            Self::inline(rlp)
        } else {
            Self::hash(keccak256(rlp))
        }
    }

    /// The hash, where the child is not inlined.
    pub(crate) fn as_hash(&self) -> Option<Hash> {
        (self.len == 32).then_some(self.bytes)
    }

    /// The inlined RLP, where the child is inlined.
    pub(crate) fn as_inline(&self) -> Option<&[u8]> {
        (1..32)
            .contains(&self.len)
            .then(|| &self.bytes[..usize::from(self.len)])
    }

    pub(crate) const fn is_none(&self) -> bool {
        self.len == 0
    }

    /// Bytes that the reference takes within its parent.
    pub(crate) const fn encoded_len(&self) -> usize {
        match self.len {
            0 => 1,
            32 => 33,
            len => len as usize,
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self.len {
            0 => out.push(0x80),
            32 => {
                out.push(0xa0);
                out.extend_from_slice(&self.bytes);
            }
            len => out.extend_from_slice(&self.bytes[..usize::from(len)]),
        }
    }
}

/// Why bytes are not a node of a trie with fixed-size keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NodeError {
    /// The bytes are not RLP.
    #[error(transparent)]
    Rlp(#[from] RlpError),
    /// A node is a list of 2 or 17 items.
    #[error("a trie node that is no list of 2 or 17 items")]
    Shape,
    /// A leaf's or an extension's path is malformed.
    #[error("a trie node whose path is malformed")]
    HexPrefix,
    /// A reference to a child is neither empty, nor a hash, nor an inlined node.
    #[error("a trie node whose child is neither empty, nor a hash, nor an inlined node")]
    Child,
    /// With keys of one length no key ends at a branch.
    #[error("a branch that has a value")]
    BranchValue,
    /// A leaf must have a value and an extension a child.
    #[error("a leaf without a value or an extension without a child")]
    Empty,
    /// An extension must lead to a branch, and a branch must have two children.
    #[error(
        "an extension that does not lead to a branch, or a branch with fewer than two children"
    )]
    NotMinimal,
    /// The path is longer than a key.
    #[error("a trie node deeper than a key is long")]
    TooDeep,
}

/// A node as its RLP says it; it only ever lives on the stack.
#[expect(clippy::large_enum_variant)]
pub(crate) enum RlpNode<'a> {
    Branch([Reference; 16]),
    Extension(Path, Reference),
    Leaf(Path, &'a [u8]),
}

impl<'a> RlpNode<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, NodeError> {
        let whole = rlp::only_item(bytes)?;
        if !whole.list {
            return Err(NodeError::Shape);
        }
        let (first, rest) = rlp::item(whole.payload)?;
        let (second, rest) = rlp::item(rest)?;
        if rest.is_empty() {
            return Self::parse_short(first, second);
        }
        let mut children = [Reference::NONE; 16];
        let mut rest = whole.payload;
        for child in &mut children {
            let item;
            (item, rest) = rlp::item(rest)?;
            *child = reference(item)?;
        }
        match rlp::only_item(rest) {
            Ok(value) if !value.list && value.payload.is_empty() => Ok(Self::Branch(children)),
            Ok(_) => Err(NodeError::BranchValue),
            Err(RlpError::Trailing(_)) => Err(NodeError::Shape),
            Err(error) => Err(error.into()),
        }
    }

    fn parse_short(path: rlp::Item<'a>, second: rlp::Item<'a>) -> Result<Self, NodeError> {
        if path.list {
            return Err(NodeError::HexPrefix);
        }
        let (path, leaf) = rlp::read_hex_prefix(path.payload).ok_or(NodeError::HexPrefix)?;
        if leaf {
            if second.list || second.payload.is_empty() {
                return Err(NodeError::Empty);
            }
            return Ok(Self::Leaf(path, second.payload));
        }
        let child = reference(second)?;
        if child.is_none() {
            return Err(NodeError::Empty);
        }
        if path.is_empty() {
            return Err(NodeError::HexPrefix);
        }
        Ok(Self::Extension(path, child))
    }
}

fn reference(item: rlp::Item<'_>) -> Result<Reference, NodeError> {
    match (item.list, item.payload.len()) {
        (false, 0) => Ok(Reference::NONE),
        (false, 32) => {
            let hash = item.payload.try_into().expect("invariant: 32 bytes");
            Ok(Reference::hash(hash))
        }
        (true, _) if item.raw.len() < 32 => Ok(Reference::inline(item.raw)),
        _ => Err(NodeError::Child),
    }
}

/// Writes the RLP of the leaf that holds nibbles `from..64` of a key.
pub(crate) fn write_leaf(out: &mut Vec<u8>, key: &Hash, from: usize, value: &[u8]) {
    let payload = rlp::hex_prefix_string_len(64 - from) + rlp::string_len(value);
    rlp::write_list_header(out, payload);
    rlp::write_hex_prefix(out, key, from, 64, true);
    rlp::write_string(out, value);
}

/// Writes the RLP of an extension.
pub(crate) fn write_extension(out: &mut Vec<u8>, prefix: &Path, child: &Reference) {
    let mut packed = [0; 32];
    packed[..prefix.packed().len()].copy_from_slice(prefix.packed());
    let payload = rlp::hex_prefix_string_len(prefix.len()) + child.encoded_len();
    rlp::write_list_header(out, payload);
    rlp::write_hex_prefix(out, &packed, 0, prefix.len(), false);
    child.write(out);
}

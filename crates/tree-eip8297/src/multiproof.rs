//! One proof of many keys: the part of the tree that their ways have, without hashes that follow
//! from it.

use std::collections::HashSet;

use foldhash::fast::RandomState;

use crate::arena::{Arena, Id, Kind};
use crate::hasher::{write_branch, write_leaf};
use crate::path::LONGEST_KEY;
use crate::proof::{Shown, read_ways};
use crate::{Hash, Hasher, Packing, Path, Reader, TreeError};

/// A part of a tree: nodes on the ways to keys, and the hashes of what hangs beside them.
///
/// Its bytes are the nodes in the order of their paths, each branch before its children, nothing
/// for a tree without leaves. A first byte has the kind.
///
/// | kind | node |
/// |---|---|
/// | 0 | any node by its hash (32 bytes) |
/// | 1 | branch: the count of bits of its prefix (2 bytes, big-endian), these bits packed |
/// | 2 | leaf: the length of its key in bytes (1), the key from the byte on that has the first bit behind the branch above, the length of the value without leading zeros (1), and those bytes |
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Multiproof(Option<Node>);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Node {
    Hash(Hash),
    Branch {
        path: Path,
        children: Box<[Node; 2]>,
    },
    Leaf {
        key: Path,
        value: Hash,
    },
}

/// Why bytes are no multiproof.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MultiproofError {
    /// The bytes end within a node.
    #[error("the multiproof is cut short")]
    Short,
    /// Bytes follow the last node.
    #[error("{0} bytes follow the last node of the multiproof")]
    Trailing(usize),
    /// A first byte that no node has.
    #[error("a node of the multiproof begins with {0}")]
    Kind(u8),
    /// A key or path that does not lie where it stands, or is longer than any.
    #[error("a node of the multiproof below path {0} does not lie there")]
    Place(Path),
    /// A value with leading zeros, or of zeros alone.
    #[error("a leaf of the multiproof below path {0} has no value, or one with leading zeros")]
    Value(Path),
}

const HASH: u8 = 0;
const BRANCH: u8 = 1;
const LEAF: u8 = 2;

/// Proves keys, present or absent, in any order, by one proof. Returns the root, too.
///
/// # Errors
/// [`TreeError`].
pub fn prove_many(
    reader: &impl Reader,
    hasher: Hasher,
    packing: Packing,
    keys: &[Path],
) -> Result<(Hash, Multiproof), TreeError> {
    let (root, work) = read_ways(reader, hasher, packing, keys)?;
    let mut wanted = HashSet::<Id, RandomState>::default();
    for key in keys {
        work.way(key, |id| {
            wanted.insert(id);
        });
    }
    let top = work.top.map(|top| part(&work.arena, &wanted, top));
    Ok((root, Multiproof(top)))
}

fn part(arena: &Arena, wanted: &HashSet<Id, RandomState>, id: Id) -> Node {
    let node = arena.get(id);
    match node.kind {
        Kind::Leaf { value } if wanted.contains(&id) => Node::Leaf {
            key: node.path,
            value,
        },
        Kind::Branch(children) if wanted.contains(&id) => Node::Branch {
            path: node.path,
            children: Box::new(children.map(|child| part(arena, wanted, child))),
        },
        _ => Node::Hash(node.hash),
    }
}

impl Multiproof {
    /// The root that the proof leads to.
    #[must_use]
    pub fn root(&self, hasher: Hasher) -> Hash {
        let top = self.0.as_ref();
        top.map_or([0; 32], |top| top.hash(hasher, 0))
    }

    /// What the proof shows of a key, if it leads to the tree's root; `None` if nothing.
    #[must_use]
    pub fn show(&self, key: &Path) -> Option<Shown> {
        let mut next = self.0.as_ref();
        loop {
            match next {
                None => return Some(Shown::Absent),
                Some(Node::Hash(_)) => return None,
                Some(Node::Leaf { key: other, value }) if other == key => {
                    return Some(Shown::Value(*value));
                }
                // Keys are free of prefixes.
                Some(Node::Leaf { key: other, .. }) => {
                    let is_free = other.shared(key) < other.len().min(key.len());
                    return is_free.then_some(Shown::Absent);
                }
                Some(Node::Branch { path, children }) => {
                    if path.shared(key) < path.len().min(key.len()) {
                        return Some(Shown::Absent);
                    }
                    if key.len() <= path.len() {
                        return None;
                    }
                    next = Some(&children[usize::from(key.bit(path.len()))]);
                }
            }
        }
    }

    /// The proof's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(top) = &self.0 {
            top.encode(0, &mut out);
        }
        out
    }

    /// Reads a proof's bytes.
    ///
    /// # Errors
    /// [`MultiproofError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, MultiproofError> {
        if bytes.is_empty() {
            return Ok(Self(None));
        }
        let mut rest = bytes;
        let top = Node::decode(Path::ROOT, &mut rest)?;
        match rest.len() {
            0 => Ok(Self(Some(top))),
            more => Err(MultiproofError::Trailing(more)),
        }
    }
}

impl Node {
    fn hash(&self, hasher: Hasher, start: usize) -> Hash {
        let mut message = Vec::new();
        match self {
            Self::Hash(hash) => return *hash,
            Self::Leaf { key, value } => write_leaf(key, value, &mut message),
            Self::Branch { path, children } => {
                let [left, right] = &**children;
                let below = path.len() + 1;
                let hashes = [left.hash(hasher, below), right.hash(hasher, below)];
                write_branch(path, start, [&hashes[0], &hashes[1]], &mut message);
            }
        }
        hasher.hash(&message)
    }

    fn encode(&self, start: usize, out: &mut Vec<u8>) {
        match self {
            Self::Hash(hash) => {
                out.push(HASH);
                out.extend_from_slice(hash);
            }
            Self::Leaf { key, value } => {
                out.extend([LEAF, (key.len() / 8) as u8]);
                out.extend_from_slice(&key.packed()[start / 8..]);
                let zeros = value.iter().take_while(|byte| **byte == 0).count();
                out.push((32 - zeros) as u8);
                out.extend_from_slice(&value[zeros..]);
            }
            Self::Branch { path, children } => {
                out.push(BRANCH);
                out.extend(((path.len() - start) as u16).to_be_bytes());
                path.write_bits(start, path.len(), out);
                for child in &**children {
                    child.encode(path.len() + 1, out);
                }
            }
        }
    }

    /// Reads a node below a path.
    fn decode(known: Path, rest: &mut &[u8]) -> Result<Self, MultiproofError> {
        let place = MultiproofError::Place(known);
        match take(rest, 1)?[0] {
            HASH => {
                let (hash, after) = rest.split_first_chunk().ok_or(MultiproofError::Short)?;
                *rest = after;
                Ok(Self::Hash(*hash))
            }
            LEAF => {
                let length = usize::from(take(rest, 1)?[0]);
                let from = known.len() / 8;
                if length == 0 || length > LONGEST_KEY || 8 * length < known.len() {
                    return Err(place);
                }
                let tail = take(rest, length - from)?;
                let key = [&known.packed()[..from], tail].concat();
                let key = Path::of_key(&key).map_err(|_| place)?;
                let length = usize::from(take(rest, 1)?[0]);
                let bytes = take(rest, length)?;
                if !known.is_prefix_of(&key) {
                    return Err(place);
                }
                if length > 32 || bytes.first().is_none_or(|first| *first == 0) {
                    return Err(MultiproofError::Value(known));
                }
                let mut value = [0; 32];
                value[32 - length..].copy_from_slice(bytes);
                Ok(Self::Leaf { key, value })
            }
            BRANCH => {
                let count = take(rest, 2)?;
                let count = usize::from(count[0]) << 8 | usize::from(count[1]);
                if known.len() + count >= 8 * LONGEST_KEY {
                    return Err(place);
                }
                let bits = Path::of_bits(count, take(rest, count.div_ceil(8))?);
                let bits = bits.map_err(|_| place)?;
                let path = (0..count).fold(known, |path, bit| path.with_bit(bits.bit(bit)));
                let left = Self::decode(path.with_bit(false), rest)?;
                let right = Self::decode(path.with_bit(true), rest)?;
                let children = Box::new([left, right]);
                Ok(Self::Branch { path, children })
            }
            kind => Err(MultiproofError::Kind(kind)),
        }
    }
}

fn take<'b>(rest: &mut &'b [u8], count: usize) -> Result<&'b [u8], MultiproofError> {
    let (taken, after) = rest.split_at_checked(count).ok_or(MultiproofError::Short)?;
    *rest = after;
    Ok(taken)
}

//! One proof of many keys: the part of the tree that their ways have, without hashes that follow
//! from it.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use foldhash::fast::RandomState;

use crate::arena::{self, Arena, Id, Kind};
use crate::node_hash::{NodeHash, Value};
use crate::path::LONGEST_KEY;
use crate::settle::{Heights, find_dirty, hash};
use crate::{Hash, Path, TreeStats};

/// What a proof shows of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// It has this value.
    Value(Hash),
    /// It is absent.
    Absent,
}

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
///
/// If a branch [could be another node](NodeHash::shows_left), the proof shows the node that rules
/// this out, or is refused.
#[derive(Clone, PartialEq, Eq)]
pub struct Multiproof<H> {
    top: Option<Node>,
    hash: PhantomData<H>,
}

impl<H> fmt::Debug for Multiproof<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Multiproof").field(&self.top).finish()
    }
}

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
    /// A value with leading zeros, or of zeros in a tree that does not have them.
    #[error("a leaf of the multiproof below path {0} has no value, or one with leading zeros")]
    Value(Path),
    /// A branch that could be another node.
    #[error(
        "the branch of the multiproof at path {0} may be another node: nothing below it shows what it is"
    )]
    Doubtful(Path),
}

const HASH: u8 = 0;
const BRANCH: u8 = 1;
const LEAF: u8 = 2;

/// The part of a tree below a node that has the wanted nodes.
fn part(arena: &Arena, is_wanted: &impl Fn(Id) -> bool, id: Id) -> Node {
    let node = arena.get(id);
    match node.kind {
        Kind::Leaf { value } if is_wanted(id) => Node::Leaf {
            key: node.path,
            value,
        },
        Kind::Branch(children) if is_wanted(id) => Node::Branch {
            path: node.path,
            children: Box::new(children.map(|child| part(arena, is_wanted, child))),
        },
        _ => Node::Hash(node.hash),
    }
}

/// The bytes of a proof by part. Their sum is the length of the proof.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MultiproofSizes {
    /// Keys of leaves.
    pub keys: usize,
    /// Values of leaves.
    pub values: usize,
    /// Hashes of nodes that are not shown.
    pub siblings: usize,
    /// Kinds and lengths of nodes, and prefixes of branches.
    pub structure: usize,
}

impl<H: NodeHash> Multiproof<H> {
    /// The selected nodes of a tree.
    pub(crate) fn of(arena: &Arena, selected: &HashSet<Id, RandomState>, top: Option<Id>) -> Self {
        Self::with(top.map(|top| part(arena, &|id| selected.contains(&id), top)))
    }

    /// All nodes of a tree that are known.
    pub(crate) fn of_known(arena: &Arena, top: Option<Id>) -> Self {
        Self::with(top.map(|top| part(arena, &|_| true, top)))
    }

    /// Measures the parts of the bytes.
    #[must_use]
    pub fn sizes(&self) -> MultiproofSizes {
        let mut sizes = MultiproofSizes::default();
        if let Some(top) = &self.top {
            top.measure(0, &mut sizes);
        }
        sizes
    }

    fn with(top: Option<Node>) -> Self {
        let hash = PhantomData;
        Self { top, hash }
    }

    /// The root that the proof leads to.
    #[must_use]
    pub fn root(&self, hash: H) -> Hash {
        let mut arena = Arena::default();
        self.grow(hash, &mut arena).1
    }

    /// Adds the proof's nodes, whose hashes are computed, and returns the top and its hash.
    pub(crate) fn grow(&self, hasher: H, arena: &mut Arena) -> (Option<Id>, Hash) {
        let Some(top) = &self.top else {
            return (None, [0; 32]);
        };
        let top = top.grow(arena, Path::ROOT);
        let mut heights = Heights::default();
        find_dirty::<H>(arena, top, 0, &mut heights, &mut Vec::new());
        hash(arena, hasher, heights, &mut TreeStats::default());
        (Some(top), arena.get(top).hash)
    }

    /// What the proof shows of a key, if it leads to the tree's root; `None` if nothing.
    #[must_use]
    pub fn show(&self, key: &Path) -> Option<Shown> {
        let mut next = self.top.as_ref();
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
        if let Some(top) = &self.top {
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
            return Ok(Self::with(None));
        }
        let mut rest = bytes;
        let top = Node::decode::<H>(Path::ROOT, &mut rest)?;
        match rest.len() {
            0 => Ok(Self::with(Some(top))),
            more => Err(MultiproofError::Trailing(more)),
        }
    }
}

impl Node {
    /// Adds this node and those below it; `known` leads to it.
    fn grow(&self, arena: &mut Arena, known: Path) -> Id {
        let (path, kind) = match self {
            Self::Hash(_) => (known, Kind::Unknown),
            Self::Leaf { key, value } => (*key, Kind::Leaf { value: *value }),
            Self::Branch { path, children } => {
                let [left, right] = &**children;
                let left = left.grow(arena, path.with_bit(false));
                let right = right.grow(arena, path.with_bit(true));
                (*path, Kind::Branch([left, right]))
            }
        };
        let known_hash = match self {
            Self::Hash(hash) => Some(*hash),
            _ => None,
        };
        arena.add(arena::Node {
            path,
            start: known.len() as u16,
            kind,
            is_dirty: known_hash.is_none(),
            hash: known_hash.unwrap_or_default(),
        })
    }

    fn has_leaf(&self) -> bool {
        match self {
            Self::Hash(_) => false,
            Self::Leaf { .. } => true,
            Self::Branch { children, .. } => children.iter().any(Self::has_leaf),
        }
    }

    fn measure(&self, start: usize, sizes: &mut MultiproofSizes) {
        sizes.structure += 1;
        match self {
            Self::Hash(hash) => sizes.siblings += hash.len(),
            Self::Leaf { key, value } => {
                let zeros = value.iter().take_while(|byte| **byte == 0).count();
                sizes.structure += 2;
                sizes.keys += key.packed().len() - start / 8;
                sizes.values += value.len() - zeros;
            }
            Self::Branch { path, children } => {
                sizes.structure += 2 + (path.len() - start).div_ceil(8);
                let below = children.iter();
                below.for_each(|child| child.measure(path.len() + 1, sizes));
            }
        }
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
    fn decode<H: NodeHash>(known: Path, rest: &mut &[u8]) -> Result<Self, MultiproofError> {
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
                let has_value = bytes
                    .first()
                    .map_or(H::Value::HAS_ZEROS, |first| *first != 0);
                if length > 32 || !has_value {
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
                let left = Self::decode::<H>(path.with_bit(false), rest)?;
                let right = Self::decode::<H>(path.with_bit(true), rest)?;
                let hides_left = matches!(&left, Self::Hash(left) if H::shows_left(&path, left));
                let children = Box::new([left, right]);
                let branch = Self::Branch { path, children };
                let hides_leaf = H::shows_leaf(&path, known.len()) && !branch.has_leaf();
                match hides_left || hides_leaf {
                    true => Err(MultiproofError::Doubtful(path)),
                    false => Ok(branch),
                }
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

//! Witnesses without the hashes that follow from others.
//!
//! A bag of nodes has the hash of each node twice: the parent has it, and it follows from the node. The compact form is
//! the trie below the root in the order of its paths, each node before its children, and has hashes only of nodes that
//! are not in the bag. Reading it gives the bag again.
//!
//! A *trie* is a byte 0 if it has no leaves, a byte 1 and its root if no node of it is in the bag, or a byte 2 and its
//! topmost node. The first byte of a node says what it is:
//!
//! | first byte | node |
//! |---|---|
//! | 0 | branch: 2 bytes with a bit for each child that there is, 2 with one for each whose node follows, then the children by nibble: a hash (32) or a node |
//! | 1 to 64 | extension of so many nibbles, packed; its child's node follows |
//! | 65 to 128 | extension of 1 to 64 nibbles, packed; its child's hash (32) |
//! | 129 | leaf: the rest of its key, packed; the length of its value (1), and the value |
//!
//! Bits and nibbles are most significant first; a nibble without its pair has zeros behind it. In the outer trie a leaf's
//! value is what [`OuterLeaf::split`] makes of it, and the trie inside follows. A node to which several parents lead
//! follows the first of them; the others have its hash.

use std::collections::HashSet;

use arbor_hashing::keccak256;
use arbor_tree::{Hash, Path};

use crate::EMPTY_ROOT;
use crate::node::{NodeError, Reference, RlpNode, write_extension, write_leaf};
use crate::rlp;
use crate::witness::WitnessNodes;

/// A value of the outer trie: its other bytes, and the root of the trie inside.
pub type SplitValue = (Vec<u8>, Hash);

/// The leaves of the outer trie, which have the root of a trie inside them.
#[derive(Clone, Copy, Debug)]
pub struct OuterLeaf {
    /// Parts a value into at most 255 bytes and the root of the trie inside; `None` for a value of another form.
    pub split: fn(&[u8]) -> Option<SplitValue>,
    /// Makes the value again; `None` for bytes that [`split`](Self::split) does not return.
    pub join: fn(&[u8], &Hash) -> Option<Vec<u8>>,
}

/// The bytes of a compact form by part. Their sum is its length.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CompactSizes {
    /// Keys of leaves.
    pub keys: usize,
    /// Values of leaves.
    pub values: usize,
    /// Hashes of nodes that are not shown.
    pub siblings: usize,
    /// Kinds and lengths of nodes, which children a branch has, and paths of extensions.
    pub structure: usize,
}

/// Why nodes have no compact form, or bytes are not one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CompactError {
    /// A node is malformed.
    #[error("node 0x{}: {error}", Path::from_key(.hash))]
    Node {
        /// The hash of the node, or of the node that it is inlined in.
        hash: Hash,
        /// What is wrong.
        error: NodeError,
    },
    /// A leaf that cannot be where it is, or whose value is not one of this trie.
    #[error(
        "the leaf below path 0x{0} has a key of another length, or a value that no such leaf has"
    )]
    Leaf(Path),
    /// The bytes end within a node.
    #[error("it is cut short at byte {0}")]
    Short(usize),
    /// A byte that no node or trie begins with, or a node that is no such one.
    #[error("at byte {at}: {what}")]
    Malformed {
        /// Where the node begins.
        at: usize,
        /// What is wrong.
        what: &'static str,
    },
}

const NO_LEAVES: u8 = 0;
const HASH: u8 = 1;
const NODE: u8 = 2;
const BRANCH: u8 = 0;
const NIBBLES: u8 = 64;
const LEAF: u8 = 129;

/// Writes the compact form of the nodes in a bag that a root leads to, and measures its parts.
///
/// # Errors
/// [`CompactError::Node`] and [`CompactError::Leaf`]: a node that no state has.
pub fn compact(
    root: Hash,
    nodes: &WitnessNodes,
    leaf: OuterLeaf,
) -> Result<(Vec<u8>, CompactSizes), CompactError> {
    let mut writer = Writer {
        nodes,
        leaf,
        seen: HashSet::new(),
        out: Vec::new(),
        sizes: CompactSizes::default(),
    };
    writer.trie(root, true)?;
    Ok((writer.out, writer.sizes))
}

struct Writer<'a> {
    nodes: &'a WitnessNodes,
    leaf: OuterLeaf,
    /// Nodes that were written.
    seen: HashSet<Hash>,
    out: Vec<u8>,
    sizes: CompactSizes,
}

impl<'a> Writer<'a> {
    fn structure(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        self.sizes.structure += bytes.len();
    }

    fn hash(&mut self, hash: &Hash) {
        self.out.extend_from_slice(hash);
        self.sizes.siblings += hash.len();
    }

    /// The node with a hash, if it is in the bag and was not written before.
    fn take_node(&mut self, hash: &Hash) -> Option<&'a [u8]> {
        let node = self.nodes.get(hash)?;
        self.seen.insert(*hash).then_some(node)
    }

    fn trie(&mut self, root: Hash, is_outer: bool) -> Result<(), CompactError> {
        if root == EMPTY_ROOT {
            self.structure(&[NO_LEAVES]);
            return Ok(());
        }
        let Some(node) = self.take_node(&root) else {
            self.structure(&[HASH]);
            self.hash(&root);
            return Ok(());
        };
        self.structure(&[NODE]);
        self.node(node, root, Path::ROOT, is_outer)
    }

    /// Writes a node at a path; `hash` names it in errors.
    fn node(
        &mut self,
        rlp: &[u8],
        hash: Hash,
        path: Path,
        is_outer: bool,
    ) -> Result<(), CompactError> {
        let node = RlpNode::parse(rlp).map_err(|error| CompactError::Node { hash, error })?;
        let too_deep = CompactError::Node {
            hash,
            error: NodeError::TooDeep,
        };
        match node {
            RlpNode::Branch(_) if path.len() == Path::MAX => Err(too_deep),
            RlpNode::Branch(children) => {
                let follow = children.map(|child| self.child(&child));
                let bits = |has: &dyn Fn(usize) -> bool| {
                    let set = (0..16).filter(|nibble| has(*nibble));
                    set.fold(0u16, |bits, nibble| bits | 0x8000 >> nibble)
                };
                let present = bits(&|nibble| !children[nibble].is_none());
                let following = bits(&|nibble| follow[nibble].is_some());
                self.structure(&[BRANCH]);
                self.structure(&present.to_be_bytes());
                self.structure(&following.to_be_bytes());
                for ((nibble, child), node) in (0..).zip(&children).zip(follow) {
                    match (node, child.as_hash()) {
                        (Some(node), of) => {
                            let rlp = node.rlp();
                            self.node(rlp, of.unwrap_or(hash), path.child(nibble), is_outer)?;
                        }
                        (None, Some(hash)) => self.hash(&hash),
                        (None, None) => {}
                    }
                }
                Ok(())
            }
            RlpNode::Extension(prefix, _) if path.len() + prefix.len() >= Path::MAX => {
                Err(too_deep)
            }
            RlpNode::Extension(prefix, child) => {
                let length = prefix.len() as u8;
                match (self.child(&child), child.as_hash()) {
                    (Some(node), of) => {
                        self.structure(&[length]);
                        self.structure(prefix.packed());
                        self.node(node.rlp(), of.unwrap_or(hash), path.join(&prefix), is_outer)
                    }
                    (None, Some(hash)) => {
                        self.structure(&[NIBBLES + length]);
                        self.structure(prefix.packed());
                        self.hash(&hash);
                        Ok(())
                    }
                    (None, None) => Err(CompactError::Node {
                        hash,
                        error: NodeError::Empty,
                    }),
                }
            }
            RlpNode::Leaf(suffix, value) => self.leaf(&path, &suffix, value, is_outer),
        }
    }

    fn child(&mut self, child: &Reference) -> Option<Child<'a>> {
        match child.as_hash() {
            Some(hash) => self.take_node(&hash).map(Child::InBag),
            None => child.as_inline().map(|_| Child::Inline(*child)),
        }
    }

    fn leaf(
        &mut self,
        path: &Path,
        suffix: &Path,
        value: &[u8],
        is_outer: bool,
    ) -> Result<(), CompactError> {
        let wrong = CompactError::Leaf(*path);
        if path.len() + suffix.len() != Path::MAX {
            return Err(wrong);
        }
        self.structure(&[LEAF]);
        self.out.extend_from_slice(suffix.packed());
        self.sizes.keys += suffix.packed().len();
        let split = match is_outer {
            true => Some((self.leaf.split)(value).ok_or(wrong)?),
            false => None,
        };
        let bytes = split.as_ref().map_or(value, |(bytes, _)| bytes);
        let length = u8::try_from(bytes.len()).map_err(|_| wrong)?;
        self.structure(&[length]);
        self.out.extend_from_slice(bytes);
        self.sizes.values += bytes.len();
        match split {
            Some((_, inner)) => self.trie(inner, false),
            None => Ok(()),
        }
    }
}

/// A child whose node follows.
#[derive(Clone, Copy)]
enum Child<'a> {
    InBag(&'a [u8]),
    Inline(Reference),
}

impl Child<'_> {
    fn rlp(&self) -> &[u8] {
        match self {
            Self::InBag(rlp) => rlp,
            Self::Inline(reference) => reference.as_inline().unwrap_or_default(),
        }
    }
}

/// Reads a compact form: the root that it leads to, and the nodes, each once.
///
/// # Errors
/// [`CompactError`].
pub fn expand(bytes: &[u8], leaf: OuterLeaf) -> Result<(Hash, Vec<Vec<u8>>), CompactError> {
    let mut reader = Reader {
        bytes,
        at: 0,
        leaf,
        nodes: Vec::new(),
        seen: HashSet::new(),
    };
    let root = reader.trie(true)?;
    match reader.at == bytes.len() {
        true => Ok((root, reader.nodes)),
        false => Err(reader.malformed("bytes follow the last node")),
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    leaf: OuterLeaf,
    nodes: Vec<Vec<u8>>,
    seen: HashSet<Hash>,
}

impl<'a> Reader<'a> {
    fn malformed(&self, what: &'static str) -> CompactError {
        CompactError::Malformed { at: self.at, what }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], CompactError> {
        let short = CompactError::Short(self.bytes.len());
        let end = self.at.checked_add(count).ok_or(short)?;
        let taken = self.bytes.get(self.at..end).ok_or(short)?;
        self.at = end;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, CompactError> {
        Ok(self.take(1)?[0])
    }

    fn bits(&mut self) -> Result<u16, CompactError> {
        let bytes = self.take(2)?;
        Ok(u16::from(bytes[0]) << 8 | u16::from(bytes[1]))
    }

    fn hash(&mut self) -> Result<Hash, CompactError> {
        let bytes = self.take(32)?.try_into();
        Ok(bytes.expect("invariant: 32 bytes"))
    }

    /// Reads packed nibbles.
    fn nibbles(&mut self, count: usize) -> Result<Path, CompactError> {
        let bytes = self.take(count.div_ceil(2))?;
        if count % 2 == 1 && bytes.last().is_some_and(|last| last & 15 != 0) {
            return Err(self.malformed("bits that are not zero behind the last nibble"));
        }
        let nibbles = (0..count).map(|index| rlp::nibble(bytes, index));
        Ok(nibbles.fold(Path::ROOT, Path::child))
    }

    fn trie(&mut self, is_outer: bool) -> Result<Hash, CompactError> {
        match self.byte()? {
            NO_LEAVES => Ok(EMPTY_ROOT),
            HASH => self.hash(),
            NODE => {
                let rlp = self.node(Path::ROOT, is_outer)?;
                let hash = keccak256(&rlp);
                self.keep(hash, rlp);
                Ok(hash)
            }
            _ => Err(self.malformed("a trie of unknown kind before this byte")),
        }
    }

    fn keep(&mut self, hash: Hash, rlp: Vec<u8>) {
        if self.seen.insert(hash) {
            self.nodes.push(rlp);
        }
    }

    /// Reads a node that a parent refers to.
    fn child(&mut self, path: Path, is_outer: bool) -> Result<Reference, CompactError> {
        let rlp = self.node(path, is_outer)?;
        let reference = Reference::to_rlp_node(&rlp);
        if let Some(hash) = reference.as_hash() {
            self.keep(hash, rlp);
        }
        Ok(reference)
    }

    fn node(&mut self, path: Path, is_outer: bool) -> Result<Vec<u8>, CompactError> {
        match self.byte()? {
            BRANCH => self.branch(path, is_outer),
            LEAF => self.leaf(path, is_outer),
            first @ 1..=128 => {
                let follows = first <= NIBBLES;
                let count = usize::from(if follows { first } else { first - NIBBLES });
                let prefix = self.nibbles(count)?;
                if path.len() + count >= Path::MAX {
                    return Err(self.malformed("an extension that is deeper than a key is long"));
                }
                let child = match follows {
                    true => self.child(path.join(&prefix), is_outer)?,
                    false => Reference::hash(self.hash()?),
                };
                let mut rlp = Vec::new();
                write_extension(&mut rlp, &prefix, &child);
                Ok(rlp)
            }
            _ => Err(self.malformed("a node of unknown kind before this byte")),
        }
    }

    fn branch(&mut self, path: Path, is_outer: bool) -> Result<Vec<u8>, CompactError> {
        let (present, following) = (self.bits()?, self.bits()?);
        if path.len() == Path::MAX {
            return Err(self.malformed("a branch that is deeper than a key is long"));
        }
        if following & !present != 0 {
            return Err(self.malformed("a branch with the node of a child that it does not have"));
        }
        let mut children = [Reference::NONE; 16];
        for (nibble, child) in (0..).zip(&mut children) {
            let bit = 0x8000 >> nibble;
            *child = match (present & bit != 0, following & bit != 0) {
                (_, true) => self.child(path.child(nibble), is_outer)?,
                (true, false) => Reference::hash(self.hash()?),
                (false, false) => continue,
            };
        }
        let payload: usize = children.iter().map(Reference::encoded_len).sum();
        let mut rlp = Vec::with_capacity(payload + 4);
        rlp::write_list_header(&mut rlp, payload + 1);
        children.iter().for_each(|child| child.write(&mut rlp));
        rlp.push(0x80);
        Ok(rlp)
    }

    fn leaf(&mut self, path: Path, is_outer: bool) -> Result<Vec<u8>, CompactError> {
        let suffix = self.nibbles(Path::MAX - path.len())?;
        let length = usize::from(self.byte()?);
        let bytes = self.take(length)?;
        let wrong = CompactError::Leaf(path);
        let value = match is_outer {
            true => {
                let inner = self.trie(false)?;
                (self.leaf.join)(bytes, &inner).ok_or(wrong)?
            }
            false => bytes.to_vec(),
        };
        if value.is_empty() {
            return Err(wrong);
        }
        let whole = path.join(&suffix);
        let key = whole.packed().try_into();
        let key: Hash = key.expect("invariant: 64 nibbles");
        let mut rlp = Vec::new();
        write_leaf(&mut rlp, &key, path.len(), &value);
        Ok(rlp)
    }
}

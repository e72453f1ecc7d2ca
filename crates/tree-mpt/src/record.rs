//! The record of an inner node: an extension and the branch below it as one.

use arbor_tree::{Hash, Path, PathError};

use crate::node::{NodeError, Reference, RlpNode, write_extension};
use crate::rlp;

/// An inner node: the extension that leads to a branch (empty where there is none) and the branch.
///
/// It hangs at the position right after its parent's nibble, a root at the empty path; its
/// children hang at that position followed by the prefix and their nibble. Leaves have no record,
/// and neither has a branch that its parent inlines (fewer than 32 bytes of RLP).
///
/// # Stored form
/// | bytes | meaning |
/// |---|---|
/// | 1 | length of the prefix in nibbles, 0 to 63 |
/// | ceil(length / 2) | the prefix, the high nibble first; of an odd length the last half byte is 0 |
/// | 2, big-endian | mask of children, bit 0 for nibble 0; at least two bits |
/// | 2, big-endian | mask of children that are leaves |
/// | 2, big-endian | mask of children that are inlined |
/// | for each child by nibble | its 32-byte hash; inlined: one byte length (1 to 31) and its RLP |
///
/// # Bare records
/// A record is bare where only its extension is known and of the branch only the hash. Its prefix
/// has at least one nibble, its masks are all 0, and the branch's 32-byte hash follows them. Witnesses
/// give such records, since a key that parts within an extension needs no branch, and so may overlays
/// over them. No store that holds whole tries has one.
#[derive(Clone, Debug)]
pub struct Record {
    prefix: Path,
    present: u16,
    leaf: u16,
    inline: u16,
    bare: bool,
    /// By nibble; of absent children anything. Hash, or inlined RLP with its length in byte 31.
    /// In a bare record the first is the hash of the branch.
    children: [[u8; 32]; 16],
}

/// Why bytes are not the record of an inner node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecordError {
    /// The prefix is malformed.
    #[error("node record: {0}")]
    Prefix(#[from] PathError),
    /// The bytes end early.
    #[error("node record ends early")]
    Truncated,
    /// A record without children that has no prefix is not even a bare one.
    #[error("node record without children and without a prefix")]
    Childless,
    /// Bytes follow the record.
    #[error("{0} bytes follow the node record")]
    Trailing(usize),
    /// The masks contradict each other, or say fewer than two children.
    #[error(
        "node record with impossible masks: children {present:#06x}, leaves {leaf:#06x}, \
         inlined {inline:#06x}"
    )]
    Masks {
        /// Mask of children.
        present: u16,
        /// Mask of leaves.
        leaf: u16,
        /// Mask of inlined children.
        inline: u16,
    },
    /// An inlined child is not a node of 1 to 31 bytes, or not of the kind the leaf mask says.
    #[error("node record with a malformed inlined child at nibble {0:x}")]
    Inlined(u8),
}

impl Record {
    /// A branch without children yet; not valid until it has two.
    pub(crate) const fn empty(prefix: Path) -> Self {
        Self {
            prefix,
            present: 0,
            leaf: 0,
            inline: 0,
            bare: false,
            children: [[0; 32]; 16],
        }
    }

    /// An extension above a branch of which only the hash is known.
    pub(crate) const fn bare(prefix: Path, branch: Hash) -> Self {
        let mut record = Self::empty(prefix);
        record.bare = true;
        record.children[0] = branch;
        record
    }

    /// The hash of the branch, where nothing else is known of it (see the type's description).
    pub fn bare_branch(&self) -> Option<Hash> {
        self.bare.then_some(self.children[0])
    }

    /// Gives a bare record its branch.
    pub(crate) fn complete(&mut self, branch: &Self) {
        let prefix = self.prefix;
        self.clone_from(branch);
        self.prefix = prefix;
    }

    /// The nibbles of the extension above the branch.
    pub const fn prefix(&self) -> &Path {
        &self.prefix
    }

    pub(crate) const fn set_prefix(&mut self, prefix: Path) {
        self.prefix = prefix;
    }

    /// The mask of children, bit 0 for nibble 0.
    pub const fn children(&self) -> u16 {
        self.present
    }

    /// The mask of children that are leaves.
    pub const fn leaves(&self) -> u16 {
        self.leaf
    }

    /// The hash of a child; `None` where there is none or it is inlined.
    pub fn child_hash(&self, nibble: u8) -> Option<Hash> {
        self.child(nibble).as_hash()
    }

    pub(crate) fn child(&self, nibble: u8) -> Reference {
        let (bit, bytes) = (1 << nibble, &self.children[usize::from(nibble)]);
        if self.present & bit == 0 {
            Reference::NONE
        } else if self.inline & bit == 0 {
            Reference::hash(*bytes)
        } else {
            Reference::inline(&bytes[..usize::from(bytes[31])])
        }
    }

    /// Puts a child (or none) at a nibble.
    pub(crate) fn set_child(&mut self, nibble: u8, child: &Reference, leaf: bool) {
        let bit = 1 << nibble;
        self.present |= bit;
        self.inline &= !bit;
        self.leaf &= !bit;
        if leaf {
            self.leaf |= bit;
        }
        let bytes = &mut self.children[usize::from(nibble)];
        match (child.as_hash(), child.as_inline()) {
            (Some(hash), _) => *bytes = hash,
            (_, Some(rlp)) => {
                self.inline |= bit;
                bytes[..rlp.len()].copy_from_slice(rlp);
                bytes[31] = rlp.len() as u8;
            }
            _ => self.present &= !bit,
        }
    }

    /// Marks a child as present whose reference is not known yet, and keeps a number in its place.
    pub(crate) fn set_link(&mut self, nibble: u8, link: u32, leaf: bool) {
        self.set_child(nibble, &Reference::hash([0; 32]), leaf);
        self.children[usize::from(nibble)][..4].copy_from_slice(&link.to_le_bytes());
    }

    /// Reads the number kept by [`set_link`](Self::set_link).
    pub(crate) fn link(&self, nibble: u8) -> u32 {
        let bytes = self.children[usize::from(nibble)].first_chunk::<4>();
        u32::from_le_bytes(*bytes.expect("invariant: 32 bytes"))
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When the bytes are not exactly one well-formed record.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut record = Self::empty(Path::ROOT);
        record.read(bytes)?;
        Ok(record)
    }

    /// Reads the stored form in place; after an error the record is of no use.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        let (prefix, rest) = Path::decode_front(bytes)?;
        if prefix.len() == Path::MAX {
            return Err(PathError::TooLong(64).into());
        }
        let (masks, mut rest) = rest
            .split_first_chunk::<6>()
            .ok_or(RecordError::Truncated)?;
        let mask = |at: usize| u16::from_be_bytes([masks[at], masks[at + 1]]);
        self.prefix = prefix;
        (self.present, self.leaf, self.inline) = (mask(0), mask(2), mask(4));
        self.bare = *masks == [0; 6];
        if self.bare {
            if prefix.is_empty() {
                return Err(RecordError::Childless);
            }
            (self.children[0], rest) = split_hash(rest)?;
        } else {
            self.check_masks()?;
        }
        for nibble in bits(self.present) {
            let child = &mut self.children[usize::from(nibble)];
            if self.inline & (1 << nibble) == 0 {
                (*child, rest) = split_hash(rest)?;
            } else {
                let (&len, after) = rest.split_first().ok_or(RecordError::Truncated)?;
                let size = usize::from(len);
                let rlp = after.get(..size).ok_or(RecordError::Truncated)?;
                let leaf = self.leaf & (1 << nibble) != 0;
                check_inlined(rlp, leaf).ok_or(RecordError::Inlined(nibble))?;
                child[..size].copy_from_slice(rlp);
                child[31] = len;
                rest = &after[size..];
            }
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(RecordError::Trailing(rest.len()))
        }
    }

    fn check_masks(&self) -> Result<(), RecordError> {
        let subset = (self.leaf | self.inline) & !self.present == 0;
        if subset && self.present.count_ones() >= 2 {
            return Ok(());
        }
        Err(RecordError::Masks {
            present: self.present,
            leaf: self.leaf,
            inline: self.inline,
        })
    }

    /// Appends the stored form.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        self.prefix.encode_into(out);
        for mask in [self.present, self.leaf, self.inline] {
            out.extend_from_slice(&mask.to_be_bytes());
        }
        if self.bare {
            out.extend_from_slice(&self.children[0]);
        }
        for nibble in bits(self.present) {
            let bytes = &self.children[usize::from(nibble)];
            if self.inline & (1 << nibble) == 0 {
                out.extend_from_slice(bytes);
            } else {
                out.push(bytes[31]);
                out.extend_from_slice(&bytes[..usize::from(bytes[31])]);
            }
        }
    }

    /// Appends the RLP of the branch, without the extension above it; a [bare](Self::bare_branch)
    /// record has none to give.
    pub fn write_branch(&self, out: &mut Vec<u8>) {
        let absent = 17 - self.present.count_ones() as usize;
        let hashes = (self.present & !self.inline).count_ones() as usize;
        let inlined: usize = bits(self.inline)
            .map(|nibble| usize::from(self.children[usize::from(nibble)][31]))
            .sum();
        rlp::write_list_header(out, absent + 33 * hashes + inlined);
        let start = out.len();
        // What absent children are, and the value behind them all.
        out.resize(start + absent + 33 * hashes + inlined, 0x80);
        let mut rest = &mut out[start..];
        for (nibble, bytes) in (0u8..).zip(&self.children) {
            let bit = 1 << nibble;
            let taken = if self.present & bit == 0 {
                1
            } else if self.inline & bit == 0 {
                rest[0] = 0xa0;
                rest[1..33].copy_from_slice(bytes);
                33
            } else {
                let length = usize::from(bytes[31]);
                rest[..length].copy_from_slice(&bytes[..length]);
                length
            };
            rest = &mut rest[taken..];
        }
    }

    /// Appends the RLP of the extension, given how it refers to the branch.
    pub(crate) fn write_extension(&self, out: &mut Vec<u8>, branch: &Reference) {
        write_extension(out, &self.prefix, branch);
    }

    /// Returns the RLP nodes that the record stands for, the upper first (the extension where there
    /// is one, then the branch if it is known), and how a parent refers to the upper.
    pub(crate) fn rlp_nodes(&self) -> (Vec<Vec<u8>>, Reference) {
        if let Some(branch) = self.bare_branch() {
            let mut extension = Vec::new();
            self.write_extension(&mut extension, &Reference::hash(branch));
            let reference = Reference::to_rlp_node(&extension);
            return (vec![extension], reference);
        }
        let mut branch = Vec::new();
        self.write_branch(&mut branch);
        let below = Reference::to_rlp_node(&branch);
        if self.prefix.is_empty() {
            return (vec![branch], below);
        }
        let mut extension = Vec::new();
        self.write_extension(&mut extension, &below);
        let reference = Reference::to_rlp_node(&extension);
        let inlined = below.as_hash().is_none();
        let nodes = if inlined {
            vec![extension]
        } else {
            vec![extension, branch]
        };
        (nodes, reference)
    }

    /// Builds the record of a branch, or of an extension and its branch, from RLP; `None` for a leaf.
    ///
    /// `find` returns the RLP of a node by its hash. A child that it does not know counts as an
    /// inner node; where it does not know the branch below an extension the record is bare.
    pub(crate) fn from_rlp<'a>(
        rlp: &[u8],
        find: &dyn Fn(&Hash) -> Option<&'a [u8]>,
    ) -> Result<Option<Self>, NodeError> {
        match RlpNode::parse(rlp)? {
            RlpNode::Leaf(..) => Ok(None),
            RlpNode::Branch(children) => Self::from_branch(Path::ROOT, &children, find).map(Some),
            RlpNode::Extension(prefix, child) => {
                if prefix.len() == Path::MAX {
                    return Err(NodeError::TooDeep);
                }
                let below = match (child.as_hash(), child.as_inline()) {
                    (Some(hash), _) => match find(&hash) {
                        Some(rlp) => rlp,
                        None => return Ok(Some(Self::bare(prefix, hash))),
                    },
                    (_, Some(rlp)) => rlp,
                    _ => return Err(NodeError::Empty),
                };
                match RlpNode::parse(below)? {
                    RlpNode::Branch(children) => {
                        Self::from_branch(prefix, &children, find).map(Some)
                    }
                    _ => Err(NodeError::NotMinimal),
                }
            }
        }
    }

    fn from_branch<'a>(
        prefix: Path,
        children: &[Reference; 16],
        find: &dyn Fn(&Hash) -> Option<&'a [u8]>,
    ) -> Result<Self, NodeError> {
        let mut record = Self::empty(prefix);
        for (nibble, child) in (0..).zip(children) {
            let hash = child.as_hash();
            let rlp = child.as_inline().or_else(|| find(&hash?));
            let node = rlp.map(RlpNode::parse).transpose()?;
            let leaf = matches!(node, Some(RlpNode::Leaf(..)));
            record.set_child(nibble, child, leaf);
        }
        match record.check_masks() {
            Ok(()) => Ok(record),
            Err(_) => Err(NodeError::NotMinimal),
        }
    }
}

/// Iterates over the bits set, from nibble 0 on.
pub(crate) fn bits(mut mask: u16) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let nibble = mask.trailing_zeros() as u8;
        (mask != 0).then(|| {
            mask &= mask - 1;
            nibble
        })
    })
}

fn split_hash(bytes: &[u8]) -> Result<(Hash, &[u8]), RecordError> {
    let (hash, rest) = bytes.split_first_chunk().ok_or(RecordError::Truncated)?;
    Ok((*hash, rest))
}

fn check_inlined(rlp: &[u8], leaf: bool) -> Option<()> {
    if !(1..32).contains(&rlp.len()) {
        return None;
    }
    let node = RlpNode::parse(rlp).ok()?;
    (matches!(node, RlpNode::Leaf(..)) == leaf).then_some(())
}

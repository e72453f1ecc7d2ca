//! What is stored: the branches of some levels together.
//!
//! A record lies at a path of a multiple of [`Packing::levels`] bits. It has all branches whose
//! paths begin with its own and have fewer than `levels` bits more. They form one tree, whose top
//! is the record's first entry; what hangs below it is a leaf or the top of another record. The
//! record of the root has the tree's top whatever it is, and before it a byte with the packing of
//! all records: the levels, and 16 more with inner hashes. So the records follow from the contents
//! of the tree.
//!
//! Entries stand in the order of their paths, each branch before its children. The first byte has
//! the kind in its lower two bits.
//!
//! | kind | entry | upper six bits of the first byte |
//! |---|---|---|
//! | 0 | branch | bits of its path that the entry has: those behind the branch above it, for the top those behind the record's path; if there are any, a byte has them in its upper bits |
//! | 1 | branch with its hash | as above; the hash (32 bytes) follows the bits |
//! | 2 | leaf | 1 for a key of 34 bytes, 2 for one of 66, 3 for one of 32; 0 for any other, whose length is the next byte. Then the key from the byte on that has the first bit behind the branch above, the length of the value without its leading zeros, and those bytes |
//! | 3 | top of another record | 0. Then the number of bits of its path (2 bytes, big-endian), the path from that byte on, and the hash |
//!
//! A leaf has its whole key and its value, so that it can be moved and proven without being looked
//! up: nothing outside leads from a hashed key back to a name. Its hash and those of branches in a
//! record are stored only under [`Packing::inner_hashes`] (a leaf's behind its value), and never
//! that of the top, which the record above has. Without them a change computes all hashes of the
//! records on its way, many of them at once.

use crate::arena::{Arena, Id, Kind, Node};
use crate::node_hash::{NodeHash, NodeKind, Value};
use crate::path::LONGEST_KEY;
use crate::{Hash, Path};

/// How branches are packed into records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packing {
    /// Levels of a record, 1 to 8.
    pub levels: u8,
    /// Whether the hashes of leaves and of branches within a record are stored, so that a change
    /// computes those on its way alone.
    pub inner_hashes: bool,
}

impl Packing {
    /// The packing with so many levels, 1 to 8, without inner hashes; `None` for another number.
    #[must_use]
    pub fn of_levels(levels: u64) -> Option<Self> {
        let levels = u8::try_from(levels).ok().filter(|n| (1..=8).contains(n))?;
        Some(Self {
            levels,
            inner_hashes: false,
        })
    }

    /// The packing that the record of a root says.
    #[must_use]
    pub fn of_root(record: &[u8]) -> Option<Self> {
        let byte = record.first()?;
        let packing = Self::of_levels(u64::from(byte & !INNER_HASHES))?;
        Some(Self {
            inner_hashes: byte & INNER_HASHES != 0,
            ..packing
        })
    }

    fn byte(self) -> u8 {
        let inner = if self.inner_hashes { INNER_HASHES } else { 0 };
        self.levels | inner
    }

    /// The path of the record that has the branch at a path.
    #[must_use]
    pub fn record_of(self, branch: &Path) -> Path {
        let levels = usize::from(self.levels);
        branch.prefix(branch.len() / levels * levels)
    }
}

/// Of the root's first byte: hashes are stored within records.
const INNER_HASHES: u8 = 16;

/// Four levels, as many as a branch of Merkle-Patricia has.
impl Default for Packing {
    fn default() -> Self {
        Self {
            levels: 4,
            inner_hashes: false,
        }
    }
}

/// Why bytes are not a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecordError {
    /// The bytes end within an entry.
    #[error("it is cut short")]
    Short,
    /// Bytes follow the last entry.
    #[error("{0} bytes follow its last entry")]
    Trailing(usize),
    /// An entry's first byte that none has.
    #[error("an entry begins with {0:#04x}")]
    Kind(u8),
    /// A path that is not below the entry above, or not where such an entry is.
    #[error("an entry of {0} bits is not where its path leads")]
    Place(usize),
    /// The record of a root that says another packing, or none that there is.
    #[error("it begins with {0:#04x}, which is not the packing of its tree")]
    Packing(u8),
    /// A value with leading zeros, or of zeros in a tree that does not have them.
    #[error("the value of a leaf has {0} bytes with a leading zero, or none at all")]
    Value(usize),
    /// A hash of an inner branch where the packing has none, or none where it has one.
    #[error("a branch of {0} bits has a hash or lacks one, against the packing")]
    InnerHash(usize),
}

const BRANCH: u8 = 0;
const BRANCH_WITH_HASH: u8 = 1;
const LEAF: u8 = 2;
const OTHER: u8 = 3;

/// Lengths of keys, in bytes, that a leaf's first byte can name: EIP-8297's of accounts and code,
/// and of storage; EIP-7864's.
const LENGTHS: [usize; 3] = [34, 66, 32];

/// Writes the record at a path, whose top is a node with a known hash, behind what is in `out`.
pub(crate) fn encode(arena: &Arena, packing: Packing, path: &Path, top: Id, out: &mut Vec<u8>) {
    let encoder = Encoder {
        arena,
        packing,
        path,
    };
    if path.is_empty() {
        out.push(packing.byte());
    }
    encoder.entry(top, path.len(), true, out);
}

/// Whether the branch at a path is in a record.
fn has(packing: Packing, record: &Path, branch: &Path) -> bool {
    branch.len() < record.len() + usize::from(packing.levels)
}

struct Encoder<'a> {
    arena: &'a Arena,
    packing: Packing,
    path: &'a Path,
}

impl Encoder<'_> {
    /// Writes the entry of a node, of whose path the first `start` bits are known.
    fn entry(&self, id: Id, start: usize, is_top: bool, out: &mut Vec<u8>) {
        let node = self.arena.get(id);
        let path = &node.path;
        match node.kind {
            Kind::Branch(children) if has(self.packing, self.path, path) => {
                let has_hash = self.packing.inner_hashes && !is_top;
                let kind = if has_hash { BRANCH_WITH_HASH } else { BRANCH };
                let bits = path.len() - start;
                out.push(kind | (bits as u8) << 2);
                if bits > 0 {
                    path.write_bits(start, path.len(), out);
                }
                if has_hash {
                    out.extend_from_slice(&node.hash);
                }
                for child in children {
                    self.entry(child, path.len() + 1, false, out);
                }
            }
            Kind::Leaf { value } => {
                let bytes = path.len() / 8;
                match LENGTHS.iter().position(|length| *length == bytes) {
                    Some(place) => out.push(LEAF | (place as u8 + 1) << 2),
                    None => out.extend([LEAF, bytes as u8]),
                }
                out.extend_from_slice(&path.packed()[start / 8..]);
                let zeros = value.iter().take_while(|byte| **byte == 0).count();
                out.push((value.len() - zeros) as u8);
                out.extend_from_slice(&value[zeros..]);
                if self.packing.inner_hashes {
                    out.extend_from_slice(&node.hash);
                }
            }
            Kind::Branch(_) | Kind::Unread | Kind::Unknown => {
                out.push(OTHER);
                out.extend((path.len() as u16).to_be_bytes());
                out.extend_from_slice(&path.packed()[start / 8..]);
                out.extend_from_slice(&node.hash);
            }
        }
    }
}

/// Reads the record at a path into the arena and returns its top. The top and, without inner
/// hashes, all branches have no hash yet.
///
/// # Errors
/// [`RecordError`].
pub(crate) fn decode<H: NodeHash>(
    arena: &mut Arena,
    packing: Packing,
    path: &Path,
    bytes: &[u8],
) -> Result<Id, RecordError> {
    let mut decoder = Decoder {
        arena,
        packing,
        path,
        rest: bytes,
        has_zeros: H::Value::HAS_ZEROS,
    };
    if path.is_empty() && decoder.take(1)?[0] != packing.byte() {
        return Err(RecordError::Packing(bytes[0]));
    }
    let top = decoder.entry(path, true)?;
    match decoder.rest.len() {
        0 => Ok(top),
        more => Err(RecordError::Trailing(more)),
    }
}

struct Decoder<'a> {
    arena: &'a mut Arena,
    packing: Packing,
    path: &'a Path,
    rest: &'a [u8],
    /// Whether a leaf can have a value of zeros, which has no bytes.
    has_zeros: bool,
}

impl Decoder<'_> {
    fn take(&mut self, bytes: usize) -> Result<&[u8], RecordError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(bytes)
            .ok_or(RecordError::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn hash(&mut self) -> Result<Hash, RecordError> {
        let (hash, rest) = self.rest.split_first_chunk().ok_or(RecordError::Short)?;
        self.rest = rest;
        Ok(*hash)
    }

    /// Reads an entry of which the first bits of the path are known.
    fn entry(&mut self, known: &Path, is_top: bool) -> Result<Id, RecordError> {
        let first = self.take(1)?[0];
        let upper = first >> 2;
        match first & 3 {
            kind @ (BRANCH | BRANCH_WITH_HASH) => {
                self.branch(known, usize::from(upper), kind == BRANCH_WITH_HASH, is_top)
            }
            LEAF => {
                let length = match upper {
                    0 => usize::from(self.take(1)?[0]),
                    1..=3 => LENGTHS[usize::from(upper) - 1],
                    _ => return Err(RecordError::Kind(first)),
                };
                if upper == 0 && LENGTHS.contains(&length) {
                    return Err(RecordError::Kind(first));
                }
                let path = self.rest_of_path(known, 8 * length, is_top)?;
                let value = self.value()?;
                let hash = match self.packing.inner_hashes {
                    true => Some(self.hash()?),
                    false => None,
                };
                Ok(self.add(path, known.len(), Kind::Leaf { value }, hash))
            }
            _ if upper > 0 => Err(RecordError::Kind(first)),
            _ => {
                let bits = self.take(2)?;
                let bits = usize::from(bits[0]) << 8 | usize::from(bits[1]);
                let path = self.rest_of_path(known, bits, is_top)?;
                match has(self.packing, self.path, &path) {
                    true => Err(RecordError::Place(bits)),
                    false => {
                        let hash = Some(self.hash()?);
                        Ok(self.add(path, known.len(), Kind::Unread, hash))
                    }
                }
            }
        }
    }

    fn value(&mut self) -> Result<Hash, RecordError> {
        let has_zeros = self.has_zeros;
        let length = usize::from(self.take(1)?[0]);
        let error = RecordError::Value(length);
        let bytes = self.take(length)?;
        let mut value = [0; 32];
        let end = 32usize
            .checked_sub(length)
            .and_then(|from| value.get_mut(from..));
        match (end, bytes.first()) {
            (Some(end), Some(first)) if *first != 0 => end.copy_from_slice(bytes),
            (Some(_), None) if has_zeros => {}
            _ => return Err(error),
        }
        Ok(value)
    }

    /// Adds a node, whose hash may be known.
    fn add(&mut self, path: Path, start: usize, kind: Kind, hash: Option<Hash>) -> Id {
        self.arena.add(Node {
            path,
            start: start as u16,
            kind,
            is_dirty: hash.is_none(),
            hash: hash.unwrap_or_default(),
        })
    }

    /// Reads the rest of a path of so many bits. Only the record of the root has a top that is not
    /// its own.
    fn rest_of_path(
        &mut self,
        known: &Path,
        bits: usize,
        is_top: bool,
    ) -> Result<Path, RecordError> {
        if bits > 8 * LONGEST_KEY || bits < known.len() || is_top && !self.path.is_empty() {
            return Err(RecordError::Place(bits));
        }
        let whole = known.len() / 8;
        let rest = self.take(bits.div_ceil(8) - whole)?;
        let path = known.with_rest(bits, rest);
        let path = path.map_err(|_| RecordError::Place(bits))?;
        match known.packed().get(whole) {
            // The byte in which the known bits end comes again.
            Some(byte) if (path.packed()[whole] ^ byte) >> (8 - known.len() % 8) != 0 => {
                Err(RecordError::Place(bits))
            }
            _ => Ok(path),
        }
    }

    fn branch(
        &mut self,
        known: &Path,
        bits: usize,
        has_hash: bool,
        is_top: bool,
    ) -> Result<Id, RecordError> {
        let len = known.len() + bits;
        let most = self.path.len() + usize::from(self.packing.levels);
        if len >= most || len >= 8 * LONGEST_KEY {
            return Err(RecordError::Place(len));
        }
        let mut path = *known;
        if bits > 0 {
            let byte = self.take(1)?[0];
            if byte << bits != 0 {
                return Err(RecordError::Place(len));
            }
            for bit in 0..bits {
                path = path.with_bit(byte >> (7 - bit) & 1 == 1);
            }
        }
        if has_hash != (self.packing.inner_hashes && !is_top) {
            return Err(RecordError::InnerHash(len));
        }
        let hash = match has_hash {
            true => Some(self.hash()?),
            false => None,
        };
        let id = self.add(path, known.len(), Kind::Unread, hash);
        let left = self.entry(&path.with_bit(false), false)?;
        let right = self.entry(&path.with_bit(true), false)?;
        self.arena.get_mut(id).kind = Kind::Branch([left, right]);
        Ok(id)
    }
}

/// Reads the record at a path and writes it again: the same bytes, or an error.
///
/// # Errors
/// [`RecordError`].
pub fn rewrite<H: NodeHash>(
    packing: Packing,
    path: &Path,
    bytes: &[u8],
) -> Result<Vec<u8>, RecordError> {
    let mut arena = Arena::default();
    let top = decode::<H>(&mut arena, packing, path, bytes)?;
    let mut out = Vec::new();
    encode(&arena, packing, path, top, &mut out);
    Ok(out)
}

/// A branch or leaf of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// What it is.
    pub kind: NodeKind,
    /// Bits of its path above it: for a leaf those down to the branch above, with the bit that
    /// leads to it.
    pub depth: usize,
}

/// The branches and leaves of the record at a path.
///
/// # Errors
/// [`RecordError`].
pub fn entries<H: NodeHash>(
    packing: Packing,
    path: &Path,
    bytes: &[u8],
) -> Result<Vec<Entry>, RecordError> {
    let mut arena = Arena::default();
    let top = decode::<H>(&mut arena, packing, path, bytes)?;
    let (mut entries, mut next) = (Vec::new(), vec![top]);
    while let Some(id) = next.pop() {
        let node = arena.get(id);
        let (kind, depth) = match node.kind {
            Kind::Leaf { .. } => (NodeKind::Leaf, usize::from(node.start)),
            Kind::Branch(children) => {
                next.extend(children);
                (NodeKind::Branch, node.path.len())
            }
            Kind::Unread | Kind::Unknown => continue,
        };
        entries.push(Entry { kind, depth });
    }
    Ok(entries)
}

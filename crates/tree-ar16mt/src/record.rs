//! What is stored of a node.
//!
//! A bitmap of two bits a nibble (4 bytes, big-endian; nibble `i` at bit `2i`): 0 no child, 1 a node, 2 a leaf. Then for each child, ascending, its
//! subtree's hash, 32 bytes, at the level below the node. For a leaf that lies above the checkpoint there follow its fold, 32 bytes, and the nibbles of its key
//! from its level to the checkpoint, the high one first, a last half byte 0. Everything follows from the leaves below, so a tree has one form.

use arbor_tree::Path;

use crate::{CHECKPOINT, Hash};

/// Nibbles of a key above the checkpoint.
pub(crate) const STEM_NIBBLES: usize = CHECKPOINT / 4;
/// Bytes of them.
pub(crate) const STEM: usize = CHECKPOINT / 8;

/// A leaf, as the node above it knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// The hash of the subtree that has it alone, at the level below the node.
    pub hash: Hash,
    /// The same at the checkpoint; zeros for a leaf that lies below it.
    pub fold: Hash,
    /// The first 48 bits of its key; for a leaf below the checkpoint those of the path.
    pub stem: [u8; STEM],
}

impl Leaf {
    /// The bits of its key that are known, zeros behind them.
    pub(crate) fn known_key(&self) -> Hash {
        let mut key = [0; 32];
        key[..STEM].copy_from_slice(&self.stem);
        key
    }

    /// The longest path that it is known to lie below, of a leaf that hangs at one: hardly another leaf is there, in whichever version.
    pub(crate) fn way(&self, at: &Path) -> Path {
        match at.len() < STEM_NIBBLES {
            true => Path::prefix_of_key(&self.known_key(), STEM_NIBBLES),
            false => *at,
        }
    }
}

/// A child of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Child {
    /// A node, by the hash of its subtree.
    Internal(Hash),
    /// A leaf.
    Leaf(Leaf),
}

impl Child {
    /// The subtree's hash.
    #[must_use]
    pub fn hash(&self) -> &Hash {
        match self {
            Self::Internal(hash) => hash,
            Self::Leaf(leaf) => &leaf.hash,
        }
    }
}

/// A node: its children by nibble, ascending.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// The children.
    pub children: Vec<(u8, Child)>,
}

/// Why bytes are not a node's record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecordError {
    /// Shorter or longer than the bitmap says.
    #[error("{actual} bytes, where its children take {expected}")]
    Length {
        /// Bytes that it should have.
        expected: usize,
        /// Bytes there are.
        actual: usize,
    },
    /// A child of an unknown kind.
    #[error("its child {0:x} is neither a node nor a leaf")]
    Kind(u8),
    /// No children at all.
    #[error("it has no children")]
    Empty,
    /// A node where only leaves can be.
    #[error("a node at the lowest level, which has leaves alone")]
    Low,
    /// A half byte that should be zero.
    #[error("the nibbles of its leaf {0:x} do not end in a zero")]
    Padding(u8),
}

const INTERNAL: u32 = 1;
const LEAF: u32 = 2;

/// Bytes of a leaf's entry besides its hash, for a leaf whose path has this many nibbles.
fn leaf_bytes(nibbles: usize) -> usize {
    match STEM_NIBBLES.checked_sub(nibbles) {
        None | Some(0) => 0,
        Some(rest) => 32 + rest.div_ceil(2),
    }
}

impl Record {
    /// The bytes of the record of a node at a path.
    #[must_use]
    pub fn encode(&self, path: &Path) -> Vec<u8> {
        let mut out = Vec::new();
        let children = self.children.iter();
        encode(
            path,
            children.map(|(nibble, child)| (*nibble, child)),
            &mut out,
        );
        out
    }

    /// Reads the record of a node at a path.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn decode(path: &Path, bytes: &[u8]) -> Result<Self, RecordError> {
        let children = decode(path, bytes, |child| child)?;
        Ok(Self { children })
    }
}

/// Writes the bytes of the record of a node at a path over what is in `out`.
pub(crate) fn encode<'c>(
    path: &Path,
    children: impl Iterator<Item = (u8, &'c Child)>,
    out: &mut Vec<u8>,
) {
    let nibbles = path.len() + 1;
    let mut bitmap = 0u32;
    out.clear();
    out.extend([0; 4]);
    for (nibble, child) in children {
        let kind = match child {
            Child::Internal(_) => INTERNAL,
            Child::Leaf(_) => LEAF,
        };
        bitmap |= kind << (2 * nibble);
        out.extend_from_slice(child.hash());
        if let Child::Leaf(leaf) = child
            && leaf_bytes(nibbles) > 0
        {
            out.extend_from_slice(&leaf.fold);
            put_tail(out, &leaf.stem, nibbles);
        }
    }
    out[..4].copy_from_slice(&bitmap.to_be_bytes());
}

/// Reads the record of a node at a path, as [`Record::decode`] does, and makes something else of each child.
pub(crate) fn decode<T>(
    path: &Path,
    bytes: &[u8],
    of: impl Fn(Child) -> T,
) -> Result<Vec<(u8, T)>, RecordError> {
    if path.len() == Path::MAX {
        return Err(RecordError::Low);
    }
    let nibbles = path.len() + 1;
    let actual = bytes.len();
    let Some((bitmap, mut rest)) = bytes.split_first_chunk::<4>() else {
        return Err(RecordError::Length {
            expected: 4,
            actual,
        });
    };
    let bitmap = u32::from_be_bytes(*bitmap);
    let kinds = (0..16u8).map(|nibble| (nibble, bitmap >> (2 * nibble) & 3));
    let mut expected = 4;
    for (nibble, kind) in kinds.clone() {
        expected += match kind {
            0 => 0,
            INTERNAL => 32,
            LEAF => 32 + leaf_bytes(nibbles),
            _ => return Err(RecordError::Kind(nibble)),
        };
    }
    if bitmap == 0 {
        return Err(RecordError::Empty);
    }
    if actual != expected {
        return Err(RecordError::Length { expected, actual });
    }
    let kinds = kinds.filter(|(_, kind)| *kind > 0);
    let mut children = Vec::with_capacity(kinds.clone().count());
    let above = stem_of(path);
    for (nibble, kind) in kinds {
        let place = (nibbles, &above, nibble);
        let child = take_child(place, kind, &mut rest)?;
        children.push((nibble, of(child)));
    }
    Ok(children)
}

/// The nibbles of a path above the checkpoint, zeros behind them.
fn stem_of(path: &Path) -> [u8; STEM] {
    let mut stem = [0; STEM];
    let known = path.packed().len().min(STEM);
    stem[..known].copy_from_slice(&path.packed()[..known]);
    stem
}

/// Reads the child, whose path has so many nibbles, of a node with this stem under a nibble, and steps over its bytes, of which there must be enough.
fn take_child(
    (nibbles, above, nibble): (usize, &[u8; STEM], u8),
    kind: u32,
    rest: &mut &[u8],
) -> Result<Child, RecordError> {
    let mut take = |length: usize| {
        let (head, tail) = rest.split_at(length);
        *rest = tail;
        head
    };
    let mut hash = [0; 32];
    hash.copy_from_slice(take(32));
    if kind == INTERNAL {
        return Ok(Child::Internal(hash));
    }
    let mut leaf = Leaf {
        hash,
        fold: [0; 32],
        stem: *above,
    };
    if nibbles <= STEM_NIBBLES {
        leaf.stem[(nibbles - 1) / 2] |= nibble << (4 * (nibbles % 2));
    }
    match nibbles {
        _ if leaf_bytes(nibbles) > 0 => {
            leaf.fold.copy_from_slice(take(32));
            let tail = take(leaf_bytes(nibbles) - 32);
            take_tail(&mut leaf.stem, tail, nibbles).ok_or(RecordError::Padding(nibble))?;
        }
        STEM_NIBBLES => leaf.fold = hash,
        _ => {}
    }
    Ok(Child::Leaf(leaf))
}

/// A record whose children are decoded when they are asked for.
pub(crate) struct View<'a> {
    path: &'a Path,
    bitmap: u32,
    children: &'a [u8],
}

impl<'a> View<'a> {
    /// Looks at the record of a node at a path.
    pub(crate) fn new(path: &'a Path, bytes: &'a [u8]) -> Result<Self, RecordError> {
        if path.len() == Path::MAX {
            return Err(RecordError::Low);
        }
        let actual = bytes.len();
        let Some((bitmap, children)) = bytes.split_first_chunk::<4>() else {
            return Err(RecordError::Length {
                expected: 4,
                actual,
            });
        };
        let bitmap = u32::from_be_bytes(*bitmap);
        let (leaves, internals) = (bitmap >> 1 & 0x5555_5555, bitmap & 0x5555_5555);
        if leaves & internals != 0 {
            let nibble = (leaves & internals).trailing_zeros() / 2;
            return Err(RecordError::Kind(nibble as u8));
        }
        if bitmap == 0 {
            return Err(RecordError::Empty);
        }
        let leaf = leaf_bytes(path.len() + 1) * leaves.count_ones() as usize;
        let expected = 4 + 32 * bitmap.count_ones() as usize + leaf;
        if actual != expected {
            return Err(RecordError::Length { expected, actual });
        }
        Ok(Self {
            path,
            bitmap,
            children,
        })
    }

    /// The hashes of the children by nibble, ascending.
    pub(crate) fn hashes(&self) -> impl Iterator<Item = (u8, &'a Hash)> {
        let tail = leaf_bytes(self.path.len() + 1);
        let (bitmap, mut rest) = (self.bitmap, self.children);
        (0..16u8).filter_map(move |nibble| {
            let kind = bitmap >> (2 * nibble) & 3;
            if kind == 0 {
                return None;
            }
            let (hash, behind) = rest.split_first_chunk()?;
            rest = &behind[if kind == LEAF { tail } else { 0 }..];
            Some((nibble, hash))
        })
    }

    /// The child under a nibble.
    pub(crate) fn child(&self, nibble: u8) -> Result<Option<Child>, RecordError> {
        let kind = self.bitmap >> (2 * nibble) & 3;
        if kind == 0 {
            return Ok(None);
        }
        let nibbles = self.path.len() + 1;
        let before = self.bitmap & ((1 << (2 * nibble)) - 1);
        let leaves = (before & 0xaaaa_aaaa).count_ones() as usize;
        let start = 32 * before.count_ones() as usize + leaf_bytes(nibbles) * leaves;
        let mut child = &self.children[start..];
        let above = stem_of(self.path);
        take_child((nibbles, &above, nibble), kind, &mut child).map(Some)
    }
}

/// A path's bytes, zeros behind them.
pub(crate) fn padded(path: &Path) -> Hash {
    let mut bytes = [0; 32];
    bytes[..path.packed().len()].copy_from_slice(path.packed());
    bytes
}

/// Appends a stem's nibbles from the one given on.
fn put_tail(out: &mut Vec<u8>, stem: &[u8; STEM], from: usize) {
    if from.is_multiple_of(2) {
        out.extend_from_slice(&stem[from / 2..]);
        return;
    }
    let after = stem[from / 2 + 1..].iter().chain([&0]);
    let shifted = stem[from / 2..].iter().zip(after);
    out.extend(shifted.map(|(high, low)| high << 4 | low >> 4));
}

/// Sets a stem's nibbles from the one given on; none if they do not end in a zero where half a byte is left.
fn take_tail(stem: &mut [u8; STEM], tail: &[u8], from: usize) -> Option<()> {
    if from.is_multiple_of(2) {
        stem[from / 2..].copy_from_slice(tail);
        return Some(());
    }
    for (place, byte) in tail.iter().enumerate() {
        stem[from / 2 + place] |= byte >> 4;
        match stem.get_mut(from / 2 + place + 1) {
            Some(next) => *next = byte << 4,
            None if byte & 15 != 0 => return None,
            None => {}
        }
    }
    Some(())
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn leaf(path: &Path, nibble: u8, rest: u8) -> Child {
        let child = path.child(nibble);
        let mut stem = [rest; STEM];
        let known = child.len().min(STEM_NIBBLES);
        for at in 0..known {
            let (byte, shift) = (&mut stem[at / 2], 4 * (1 - at % 2));
            *byte = *byte & !(15 << shift) | child.nibble(at) << shift;
        }
        let fold = match child.len() {
            0..STEM_NIBBLES => [0xcd; 32],
            STEM_NIBBLES => [0xab; 32],
            _ => [0; 32],
        };
        let hash = [0xab; 32];
        Child::Leaf(Leaf { hash, fold, stem })
    }

    #[test]
    fn stored_bytes_are_fixed() {
        let path = Path::from_nibbles(&[1, 2]);
        let children = vec![(0, Child::Internal([7; 32])), (15, leaf(&path, 15, 0x34))];
        let bytes = Record { children }.encode(&path);
        let expected = [
            "80000001",
            &"07".repeat(32),
            &"ab".repeat(32),
            &"cd".repeat(32),
            // The nibbles after 12f.
            "4343434340",
        ];
        assert_eq!(const_hex::encode(bytes), expected.concat());
    }

    #[test]
    fn malformed_records_are_errors() {
        let path = Path::from_nibbles(&[1, 2]);
        let children = vec![(0, Child::Internal([7; 32])), (15, leaf(&path, 15, 0x34))];
        let bytes = Record { children }.encode(&path);
        for cut in 0..bytes.len() {
            assert!(Record::decode(&path, &bytes[..cut]).is_err(), "{cut}");
        }
        assert!(Record::decode(&path, &[&bytes[..], &[0]].concat()).is_err());
        let lowest = Path::from_key(&[7; 32]);
        assert_eq!(Record::decode(&lowest, &bytes), Err(RecordError::Low));
        assert_eq!(Record::decode(&path, &[0; 4]), Err(RecordError::Empty));
        assert_eq!(
            Record::decode(&path, &[0, 0, 0, 3]),
            Err(RecordError::Kind(0))
        );
        let mut padding = bytes;
        *padding.last_mut().unwrap() |= 1;
        assert_eq!(
            Record::decode(&path, &padding),
            Err(RecordError::Padding(15))
        );
    }

    proptest! {
        #[test]
        fn records_come_back(depth in 0usize..20, kinds in prop::collection::vec(0u8..3, 16), rest: u8) {
            let path = Path::from_nibbles(&vec![9; depth]);
            let children: Vec<_> = (0..16)
                .zip(kinds)
                .filter(|(_, kind)| *kind > 0)
                .map(|(nibble, kind)| {
                    let child = if kind == 1 { Child::Internal([rest; 32]) } else { leaf(&path, nibble, rest) };
                    (nibble, child)
                })
                .collect();
            prop_assume!(!children.is_empty());
            let record = Record { children };
            let bytes = record.encode(&path);
            let view = View::new(&path, &bytes).unwrap();
            let hashes: Vec<(u8, Hash)> = view.hashes().map(|(nibble, hash)| (nibble, *hash)).collect();
            let expected = record.children.iter().map(|(nibble, child)| (*nibble, *child.hash()));
            prop_assert_eq!(hashes, expected.collect::<Vec<_>>());
            for nibble in 0..16 {
                let child = record.children.iter().find(|child| child.0 == nibble).map(|child| child.1);
                prop_assert_eq!(view.child(nibble).unwrap(), child);
            }
            prop_assert!(View::new(&path, &bytes[..bytes.len() - 1]).is_err());
            prop_assert_eq!(Record::decode(&path, &bytes).unwrap(), record);
        }
    }
}

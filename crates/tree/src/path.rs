//! Paths of nibbles.

use std::fmt;

use crate::Hash;

/// A path of at most 64 nibbles, packed two a byte, the high nibble first.
///
/// Unused nibbles are zero, so equality and order (first by packed bytes, then by length) are
/// those of the nibble sequences.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Path {
    packed: [u8; 32],
    len: u8,
}

/// Why bytes are not an encoded path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PathError {
    /// There is no length byte.
    #[error("a path without its length byte")]
    Empty,
    /// The length byte says more than 64 nibbles.
    #[error("a path of {0} nibbles: at most 64 are possible")]
    TooLong(u8),
    /// The number of bytes is not that of a path of the given length.
    #[error("a path of {nibbles} nibbles takes {expected} bytes with its length, not {actual}")]
    WrongSize {
        /// Nibbles, as the length byte says.
        nibbles: u8,
        /// Bytes that such a path takes, the length byte included.
        expected: usize,
        /// Bytes given.
        actual: usize,
    },
    /// The path has an odd length and the last half byte is not zero.
    #[error("a path of odd length whose unused last nibble is not zero")]
    Padding,
}

impl Path {
    /// The path of no nibbles: the place of a root.
    pub const ROOT: Self = Self {
        packed: [0; 32],
        len: 0,
    };

    /// The most nibbles that a path holds.
    pub const MAX: usize = 64;

    /// Returns all 64 nibbles of a key.
    pub const fn from_key(key: &Hash) -> Self {
        Self {
            packed: *key,
            len: 64,
        }
    }

    /// Returns the first `len` nibbles of a key.
    ///
    /// # Panics
    /// If `len` is more than 64.
    pub fn prefix_of_key(key: &Hash, len: usize) -> Self {
        let mut path = Self::from_key(key);
        path.truncate(len);
        path
    }

    /// Returns nibbles `from..to` of a key as a path of their own.
    ///
    /// # Panics
    /// Unless `from <= to <= 64`.
    pub fn slice_of_key(key: &Hash, from: usize, to: usize) -> Self {
        assert!(from <= to && to <= Self::MAX, "nibbles {from}..{to} of 64");
        let mut path = Self::ROOT;
        if from.is_multiple_of(2) {
            let bytes = (to - from).div_ceil(2);
            path.packed[..bytes].copy_from_slice(&key[from / 2..from / 2 + bytes]);
            path.len = (to - from) as u8;
            path.clear_padding();
        } else {
            for i in from..to {
                path.push(nibble_of(key, i));
            }
        }
        path
    }

    /// Builds a path from nibbles, each below 16.
    ///
    /// # Panics
    /// If there are more than 64, or one is 16 or more.
    pub fn from_nibbles(nibbles: &[u8]) -> Self {
        let mut path = Self::ROOT;
        for &nibble in nibbles {
            path.push(nibble);
        }
        path
    }

    /// Number of nibbles, 0 to 64.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether this is the path of a root.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the nibble at an index counted from the root, 0 to 15.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    pub fn nibble(&self, index: usize) -> u8 {
        assert!(index < self.len(), "nibble {index} of {}", self.len);
        nibble_of(&self.packed, index)
    }

    /// Iterates over the nibbles from the root on.
    pub fn nibbles(&self) -> impl ExactSizeIterator<Item = u8> + '_ {
        (0..self.len()).map(|index| nibble_of(&self.packed, index))
    }

    /// Adds a nibble at the end.
    ///
    /// # Panics
    /// If the path is full, or `nibble` is 16 or more.
    pub fn push(&mut self, nibble: u8) {
        assert!(nibble < 16, "{nibble} is not a nibble");
        assert!(self.len() < Self::MAX, "a path holds at most 64 nibbles");
        let byte = &mut self.packed[self.len() / 2];
        *byte |= if self.len.is_multiple_of(2) {
            nibble << 4
        } else {
            nibble
        };
        self.len += 1;
    }

    /// Takes the last nibble away; `None` when there is none.
    pub fn pop(&mut self) -> Option<u8> {
        let last = self.len().checked_sub(1)?;
        let nibble = self.nibble(last);
        self.truncate(last);
        Some(nibble)
    }

    /// Returns this path with a nibble added.
    ///
    /// # Panics
    /// As [`push`](Self::push).
    #[must_use]
    pub fn child(mut self, nibble: u8) -> Self {
        self.push(nibble);
        self
    }

    /// Returns this path followed by another.
    ///
    /// # Panics
    /// If both together have more than 64 nibbles.
    #[must_use]
    pub fn join(mut self, other: &Self) -> Self {
        if self.len.is_multiple_of(2) {
            let (start, bytes) = (self.len() / 2, other.len().div_ceil(2));
            assert!(
                self.len() + other.len() <= Self::MAX,
                "a path holds at most 64 nibbles"
            );
            self.packed[start..start + bytes].copy_from_slice(&other.packed[..bytes]);
            self.len += other.len;
        } else {
            for nibble in other.nibbles() {
                self.push(nibble);
            }
        }
        self
    }

    /// Keeps the first `len` nibbles; a longer `len` changes nothing.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len() {
            self.len = len as u8;
            self.packed[len.div_ceil(2)..].fill(0);
            self.clear_padding();
        }
    }

    /// Returns the nibbles from an index to the end as a path of their own.
    ///
    /// # Panics
    /// If `from` is more than [`len`](Self::len).
    #[must_use]
    pub fn suffix(&self, from: usize) -> Self {
        Self::slice_of_key(&self.packed, from, self.len())
    }

    /// Whether the first nibbles are those of `prefix`.
    pub fn starts_with(&self, prefix: &Self) -> bool {
        prefix.len <= self.len && self.common_prefix(prefix) == prefix.len()
    }

    /// Whether a key begins with this path.
    pub fn is_prefix_of(&self, key: &Hash) -> bool {
        let whole = self.len() / 2;
        self.packed[..whole] == key[..whole]
            && (self.len.is_multiple_of(2) || self.packed[whole] == key[whole] & 0xf0)
    }

    /// Number of leading nibbles that two paths share.
    pub fn common_prefix(&self, other: &Self) -> usize {
        shared_nibbles(&self.packed, &other.packed)
            .min(self.len())
            .min(other.len())
    }

    /// Number of this path's leading nibbles that a key has from its nibble `from` on.
    ///
    /// # Panics
    /// If the key ends before this path does.
    pub fn shared_with_key(&self, key: &Hash, from: usize) -> usize {
        (0..self.len())
            .take_while(|&i| nibble_of(&self.packed, i) == nibble_of(key, from + i))
            .count()
    }

    /// The packed nibbles, `ceil(len / 2)` bytes; of an odd path the last half byte is zero.
    pub fn packed(&self) -> &[u8] {
        &self.packed[..self.len().div_ceil(2)]
    }

    /// Appends the encoding used in database keys and node records: the length in nibbles as one
    /// byte, then the packed nibbles.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        out.push(self.len);
        out.extend_from_slice(self.packed());
    }

    /// Reads what [`encode_into`](Self::encode_into) wrote; the bytes must end with the path.
    ///
    /// # Errors
    /// When the bytes are not exactly the encoding of one path.
    pub fn decode(bytes: &[u8]) -> Result<Self, PathError> {
        let (path, rest) = Self::decode_front(bytes)?;
        if rest.is_empty() {
            return Ok(path);
        }
        Err(PathError::WrongSize {
            nibbles: path.len,
            expected: bytes.len() - rest.len(),
            actual: bytes.len(),
        })
    }

    /// Reads a path at the front of `bytes` and returns it with the bytes after it.
    ///
    /// # Errors
    /// When the bytes do not begin with the encoding of a path.
    pub fn decode_front(bytes: &[u8]) -> Result<(Self, &[u8]), PathError> {
        let (&len, rest) = bytes.split_first().ok_or(PathError::Empty)?;
        if usize::from(len) > Self::MAX {
            return Err(PathError::TooLong(len));
        }
        let size = usize::from(len).div_ceil(2);
        if rest.len() < size {
            return Err(PathError::WrongSize {
                nibbles: len,
                expected: size + 1,
                actual: bytes.len(),
            });
        }
        let mut path = Self::ROOT;
        path.packed[..size].copy_from_slice(&rest[..size]);
        path.len = len;
        if len % 2 == 1 && path.packed[size - 1] & 0x0f != 0 {
            return Err(PathError::Padding);
        }
        Ok((path, &rest[size..]))
    }

    fn clear_padding(&mut self) {
        if self.len % 2 == 1 {
            self.packed[self.len() / 2] &= 0xf0;
        }
    }
}

impl fmt::Display for Path {
    /// The nibbles as lower-case hexadecimal digits; nothing for the root.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.nibbles()
            .try_for_each(|nibble| write!(f, "{nibble:x}"))
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Path({self})")
    }
}

/// Returns nibble `index` (0 to 63) of a key, the high half of byte 0 being nibble 0.
///
/// # Panics
/// If `index` is 64 or more.
pub fn nibble_of(key: &Hash, index: usize) -> u8 {
    let byte = key[index / 2];
    if index.is_multiple_of(2) {
        byte >> 4
    } else {
        byte & 0x0f
    }
}

/// Number of leading nibbles, 0 to 64, that two keys share.
pub fn shared_nibbles(a: &Hash, b: &Hash) -> usize {
    match a.iter().zip(b).position(|(x, y)| x != y) {
        None => 64,
        Some(at) if a[at] >> 4 == b[at] >> 4 => 2 * at + 1,
        Some(at) => 2 * at,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nibbles(max: usize) -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(0..16u8, 0..=max)
    }

    #[test]
    fn encoding_is_length_then_packed_nibbles() {
        let mut out = Vec::new();
        Path::from_nibbles(&[0xa, 0xb, 0xc]).encode_into(&mut out);
        assert_eq!(out, [3, 0xab, 0xc0]);
        out.clear();
        Path::ROOT.encode_into(&mut out);
        assert_eq!(out, [0]);
    }

    #[test]
    fn malformed_encodings_are_rejected() {
        assert_eq!(Path::decode(&[]), Err(PathError::Empty));
        assert_eq!(Path::decode(&[65]), Err(PathError::TooLong(65)));
        assert_eq!(Path::decode(&[1, 0xab]), Err(PathError::Padding));
        assert!(matches!(
            Path::decode(&[3, 0xab]),
            Err(PathError::WrongSize { expected: 3, .. })
        ));
        assert!(matches!(
            Path::decode(&[2, 0xab, 0]),
            Err(PathError::WrongSize { expected: 2, .. })
        ));
    }

    proptest! {
        /// Every operation agrees with the same operation on a plain vector of nibbles.
        #[test]
        fn behaves_as_a_vector(a in nibbles(40), b in nibbles(24), cut in 0usize..70) {
            let (pa, pb) = (Path::from_nibbles(&a), Path::from_nibbles(&b));
            prop_assert_eq!(pa.nibbles().collect::<Vec<_>>(), a.clone());
            let joined = [a.clone(), b.clone()].concat();
            prop_assert_eq!(pa.join(&pb), Path::from_nibbles(&joined));
            let mut short = pa;
            short.truncate(cut);
            prop_assert_eq!(short, Path::from_nibbles(&a[..cut.min(a.len())]));
            let from = cut.min(a.len());
            prop_assert_eq!(pa.suffix(from), Path::from_nibbles(&a[from..]));
            prop_assert_eq!(pa.starts_with(&pb), a.starts_with(&b));
            let shared = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
            prop_assert_eq!(pa.common_prefix(&pb), shared);
            prop_assert_eq!(pa.cmp(&pb), a.cmp(&b));
            let mut popped = pa;
            prop_assert_eq!(popped.pop(), a.last().copied());
            let mut bytes = Vec::new();
            pa.encode_into(&mut bytes);
            prop_assert_eq!(Path::decode(&bytes), Ok(pa));
            prop_assert_eq!(pa.to_string(), a.iter().map(|n| format!("{n:x}")).collect::<String>());
        }

        #[test]
        fn slices_of_keys(key: [u8; 32], from in 0usize..=64, len in 0usize..=64) {
            let to = (from + len).min(64);
            let all: Vec<u8> = Path::from_key(&key).nibbles().collect();
            let slice = Path::slice_of_key(&key, from, to);
            prop_assert_eq!(slice, Path::from_nibbles(&all[from..to]));
            prop_assert_eq!(slice.shared_with_key(&key, from), to - from);
            prop_assert!(Path::prefix_of_key(&key, to).is_prefix_of(&key));
            let mut other = key;
            if from < 64 {
                other[from / 2] ^= if from % 2 == 0 { 0x10 } else { 0x01 };
                prop_assert_eq!(shared_nibbles(&key, &other), from);
                prop_assert_eq!(Path::prefix_of_key(&key, to).is_prefix_of(&other), to <= from);
            }
        }
    }
}

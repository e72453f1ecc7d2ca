//! Keys, and paths of bits.

use std::fmt;

/// Bytes of the longest key: a zone, the hash of an address, the hash that names a group of 256
/// slots, and a slot within it (EIP-8297, "Tree keys").
pub const LONGEST_KEY: usize = 66;

/// Bits of a key from the first one on, the most significant bit of each byte first: at most 528. A
/// whole key is the path of all its bits.
///
/// Unused bits are zero, so that equality is that of the bits. Order is that of the bytes, then of
/// the lengths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    bytes: [u8; LONGEST_KEY],
    /// In bits.
    len: u16,
}

/// Why bytes are not a key or a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PathError {
    /// Longer than any key.
    #[error("a key of {0} bytes: the longest has {LONGEST_KEY}")]
    TooLong(usize),
    /// A path whose number of bits is not that of its bytes.
    #[error("a path of {bits} bits in {bytes} bytes")]
    Length {
        /// Bits, as the path says.
        bits: usize,
        /// Bytes that it has.
        bytes: usize,
    },
    /// Bits that are set after the last one of the path.
    #[error("a path of {0} bits with more bits set behind them")]
    Padding(usize),
}

impl Path {
    /// The path of no bits: the place of the root.
    pub const ROOT: Self = Self {
        bytes: [0; LONGEST_KEY],
        len: 0,
    };

    /// Returns the path of a whole key, of at most [`LONGEST_KEY`] bytes.
    ///
    /// # Errors
    /// [`PathError::TooLong`].
    pub fn of_key(key: &[u8]) -> Result<Self, PathError> {
        let mut path = Self::ROOT;
        let bytes = path.bytes.get_mut(..key.len());
        bytes
            .ok_or(PathError::TooLong(key.len()))?
            .copy_from_slice(key);
        path.len = 8 * key.len() as u16;
        Ok(path)
    }

    /// Returns a path of so many bits, packed into as few bytes as have them.
    ///
    /// # Errors
    /// [`PathError`].
    pub fn of_bits(bits: usize, bytes: &[u8]) -> Result<Self, PathError> {
        if bits.div_ceil(8) != bytes.len() {
            let bytes = bytes.len();
            return Err(PathError::Length { bits, bytes });
        }
        let path = Self::of_key(bytes)?.prefix(bits);
        match path.packed() == bytes {
            true => Ok(path),
            false => Err(PathError::Padding(bits)),
        }
    }

    /// Number of bits.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether this is the path of the root.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a bit is set. Bits behind the last one are not.
    #[must_use]
    pub fn bit(&self, index: usize) -> bool {
        self.bytes[index / 8] >> (7 - index % 8) & 1 == 1
    }

    /// Returns the bytes that the bits take; behind the last bit are zeros.
    #[must_use]
    pub fn packed(&self) -> &[u8] {
        &self.bytes[..self.len().div_ceil(8)]
    }

    /// Returns the first bits, all of them if there are not so many.
    #[must_use]
    pub fn prefix(&self, bits: usize) -> Self {
        let mut path = *self;
        if bits < path.len() {
            path.len = bits as u16;
            let whole = bits / 8;
            if !bits.is_multiple_of(8) {
                path.bytes[whole] &= !(0xff >> (bits % 8));
            }
            path.bytes[bits.div_ceil(8)..].fill(0);
        }
        path
    }

    /// Returns how many bits two paths share, counted from the first one.
    #[must_use]
    pub fn shared(&self, other: &Self) -> usize {
        let most = self.len.min(other.len) as usize;
        let words = self.bytes.chunks(8).zip(other.bytes.chunks(8));
        let mut shared = 0;
        for (a, b) in words {
            if a != b {
                let differs = a.iter().zip(b).find(|(a, b)| a != b);
                let equal = a.iter().zip(b).take_while(|(a, b)| a == b).count();
                let bits = differs.map_or(0, |(a, b)| (a ^ b).leading_zeros() as usize);
                return (shared + 8 * equal + bits).min(most);
            }
            shared += 64;
            if shared >= most {
                break;
            }
        }
        most
    }

    /// Whether another path begins with this one.
    #[must_use]
    pub fn is_prefix_of(&self, other: &Self) -> bool {
        self.len <= other.len && self.shared(other) == self.len()
    }

    /// Writes bits `from..to`, packed from the first one on (EIP-8297: the prefix of a branch),
    /// behind what is in `out`.
    ///
    /// # Panics
    /// If `from` is behind `to`, or `to` behind the last bit.
    pub fn write_bits(&self, from: usize, to: usize, out: &mut Vec<u8>) {
        assert!(
            from <= to && to <= self.len(),
            "bits {from}..{to} of {}",
            self.len
        );
        let (count, shift, first) = (to - from, from % 8, from / 8);
        for i in 0..count.div_ceil(8) {
            let high = self.bytes[first + i] << shift;
            let low = match self.bytes.get(first + i + 1) {
                Some(next) if shift > 0 => next >> (8 - shift),
                _ => 0,
            };
            let rest = count - 8 * i;
            let mask = if rest < 8 { !(0xff >> rest) } else { 0xff };
            out.push((high | low) & mask);
        }
    }

    /// Returns the path of so many bits that begins with the whole bytes of this one, which `rest` follow. Bits of a last byte
    /// that is not whole are in `rest` again.
    ///
    /// # Errors
    /// [`PathError`].
    pub(crate) fn with_rest(&self, bits: usize, rest: &[u8]) -> Result<Self, PathError> {
        let from = self.len() / 8;
        let end = from + rest.len();
        if bits.div_ceil(8) != end {
            return Err(PathError::Length { bits, bytes: end });
        }
        let mut path = *self;
        let bytes = path.bytes.get_mut(from..end);
        bytes.ok_or(PathError::TooLong(end))?.copy_from_slice(rest);
        path.len = bits as u16;
        match bits % 8 {
            0 => Ok(path),
            over if path.bytes[bits / 8] << over == 0 => Ok(path),
            _ => Err(PathError::Padding(bits)),
        }
    }

    /// Returns this path with one more bit behind it.
    ///
    /// # Panics
    /// If it has 528 bits.
    #[must_use]
    pub fn with_bit(&self, bit: bool) -> Self {
        let mut path = *self;
        let at = path.len();
        path.bytes[at / 8] |= u8::from(bit) << (7 - at % 8);
        path.len += 1;
        path
    }

    /// Returns the database key of the record at this path: its bytes, then its number of bits (2
    /// bytes, big-endian). What lies below one path is near it, so all nodes of an account's
    /// storage are side by side.
    #[must_use]
    pub fn database_key(&self) -> PathKey {
        let mut bytes = [0; PathKey::MAX];
        let packed = self.packed();
        bytes[..packed.len()].copy_from_slice(packed);
        bytes[packed.len()..packed.len() + 2].copy_from_slice(&self.len.to_be_bytes());
        PathKey {
            bytes,
            len: packed.len() as u8 + 2,
        }
    }

    /// Reads a [database key](Self::database_key).
    ///
    /// # Errors
    /// [`PathError`].
    pub fn of_database_key(key: &[u8]) -> Result<Self, PathError> {
        let bytes = key.len();
        let (packed, bits) = key
            .split_last_chunk::<2>()
            .ok_or(PathError::Length { bits: 0, bytes })?;
        Self::of_bits(usize::from(u16::from_be_bytes(*bits)), packed)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The bits packed in hexadecimal, and how many of them count: `ff80/9`.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", const_hex::encode(self.packed()), self.len)
    }
}

/// The database key of a record: bytes that live on the stack.
#[derive(Clone, Copy, Debug)]
pub struct PathKey {
    bytes: [u8; Self::MAX],
    len: u8,
}

impl PathKey {
    const MAX: usize = LONGEST_KEY + 2;
}

impl std::ops::Deref for PathKey {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bits(path: &Path) -> Vec<bool> {
        (0..path.len()).map(|at| path.bit(at)).collect()
    }

    proptest! {
        /// Every function against lists of bits.
        #[test]
        fn paths_are_lists_of_bits(
            key in prop::collection::vec(any::<u8>(), 0..=66), other in prop::collection::vec(any::<u8>(), 0..=66),
            shared in 0usize..70, cut in 0usize..540, from in 0usize..540, bit: bool,
        ) {
            let mut other = other;
            for (byte, own) in other.iter_mut().zip(&key).take(shared) {
                *byte = *own;
            }
            let (path, other) = (Path::of_key(&key).unwrap(), Path::of_key(&other).unwrap());
            let list = bits(&path);
            prop_assert_eq!(list.len(), 8 * key.len());
            let prefix = path.prefix(cut);
            prop_assert_eq!(bits(&prefix), &list[..cut.min(list.len())]);
            let equal = bits(&other).iter().zip(&list).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(path.shared(&other), equal);
            prop_assert_eq!(other.shared(&path), equal);
            prop_assert_eq!(prefix.is_prefix_of(&other), bits(&other).starts_with(&bits(&prefix)));
            if from <= prefix.len() {
                let mut packed = Vec::new();
                prefix.write_bits(from, prefix.len(), &mut packed);
                let cut = Path::of_bits(prefix.len() - from, &packed).unwrap();
                prop_assert_eq!(bits(&cut), &bits(&prefix)[from..]);
            }
            if prefix.len() < 8 * LONGEST_KEY {
                let mut longer = bits(&prefix);
                longer.push(bit);
                prop_assert_eq!(bits(&prefix.with_bit(bit)), longer);
            }
            let key = prefix.database_key();
            prop_assert_eq!(Path::of_database_key(&key), Ok(prefix));
            if cut <= path.len() {
                let rest = &path.packed()[cut / 8..];
                prop_assert_eq!(prefix.with_rest(path.len(), rest), Ok(path));
            }
        }
    }

    #[test]
    fn malformed_paths_are_errors() {
        assert_eq!(Path::of_key(&[0; 67]), Err(PathError::TooLong(67)));
        assert_eq!(
            Path::of_bits(9, &[0]),
            Err(PathError::Length { bits: 9, bytes: 1 })
        );
        assert_eq!(Path::of_bits(9, &[0, 0x40]), Err(PathError::Padding(9)));
        let two = Path::of_key(&[1, 2]).unwrap();
        assert_eq!(two.with_rest(20, &[0x18]), Err(PathError::Padding(20)));
        assert_eq!(
            two.with_rest(20, &[0x10, 0]),
            Err(PathError::Length { bits: 20, bytes: 4 })
        );
        assert_eq!(two.with_rest(8 * 67, &[0; 65]), Err(PathError::TooLong(67)));
        let one = Path::of_bits(9, &[0xff, 0x80]).unwrap();
        assert_eq!(one.to_string(), "ff80/9");
        assert_eq!(one.database_key()[..], [0xff, 0x80, 0, 9]);
        assert!(Path::of_database_key(&[0]).is_err());
    }
}

//! Sets of bytes: children of a node, suffixes of a leaf.

use std::{fmt, ops::BitOr};

/// A set of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ByteSet([u64; 4]);

/// In place of a count: all 256 bits follow.
const BITMAP: u8 = 255;

impl ByteSet {
    /// The set of nothing.
    pub const EMPTY: Self = Self([0; 4]);

    /// Whether it has a byte.
    #[must_use]
    pub fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte / 64)] >> (byte % 64) & 1 == 1
    }

    /// Puts a byte in or takes it out.
    pub fn set(&mut self, byte: u8, present: bool) {
        let bit = 1 << (byte % 64);
        if present {
            self.0[usize::from(byte / 64)] |= bit;
        } else {
            self.0[usize::from(byte / 64)] &= !bit;
        }
    }

    /// Number of bytes in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Whether it has a byte below 128 (`half` 0) or one from 128 on (`half` 1).
    #[must_use]
    pub fn has_half(&self, half: usize) -> bool {
        self.0[2 * half] | self.0[2 * half + 1] != 0
    }

    /// The bytes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u8> + use<> {
        let mut rest = *self;
        std::iter::from_fn(move || {
            let byte = rest.first()?;
            rest.set(byte, false);
            Some(byte)
        })
    }

    /// The lowest byte.
    #[must_use]
    pub fn first(&self) -> Option<u8> {
        let word = self.0.iter().position(|&word| word != 0)?;
        Some((64 * word + self.0[word].trailing_zeros() as usize) as u8)
    }

    /// Whether both have a byte.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// Appends the stored form: up to 31 bytes as their number and themselves, ascending; more as 255 and 32 bytes of bits, the byte's lowest first.
    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        let count = self.len();
        if count < 32 {
            out.push(count as u8);
            out.extend(self.iter());
        } else {
            out.push(BITMAP);
            self.0
                .iter()
                .for_each(|word| out.extend(word.to_le_bytes()));
        }
    }

    /// Reads the stored form at the front; none if it is not there, or not as it is written.
    pub(crate) fn decode_front(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&count, rest) = bytes.split_first()?;
        let mut set = Self::EMPTY;
        if count == BITMAP {
            let (words, rest) = rest.split_first_chunk::<32>()?;
            let (words, _) = words.as_chunks::<8>();
            for (to, word) in set.0.iter_mut().zip(words) {
                *to = u64::from_le_bytes(*word);
            }
            return (set.len() >= 32).then_some((set, rest));
        }
        let (listed, rest) = rest.split_at_checked(usize::from(count))?;
        listed.iter().for_each(|&byte| set.set(byte, true));
        let in_order = listed.is_sorted_by(|a, b| a < b);
        (count < 32 && in_order).then_some((set, rest))
    }
}

impl BitOr for ByteSet {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }
}

impl FromIterator<u8> for ByteSet {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> Self {
        let mut set = Self::EMPTY;
        bytes.into_iter().for_each(|byte| set.set(byte, true));
        set
    }
}

impl fmt::Debug for ByteSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

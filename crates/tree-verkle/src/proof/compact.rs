//! Witnesses without offsets and new values.
//!
//! The binary form has 12 bytes of offsets and 2 bytes about values for each key, and values after the block, which
//! follow from executing it. The compact form has neither. Numbers are LEB128: seven bits a byte, the least significant
//! ones first, the highest bit of all bytes but the last set.
//!
//! - the number of stems; for each its 31 bytes, its way (as in
//!   [`depth_extension_present`](super::Proof::depth_extension_present)), the number of its suffixes less one (1 byte),
//!   the suffixes, and for each the length of its value without leading zeros (1 byte, 255 for an absent value)
//! - the values, without leading zeros
//! - the number of other stems, and these
//! - the number of commitments, and these
//! - the multiproof

use super::witness::{Proof, StemDiff, SuffixDiff, Witness};
use crate::{Stem, Value};

/// The bytes of a compact witness by part. Their sum is its length.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CompactSizes {
    /// Stems and suffixes of keys.
    pub keys: usize,
    /// Values.
    pub values: usize,
    /// Of the values, those of chosen keys.
    pub chosen_values: usize,
    /// Commitments.
    pub commitments: usize,
    /// The multiproof.
    pub multiproof: usize,
    /// Numbers, lengths, ways, and other stems.
    pub structure: usize,
}

/// Why bytes are no compact witness.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at byte {at}: {what}")]
pub struct CompactError {
    /// Where the part begins that is wrong.
    pub at: usize,
    /// What is wrong.
    pub what: &'static str,
}

/// The length of an absent value.
const ABSENT: u8 = 255;

impl Witness {
    /// Writes the compact form. `is_chosen` says which values are measured apart, by stem and suffix. `None` for a
    /// witness with another number of ways than of stems, or with a stem without suffixes, or with more than 256.
    #[must_use]
    pub fn to_compact(
        &self,
        is_chosen: &dyn Fn(&Stem, u8) -> bool,
    ) -> Option<(Vec<u8>, CompactSizes)> {
        let ways = &self.proof.depth_extension_present;
        if ways.len() != self.state_diff.len() {
            return None;
        }
        let (mut out, mut sizes) = (Vec::new(), CompactSizes::default());
        put_number(&mut out, self.state_diff.len());
        for (diff, way) in self.state_diff.iter().zip(ways) {
            let last = u8::try_from(diff.suffixes.len().checked_sub(1)?).ok()?;
            out.extend(diff.stem);
            out.extend([*way, last]);
            out.extend(diff.suffixes.iter().map(|suffix| suffix.suffix));
            out.extend(diff.suffixes.iter().map(|suffix| match suffix.current {
                Some(value) => trimmed(&value).len() as u8,
                None => ABSENT,
            }));
            sizes.keys += diff.stem.len() + diff.suffixes.len();
        }
        for (stem, diff) in self.keys() {
            let value = diff.current.as_ref().map_or(&[][..], trimmed);
            out.extend_from_slice(value);
            sizes.values += value.len();
            if is_chosen(stem, diff.suffix) {
                sizes.chosen_values += value.len();
            }
        }
        put_number(&mut out, self.proof.other_stems.len());
        out.extend_from_slice(self.proof.other_stems.as_flattened());
        put_number(&mut out, self.proof.commitments_by_path.len());
        out.extend_from_slice(self.proof.commitments_by_path.as_flattened());
        out.extend_from_slice(&self.proof.multiproof);
        sizes.commitments = 32 * self.proof.commitments_by_path.len();
        sizes.multiproof = self.proof.multiproof.len();
        let counted = sizes.keys + sizes.values + sizes.commitments + sizes.multiproof;
        sizes.structure = out.len() - counted;
        Some((out, sizes))
    }

    /// Reads the compact form. No key has a new value.
    ///
    /// # Errors
    /// [`CompactError`]: whatever [`to_compact`](Self::to_compact) does not write.
    pub fn from_compact(bytes: &[u8]) -> Result<Self, CompactError> {
        let mut reader = Reader { bytes, at: 0 };
        let count = reader.number(33)?;
        let (mut state_diff, mut ways, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..count {
            let stem = reader.array()?;
            let [way, last] = reader.array()?;
            let suffixes = reader.take(usize::from(last) + 1)?;
            if !suffixes.is_sorted_by(|a, b| a < b) {
                return Err(reader.wrong("suffixes that do not ascend before this byte"));
            }
            lengths.extend_from_slice(reader.take(suffixes.len())?);
            ways.push(way);
            let suffixes = suffixes.iter().map(|suffix| SuffixDiff {
                suffix: *suffix,
                current: None,
                new: None,
            });
            state_diff.push(StemDiff {
                stem,
                suffixes: suffixes.collect(),
            });
        }
        let mut lengths = lengths.into_iter();
        for diff in &mut state_diff {
            for (suffix, length) in diff.suffixes.iter_mut().zip(&mut lengths) {
                suffix.current = match length {
                    ABSENT => None,
                    length => Some(reader.value(usize::from(length))?),
                };
            }
        }
        let count = reader.number(31)?;
        let other_stems = (0..count).map(|_| reader.array());
        let other_stems = other_stems.collect::<Result<_, _>>()?;
        let count = reader.number(32)?;
        let commitments = (0..count).map(|_| reader.array());
        let commitments = commitments.collect::<Result<_, _>>()?;
        let multiproof = reader.array()?;
        if reader.at < bytes.len() {
            return Err(reader.wrong("bytes follow the multiproof"));
        }
        Ok(Self {
            state_diff,
            proof: Proof {
                other_stems,
                depth_extension_present: ways,
                commitments_by_path: commitments,
                multiproof,
            },
        })
    }
}

fn trimmed(value: &Value) -> &[u8] {
    let zeros = value.iter().take_while(|byte| **byte == 0).count();
    &value[zeros..]
}

fn put_number(out: &mut Vec<u8>, mut number: usize) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn wrong(&self, what: &'static str) -> CompactError {
        CompactError { at: self.at, what }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], CompactError> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..count).ok_or(self.wrong("it is cut short"))?;
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CompactError> {
        let taken = self.take(N)?.try_into();
        Ok(taken.expect("invariant: as many as were asked for"))
    }

    /// Reads how many items of at least so many bytes follow.
    fn number(&mut self, item: usize) -> Result<usize, CompactError> {
        let mut number = 0;
        for shift in (0..28).step_by(7) {
            let [byte] = self.array()?;
            number |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return match byte == 0 && shift > 0 {
                    true => Err(self.wrong("a number that is longer than it must be")),
                    false if number > (self.bytes.len() - self.at) / item => {
                        Err(self.wrong("a number of items for which there are too few bytes"))
                    }
                    false => Ok(number),
                };
            }
        }
        Err(self.wrong("a number of more than 4 bytes"))
    }

    fn value(&mut self, length: usize) -> Result<Value, CompactError> {
        let mut value = [0; 32];
        if length > value.len() {
            return Err(self.wrong("a value of more than 32 bytes"));
        }
        let bytes = self.take(length)?;
        if bytes.first() == Some(&0) {
            return Err(self.wrong("a value with leading zeros before this byte"));
        }
        value[32 - length..].copy_from_slice(bytes);
        Ok(value)
    }
}

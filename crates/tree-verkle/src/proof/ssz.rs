//! The binary form: SSZ, as the Python reference of the Verkle tree defines it (ssz/ssz_format.py).
//!
//! A container is its fixed parts, with four bytes of offset, little-endian, for each part of variable length, and then those parts. A list of such
//! is their offsets and then they. An optional value is a byte 0, or a byte 1 and the value. Only what [`Witness::to_bytes`] writes is read: parts follow each other without gaps.

use super::witness::{Proof, StemDiff, SuffixDiff, Witness, WitnessError};
use crate::{Stem, Value};

impl Witness {
    /// The binary form.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        container(
            &[],
            &[
                list(self.state_diff.iter().map(stem_diff)),
                proof(&self.proof),
            ],
        )
    }

    /// Reads the binary form.
    ///
    /// # Errors
    /// [`WitnessError::Bytes`] for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WitnessError> {
        let whole = Slice { bytes, at: 0 };
        let [state_diff, sent] = whole.parts(0)?;
        let state_diff = state_diff.list(|diff| {
            let [suffixes] = diff.parts(31)?;
            Ok(StemDiff {
                stem: diff.fixed(0)?,
                suffixes: suffixes.list(|diff| {
                    let [current, new] = diff.parts(1)?;
                    let [suffix] = diff.fixed(0)?;
                    Ok(SuffixDiff {
                        suffix,
                        current: current.optional()?,
                        new: new.optional()?,
                    })
                })?,
            })
        })?;
        // Two offsets, the multiproof among the fixed parts, and the third list's offset before it.
        let [other_stems, ways, commitments] = sent.parts_before(576)?;
        Ok(Self {
            state_diff,
            proof: Proof {
                other_stems: other_stems.array::<31>()?,
                depth_extension_present: ways.bytes.to_vec(),
                commitments_by_path: commitments.array::<32>()?,
                multiproof: sent.fixed(12)?,
            },
        })
    }
}

fn stem_diff(diff: &StemDiff) -> Vec<u8> {
    container(&diff.stem, &[list(diff.suffixes.iter().map(suffix_diff))])
}

fn suffix_diff(diff: &SuffixDiff) -> Vec<u8> {
    container(
        &[diff.suffix],
        &[optional(diff.current), optional(diff.new)],
    )
}

fn optional(value: Option<Value>) -> Vec<u8> {
    match value {
        None => vec![0],
        Some(value) => [&[1], &value[..]].concat(),
    }
}

fn proof(proof: &Proof) -> Vec<u8> {
    let lists = [
        proof.other_stems.concat(),
        proof.depth_extension_present.clone(),
        proof.commitments_by_path.concat(),
    ];
    let mut out = offsets(12 + 576, &lists);
    out.extend(proof.multiproof);
    out.extend(lists.concat());
    out
}

/// Offsets of parts, the first of which is at `start`.
fn offsets(start: usize, parts: &[Vec<u8>]) -> Vec<u8> {
    let mut at = start;
    let mut out = Vec::new();
    for part in parts {
        out.extend((at as u32).to_le_bytes());
        at += part.len();
    }
    out
}

/// Fixed bytes, offsets, parts.
fn container(fixed: &[u8], parts: &[Vec<u8>]) -> Vec<u8> {
    let offsets = offsets(fixed.len() + 4 * parts.len(), parts);
    [fixed, &offsets, &parts.concat()].concat()
}

fn list(items: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    container(&[], &items.collect::<Vec<_>>())
}

/// Bytes of the whole, and where they begin.
#[derive(Clone, Copy)]
struct Slice<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Slice<'a> {
    fn error(&self, what: &'static str) -> WitnessError {
        WitnessError::Bytes { what, at: self.at }
    }

    /// Bytes of fixed length from some place.
    fn fixed<const N: usize>(&self, from: usize) -> Result<[u8; N], WitnessError> {
        let bytes = self.bytes.get(from..from + N);
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or(self.error("too few bytes"))
    }

    fn offset(&self, from: usize) -> Result<usize, WitnessError> {
        Ok(u32::from_le_bytes(self.fixed(from)?) as usize)
    }

    /// The parts whose offsets stand behind `fixed` bytes, and which fill the rest.
    fn parts<const N: usize>(&self, fixed: usize) -> Result<[Slice<'a>; N], WitnessError> {
        self.parts_at(fixed, fixed + 4 * N)
    }

    /// The parts whose offsets stand at the front, and `fixed` bytes behind those.
    fn parts_before<const N: usize>(&self, fixed: usize) -> Result<[Slice<'a>; N], WitnessError> {
        self.parts_at(0, 4 * N + fixed)
    }

    fn parts_at<const N: usize>(
        &self,
        offsets: usize,
        start: usize,
    ) -> Result<[Slice<'a>; N], WitnessError> {
        let mut ends = [self.bytes.len(); N];
        for (i, end) in ends.iter_mut().enumerate().take(N - 1) {
            *end = self.offset(offsets + 4 * (i + 1))?;
        }
        let mut from = self.offset(offsets)?;
        if from != start {
            return Err(self.error("parts that do not follow each other"));
        }
        let mut parts = [*self; N];
        for (part, end) in parts.iter_mut().zip(ends) {
            let bytes = self.bytes.get(from..end);
            part.bytes = bytes.ok_or(self.error("an offset outside"))?;
            part.at = self.at + from;
            from = end;
        }
        Ok(parts)
    }

    /// Items of variable length.
    fn list<T>(
        &self,
        item: impl Fn(Slice<'a>) -> Result<T, WitnessError>,
    ) -> Result<Vec<T>, WitnessError> {
        if self.bytes.is_empty() {
            return Ok(Vec::new());
        }
        let start = self.offset(0)?;
        let count = start / 4;
        if start % 4 != 0 || count == 0 || start > self.bytes.len() {
            return Err(self.error("an offset outside"));
        }
        let mut items = Vec::with_capacity(count);
        let mut from = start;
        for i in 1..=count {
            let end = if i < count {
                self.offset(4 * i)?
            } else {
                self.bytes.len()
            };
            let bytes = self
                .bytes
                .get(from..end)
                .ok_or(self.error("an offset outside"))?;
            items.push(item(Slice {
                bytes,
                at: self.at + from,
            })?);
            from = end;
        }
        Ok(items)
    }

    /// Items of fixed length.
    fn array<const N: usize>(&self) -> Result<Vec<[u8; N]>, WitnessError> {
        let (items, rest) = self.bytes.as_chunks::<N>();
        if rest.is_empty() {
            Ok(items.to_vec())
        } else {
            Err(self.error("a list that ends within an item"))
        }
    }

    fn optional(&self) -> Result<Option<Value>, WitnessError> {
        match self.bytes {
            [0] => Ok(None),
            [1, value @ ..] if value.len() == 32 => Ok(Some(self.fixed(1)?)),
            _ => Err(self.error("neither nothing nor a value")),
        }
    }
}

/// What the compiler cannot see: a stem's length is 31.
const _: () = assert!(size_of::<Stem>() == 31);

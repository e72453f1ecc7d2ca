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
        let mut out = Vec::with_capacity(self.sizes().total());
        put_parts(&mut out, 0, 2, |out, part| match part {
            0 => put_list(out, &self.state_diff, put_stem_diff),
            _ => put_proof(out, &self.proof),
        });
        out
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

fn put_stem_diff(out: &mut Vec<u8>, diff: &StemDiff) {
    let begin = out.len();
    out.extend(diff.stem);
    put_parts(out, begin, 1, |out, _| {
        put_list(out, &diff.suffixes, put_suffix_diff);
    });
}

fn put_suffix_diff(out: &mut Vec<u8>, diff: &SuffixDiff) {
    let begin = out.len();
    out.push(diff.suffix);
    let values = [diff.current, diff.new];
    put_parts(out, begin, values.len(), |out, part| {
        out.push(u8::from(values[part].is_some()));
        out.extend(values[part].iter().flatten());
    });
}

fn put_proof(out: &mut Vec<u8>, proof: &Proof) {
    let lists = [
        proof.other_stems.as_flattened(),
        &proof.depth_extension_present,
        proof.commitments_by_path.as_flattened(),
    ];
    // The multiproof is of fixed length and stands behind the offsets.
    let mut at = 4 * lists.len() + proof.multiproof.len();
    for list in lists {
        put_offset(out, at);
        at += list.len();
    }
    out.extend(proof.multiproof);
    lists.iter().for_each(|list| out.extend_from_slice(list));
}

fn put_offset(out: &mut Vec<u8>, offset: usize) {
    out.extend((offset as u32).to_le_bytes());
}

fn put_list<T>(out: &mut Vec<u8>, items: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    let begin = out.len();
    put_parts(out, begin, items.len(), |out, i| put(out, &items[i]));
}

/// Puts the offsets of parts, and the parts behind them, of what began at `begin`.
fn put_parts(
    out: &mut Vec<u8>,
    begin: usize,
    count: usize,
    mut put: impl FnMut(&mut Vec<u8>, usize),
) {
    let offsets = out.len();
    (0..count).for_each(|_| put_offset(out, 0));
    for part in 0..count {
        let offset = (out.len() - begin) as u32;
        out[offsets + 4 * part..][..4].copy_from_slice(&offset.to_le_bytes());
        put(out, part);
    }
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

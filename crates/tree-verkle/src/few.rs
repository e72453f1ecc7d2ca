//! A few values, in place of the commitment to them.
//!
//! Most leaves have one value, or two: a slot, an account's basic data and the hash of no code. Without leading zeros they take fewer bytes than a point, which
//! can be computed from them. In a record they stand one after the other, ascending by suffix: number of bytes, bytes. In place of the number, [`NO_CODE`] stands
//! for the hash of no code.

use crate::{ByteSet, RecordError, Value};
use arbor_ipa::{HASH_OF_NO_CODE, NumberTerm, ValueChange, half_numbers};

/// More are not kept, however short.
const MOST: usize = 4;
/// A number of bytes that no value has.
const NO_CODE: u8 = 33;
/// The values of one half of a leaf, if they are few.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FewValues {
    count: usize,
    /// Ascending by suffix; zeros from `count` on.
    values: [(u8, Value); MOST],
}

impl FewValues {
    /// None for none, and for too many.
    #[must_use]
    pub fn new(values: &[(u8, Value)]) -> Option<Self> {
        let mut few = Self {
            count: values.len(),
            values: Default::default(),
        };
        few.values.get_mut(..values.len())?.copy_from_slice(values);
        (!values.is_empty()).then_some(few)
    }

    /// Suffixes and values, ascending.
    #[must_use]
    pub fn as_slice(&self) -> &[(u8, Value)] {
        &self.values[..self.count]
    }

    /// The terms of their commitment.
    pub(crate) fn terms(&self) -> impl Iterator<Item = NumberTerm> {
        let terms = |&(suffix, value): &(u8, Value)| {
            half_numbers(&ValueChange {
                suffix,
                old: None,
                new: Some(value),
            })
        };
        self.as_slice().iter().flat_map(terms)
    }

    /// Bytes that they take in a record.
    pub(crate) fn encoded_len(&self) -> usize {
        let bytes = |(_, value): &(u8, Value)| 1 + written(value).1.len();
        self.as_slice().iter().map(bytes).sum()
    }

    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        for (_, value) in self.as_slice() {
            let (length, bytes) = written(value);
            out.push(length);
            out.extend_from_slice(bytes);
        }
    }

    /// Reads the values of one half's suffixes, and what comes after them.
    pub(crate) fn decode_front<'a>(
        suffixes: &ByteSet,
        half: usize,
        mut bytes: &'a [u8],
    ) -> Result<(Self, &'a [u8]), RecordError> {
        let malformed = RecordError::Part("values");
        let mut few = Self {
            count: 0,
            values: Default::default(),
        };
        for suffix in suffixes
            .iter()
            .filter(|suffix| usize::from(suffix / 128) == half)
        {
            let (&length, rest) = bytes.split_first().ok_or(malformed)?;
            let mut value = [0; 32];
            if length == NO_CODE {
                (value, bytes) = (HASH_OF_NO_CODE, rest);
            } else {
                let start = 32usize.checked_sub(length.into()).ok_or(malformed)?;
                let (own, rest) = rest.split_at_checked(length.into()).ok_or(malformed)?;
                value[start..].copy_from_slice(own);
                if written(&value) != (length, own) {
                    return Err(malformed);
                }
                bytes = rest;
            }
            *few.values.get_mut(few.count).ok_or(malformed)? = (suffix, value);
            few.count += 1;
        }
        match few.count {
            0 => Err(malformed),
            _ => Ok((few, bytes)),
        }
    }
}

/// What stands for a value's length, and its bytes without leading zeros.
fn written(value: &Value) -> (u8, &[u8]) {
    if *value == HASH_OF_NO_CODE {
        return (NO_CODE, &[]);
    }
    let zeros = value.iter().take_while(|byte| **byte == 0).count();
    ((32 - zeros) as u8, &value[zeros..])
}

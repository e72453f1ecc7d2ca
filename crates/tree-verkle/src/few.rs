//! A few values, in place of the commitment to them.
//!
//! Most leaves have one value, or two: a slot, an account's basic data and the hash of no code. Without leading zeros they take fewer bytes than a point, which
//! can be computed from them. In a record they stand one after the other, ascending by suffix: number of bytes, bytes. In place of the number, [`NO_CODE`] stands
//! for the hash of no code.

use crate::{ByteSet, RecordError, Value};
use arbor_ipa::{Committer, Point, Term, ValueChange, half_terms};
use std::sync::OnceLock;

/// More are not kept, however short.
const MOST: usize = 4;
/// A number of bytes that no value has.
const NO_CODE: u8 = 33;
/// Keccak-256 of nothing: the value that Ethereum's state has most often.
const HASH_OF_NO_CODE: Value = [
    0xc5, 0xd2, 0x46, 0x01, 0x86, 0xf7, 0x23, 0x3c, 0x92, 0x7e, 0x7d, 0xb2, 0xdc, 0xc7, 0x03, 0xc0,
    0xe5, 0x00, 0xb6, 0x53, 0xca, 0x82, 0x27, 0x3b, 0x7b, 0xfa, 0xd8, 0x04, 0x5d, 0x85, 0xa4, 0x70,
];

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

    /// The changes that put them where nothing was.
    pub(crate) fn sets(&self) -> Vec<ValueChange> {
        let set = |&(suffix, value): &(u8, Value)| ValueChange {
            suffix,
            old: None,
            new: Some(value),
        };
        self.as_slice().iter().map(set).collect()
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
        let mut values = Vec::with_capacity(MOST);
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
            values.push((suffix, value));
        }
        Ok((Self::new(&values).ok_or(malformed)?, bytes))
    }
}

fn sets_no_code(change: &ValueChange) -> bool {
    change.old.is_none() && change.new == Some(HASH_OF_NO_CODE)
}

/// What changes of one half add to it, but for [`no_code`].
pub(crate) fn terms(changes: &[ValueChange]) -> impl Iterator<Item = Term> {
    let changes = changes.iter().filter(|change| !sets_no_code(change));
    changes.flat_map(half_terms)
}

/// What the hash of no code adds where changes put it, computed once for each suffix and all committers: these differ in their tables alone, not in the points
/// ([`arbor_ipa::points`]) that commitments are made of.
pub(crate) fn no_code(committer: &Committer, changes: &[ValueChange]) -> Option<Point> {
    static KNOWN: [OnceLock<Point>; 128] = [const { OnceLock::new() }; 128];
    let point = |change: &ValueChange| {
        let known = &KNOWN[usize::from(change.suffix % 128)];
        *known.get_or_init(|| committer.sum(&half_terms(change)))
    };
    let changes = changes.iter().filter(|change| sets_no_code(change));
    changes.map(point).reduce(|sum, point| sum + point)
}

/// What stands for a value's length, and its bytes without leading zeros.
fn written(value: &Value) -> (u8, &[u8]) {
    if *value == HASH_OF_NO_CODE {
        return (NO_CODE, &[]);
    }
    let zeros = value.iter().take_while(|byte| **byte == 0).count();
    ((32 - zeros) as u8, &value[zeros..])
}

//! Leaf records.
//!
//! Length of the index (1); the index; the value. Both integers are big-endian without leading zeros.

use arbor_store::Value;
use arbor_tree::Hash;
use arbor_tree_ar16mt::Entry;
pub(crate) use arbor_verify::ar16mt::leaf_record;
use arbor_verify::ar16mt::{padded, read_leaf, trimmed};

use arbor_state_tree::StateError;
use arbor_state_tree::corrupt;

pub(crate) fn encode_leaf(entry: &Entry) -> Value {
    leaf_record(entry)[..].into()
}

pub(crate) fn decode_leaf(key: &[u8], bytes: &[u8]) -> Result<Entry, StateError> {
    read_leaf(bytes).map_err(|why| corrupt("leaves", key, why))
}

/// A leaf's key in its table.
pub(crate) fn leaf_key(key: &[u8]) -> Result<Hash, StateError> {
    let leaf = Hash::try_from(key);
    leaf.map_err(|_| corrupt("leaves", key, "a key of other than 32 bytes"))
}

/// The number of the next leaf.
pub(crate) fn decode_counter(bytes: &[u8]) -> Result<u64, StateError> {
    let number = padded(bytes).map(u64::from_be_bytes);
    number.ok_or_else(|| corrupt("counter", super::NEXT_INDEX, "not a number"))
}

pub(crate) fn encode_counter(next: u64) -> Value {
    trimmed(&next.to_be_bytes()).into()
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use alloy_primitives::hex;
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Entry {
        let mut value = [0; 32];
        value[30] = 3;
        let index = 0x0102;
        Entry { index, value }
    }

    #[test]
    fn stored_bytes_are_fixed() {
        assert_eq!(hex::encode(encode_leaf(&sample())), "0201020300");
        assert_eq!(hex::encode(encode_counter(0x0100)), "0100");
    }

    #[test]
    fn malformed_records_are_errors() {
        let bytes = encode_leaf(&sample());
        // Cut within the value, it is another value.
        for cut in 0..bytes.len() - 2 {
            assert!(decode_leaf(b"k", &bytes[..cut]).is_err(), "{cut}");
        }
        let bad: [&[u8]; 6] = [
            &[0],
            &[1, 0],
            &[2, 0, 1],
            &[1, 1, 0],
            &[9, 1, 1, 1, 1, 1, 1, 1, 1, 1],
            &[&bytes[..], &[1; 31]].concat(),
        ];
        for bad in bad {
            assert!(decode_leaf(b"k", bad).is_err(), "{bad:?}");
        }
        assert!(decode_counter(&[0, 1]).is_err() && decode_counter(&[1; 9]).is_err());
        assert!(leaf_key(&[1; 31]).is_err());
    }

    proptest! {
        #[test]
        fn records_come_back(index in 1u64.., value: [u8; 32], zeros in 0usize..=32) {
            let mut value = value;
            value[..zeros].fill(0);
            let entry = Entry { index, value };
            prop_assert_eq!(decode_leaf(b"k", &encode_leaf(&entry)).unwrap(), entry);
            prop_assert_eq!(decode_counter(&encode_counter(index)).unwrap(), index);
        }
    }
}

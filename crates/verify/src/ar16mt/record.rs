//! A leaf's record: the length of its index (1), the index, the value. Both integers are big-endian without leading
//! zeros.

use std::ops::Deref;

use arbor_tree_ar16mt::Entry;

/// The bytes of a record on the stack.
pub struct LeafRecord {
    bytes: [u8; 1 + 8 + 32],
    length: usize,
}

impl Deref for LeafRecord {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Encodes a leaf.
pub fn leaf_record(entry: &Entry) -> LeafRecord {
    let index = entry.index.to_be_bytes();
    let (index, value) = (trimmed(&index), trimmed(&entry.value));
    let mut bytes = [0; 1 + 8 + 32];
    let length = 1 + index.len() + value.len();
    bytes[0] = index.len() as u8;
    bytes[1..][..index.len()].copy_from_slice(index);
    bytes[1 + index.len()..length].copy_from_slice(value);
    LeafRecord { bytes, length }
}

/// Decodes a leaf.
///
/// # Errors
/// What is wrong with bytes that are none.
pub fn read_leaf(bytes: &[u8]) -> Result<Entry, &'static str> {
    let (length, rest) = bytes.split_first().ok_or("nothing")?;
    let split = rest.split_at_checked(usize::from(*length));
    let (index, value) = split.ok_or("index cut short")?;
    let index = padded(index).ok_or("an index of too many bytes, or with leading zeros")?;
    let entry = Entry {
        index: u64::from_be_bytes(index),
        value: padded(value).ok_or("a value of too many bytes, or with leading zeros")?,
    };
    match entry.index {
        0 => Err("index 0"),
        _ => Ok(entry),
    }
}

/// The bytes without leading zeros.
pub fn trimmed(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros..]
}

/// The bytes with leading zeros; none if there are too many of them or if they have leading zeros already.
pub fn padded<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    let mut out = [0; N];
    let from = N.checked_sub(bytes.len())?;
    out[from..].copy_from_slice(bytes);
    (bytes.first() != Some(&0)).then_some(out)
}

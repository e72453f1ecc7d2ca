//! Leaves on disk, on the way from the order in which they are numbered to the order of their keys.
//!
//! A frame has the number of the first leaf of its chunk within the range (8 bytes), then for each leaf its number
//! within the chunk (4), the length of its value (4), its key (32) and its value. Integers are big-endian.

use arbor_state::{NumberedLeaf, SpreadLeaf};

use crate::ConvertError;
use crate::frames::{FrameFile, Origin};

/// The leaves of a chunk, by the first byte of their keys.
pub(crate) struct LeafRecords {
    by_first: Vec<Vec<u8>>,
    /// How many leaves there are.
    pub(crate) count: u64,
}

impl LeafRecords {
    pub(crate) fn of(leaves: Vec<SpreadLeaf>) -> Self {
        let count = leaves.len() as u64;
        let mut by_first = vec![Vec::new(); 256];
        for (number, leaf) in (0u32..).zip(leaves) {
            let out: &mut Vec<u8> = &mut by_first[usize::from(leaf.key[0])];
            out.extend(number.to_be_bytes());
            out.extend((leaf.value.len() as u32).to_be_bytes());
            out.extend_from_slice(&leaf.key);
            out.extend_from_slice(&leaf.value);
        }
        Self { by_first, count }
    }

    /// Appends the leaves to the files; `first` leaves of the range come before them.
    pub(crate) fn append(
        &self,
        origin: Origin,
        first: u64,
        files: &[FrameFile],
    ) -> Result<(), ConvertError> {
        for (records, file) in self.by_first.iter().zip(files) {
            if !records.is_empty() {
                file.append(origin, &[&first.to_be_bytes()[..], records].concat())?;
            }
        }
        Ok(())
    }
}

/// Reads a frame; `base` leaves come before the range. `None` for bytes that are no frame.
pub(crate) fn read(frame: &[u8], base: u64, leaves: &mut Vec<NumberedLeaf>) -> Option<()> {
    let (first, mut rest) = frame.split_first_chunk()?;
    let first = base.checked_add(u64::from_be_bytes(*first))?;
    while !rest.is_empty() {
        let (number, after) = rest.split_first_chunk()?;
        let (length, after) = after.split_first_chunk()?;
        let (key, after) = after.split_first_chunk()?;
        let (value, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        leaves.push(NumberedLeaf {
            number: first.checked_add(u64::from(u32::from_be_bytes(*number)))?,
            key: *key,
            value: value.to_vec(),
        });
        rest = after;
    }
    Some(())
}

//! The record of how far a move is.
//!
//! The number of this form (1 byte), the roots of source and target (32 each), the hash of the log
//! of what is gone (32), the units (8), a byte of flags, then what the flags say: the cursor's
//! account (20), its slot (32), the last block (8). Numbers are big-endian.
//!
//! The first form had neither its number nor a log. Its records have other lengths than those of
//! this form, whichever byte they begin with.

use alloy_primitives::{Address, B256, U256};
use arbor_state_tree::{Cursor, Flat, Moved, StateError, corrupt};

use super::PROGRESS;

const HAS_ACCOUNT: u8 = 1;
const HAS_SLOT: u8 = 2;
const IS_OVER: u8 = 4;

/// The number of this form.
const FORM: u8 = 2;

/// The lengths of records of the first form.
const FIRST_FORM: [usize; 6] = [73, 81, 93, 101, 125, 133];

/// The key of the one record.
pub(super) const KEY: &[u8] = b"";

/// Reads the record; `None` before the first block of the move.
pub(super) fn read(flat: &dyn Flat) -> Result<Option<Moved>, StateError> {
    let record = flat.value(PROGRESS, KEY)?;
    record.map(|bytes| decode(&bytes)).transpose()
}

pub(super) fn encode(moved: &Moved) -> Vec<u8> {
    let slot = moved.cursor.and_then(|cursor| cursor.slot);
    let flags = [
        (moved.cursor.is_some(), HAS_ACCOUNT),
        (slot.is_some(), HAS_SLOT),
        (moved.last_block.is_some(), IS_OVER),
    ];
    let flags = flags.iter().filter(|(is, _)| *is).map(|(_, flag)| flag);
    let mut bytes = vec![FORM];
    for hash in [moved.source_root, moved.target_root, moved.gone] {
        bytes.extend(hash);
    }
    bytes.extend(moved.units.to_be_bytes());
    bytes.push(flags.sum());
    if let Some(cursor) = moved.cursor {
        bytes.extend(cursor.address);
    }
    if let Some(slot) = slot {
        bytes.extend(slot.to_be_bytes::<32>());
    }
    if let Some(last) = moved.last_block {
        bytes.extend(last.to_be_bytes());
    }
    bytes
}

pub(super) fn decode(bytes: &[u8]) -> Result<Moved, StateError> {
    let read = || {
        let mut rest = bytes.strip_prefix(&[FORM])?;
        let source_root = B256::from(*take::<32>(&mut rest)?);
        let target_root = B256::from(*take::<32>(&mut rest)?);
        let gone = B256::from(*take::<32>(&mut rest)?);
        let units = u64::from_be_bytes(*take(&mut rest)?);
        let [flags] = *take(&mut rest)?;
        if flags > 7 || flags & (HAS_ACCOUNT | HAS_SLOT) == HAS_SLOT {
            return None;
        }
        let mut cursor = None;
        if flags & HAS_ACCOUNT != 0 {
            let address = Address::from(*take::<20>(&mut rest)?);
            let slot = match flags & HAS_SLOT {
                0 => None,
                _ => Some(U256::from_be_bytes(*take::<32>(&mut rest)?)),
            };
            cursor = Some(Cursor { address, slot });
        }
        let last_block = match flags & IS_OVER {
            0 => None,
            _ => Some(u64::from_be_bytes(*take(&mut rest)?)),
        };
        rest.is_empty().then_some(Moved {
            source_root,
            target_root,
            gone,
            units,
            cursor,
            last_block,
        })
    };
    if FIRST_FORM.contains(&bytes.len()) {
        return Err(StateError::Read(
            "the move to another tree was begun by an earlier build, which kept no log of what is gone: replay the chain into a new folder".into(),
        ));
    }
    read().ok_or_else(|| corrupt("move", KEY, "not a record of how far a move is"))
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (first, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_others_are_refused() {
        let address = Address::repeat_byte(7);
        let cursors = [
            None,
            Some(Cursor {
                address,
                slot: None,
            }),
            Some(Cursor {
                address,
                slot: Some(U256::from(9)),
            }),
        ];
        for cursor in cursors {
            for last_block in [None, Some(12)] {
                let moved = Moved {
                    source_root: B256::repeat_byte(3),
                    target_root: B256::repeat_byte(4),
                    gone: B256::repeat_byte(5),
                    units: 77,
                    cursor,
                    last_block,
                };
                let bytes = encode(&moved);
                assert_eq!(decode(&bytes).expect("a record"), moved);
                for cut in 0..bytes.len() {
                    assert!(decode(&bytes[..cut]).is_err(), "{cut}");
                }
                assert!(decode(&[&bytes[..], &[0]].concat()).is_err());
                for flags in [2, 8, 0xff] {
                    let mut other = bytes.clone();
                    other[105] = flags;
                    assert!(decode(&other).is_err(), "{flags}");
                }
                let other = [&[FORM + 1], &bytes[1..]].concat();
                assert!(decode(&other).is_err());
                // The same record in the first form is refused by name, whatever its first byte.
                let mut first = [&bytes[1..65], &bytes[97..]].concat();
                assert!(!FIRST_FORM.contains(&bytes.len()) && FIRST_FORM.contains(&first.len()));
                for byte in [0, FORM, 0xff] {
                    first[0] = byte;
                    let why = decode(&first).expect_err("another form").to_string();
                    assert!(why.contains("begun by an earlier build"), "{why}");
                }
            }
        }
    }
}

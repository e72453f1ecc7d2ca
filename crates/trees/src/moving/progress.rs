//! The record of how far a move is.
//!
//! The roots of source and target (32 each), the units (8), a byte of flags, then what the flags say: the cursor's account (20), its slot (32), the last block (8). Numbers are big-endian.

use alloy_primitives::{Address, B256, U256};
use arbor_state_tree::{Cursor, Flat, Moved, StateError, corrupt};

use super::PROGRESS;

const HAS_ACCOUNT: u8 = 1;
const HAS_SLOT: u8 = 2;
const IS_OVER: u8 = 4;

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
    let mut bytes = [moved.source_root.0, moved.target_root.0].concat();
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
        let mut rest = bytes;
        let source_root = B256::from(*take::<32>(&mut rest)?);
        let target_root = B256::from(*take::<32>(&mut rest)?);
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
            units,
            cursor,
            last_block,
        })
    };
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
                    other[72] = flags;
                    assert!(decode(&other).is_err(), "{flags}");
                }
            }
        }
    }
}

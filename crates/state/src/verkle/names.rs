//! The table of stems' names: the way from a leaf of the tree back to what it is a leaf of.
//!
//! Name: the address, 20 bytes; then nothing for the stem that begins with the account's fields, 1 and the stem's index for one of
//! code, 2 and the index less that of slot 0 for one of storage, both big-endian without leading zeros.

use alloy_primitives::{Address, U256};
use arbor_store::Write;
use arbor_tree_verkle::StemUpdate;
use arbor_versions::View;

use super::STEMS;
use super::places::{MAIN_STORAGE_INDEX, StemName};
use crate::StateError;
use crate::error::corrupt;

const CODE: u8 = 1;
const STORAGE: u8 = 2;

impl StemName {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = self.address.to_vec();
        if let Some(index) = self.index.checked_sub(MAIN_STORAGE_INDEX) {
            out.push(STORAGE);
            out.extend(index.to_be_bytes_trimmed_vec());
        } else if !self.index.is_zero() {
            out.push(CODE);
            out.extend(self.index.to_be_bytes_trimmed_vec());
        }
        out
    }

    pub(super) fn decode(stem: &[u8], bytes: &[u8]) -> Result<Self, StateError> {
        Self::read(bytes).ok_or_else(|| corrupt("stems", stem, "not the name of a stem"))
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (address, rest) = bytes.split_first_chunk::<20>()?;
        let index = match rest.split_first() {
            None => U256::ZERO,
            Some((&kind, index)) => {
                if index.len() > 32 || index.first() == Some(&0) {
                    return None;
                }
                let index = U256::from_be_slice(index);
                match kind {
                    CODE if !index.is_zero() && index < MAIN_STORAGE_INDEX => index,
                    STORAGE => MAIN_STORAGE_INDEX.checked_add(index)?,
                    _ => return None,
                }
            }
        };
        let address = Address::from(*address);
        Some(Self { address, index })
    }
}

/// Writes of the names of stems that the tree may not have had: those of whose leaves that change none was there.
pub(super) fn new_names(
    view: View<'_>,
    updates: &[StemUpdate],
    names: &[StemName],
) -> Result<Vec<Write>, StateError> {
    let all_new = |update: &StemUpdate| update.changes.iter().all(|change| change.old.is_none());
    let candidates = updates.iter().zip(names);
    let candidates: Vec<_> = candidates.filter(|(update, _)| all_new(update)).collect();
    let stems: Vec<&[u8]> = candidates
        .iter()
        .map(|(update, _)| &update.stem[..])
        .collect();
    let known = view.multi_get(STEMS, &stems)?;
    let missing = candidates
        .iter()
        .zip(known)
        .filter(|(_, known)| known.is_none());
    let write = |((update, name), _): (&(&StemUpdate, &StemName), _)| Write {
        table: STEMS,
        key: update.stem.into(),
        value: Some(name.encode().into()),
    };
    Ok(missing.map(write).collect())
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use alloy_primitives::hex;
    use proptest::prelude::*;

    use super::super::{chunk_place, slot_place};
    use super::*;

    #[test]
    fn stored_bytes_are_fixed() {
        let name = |index| {
            let address = Address::repeat_byte(0xab);
            let bytes = StemName { address, index }.encode();
            hex::encode(&bytes[20..])
        };
        assert_eq!(name(U256::ZERO), "");
        assert_eq!(name(chunk_place(128).0), "01".to_owned() + "01");
        assert_eq!(name(slot_place(U256::from(64)).0), "02");
        assert_eq!(name(slot_place(U256::from(0x12345)).0), "020123");
    }

    #[test]
    fn malformed_names_are_errors() {
        let address = [7; 20];
        let long = [&[STORAGE][..], &[1; 33]].concat();
        let bad: [&[u8]; 6] = [
            &[CODE],
            &[STORAGE, 0],
            &[3, 1],
            &[0],
            &long,
            &[STORAGE, 0, 1],
        ];
        for bad in bad {
            let bytes = [&address[..], bad].concat();
            assert!(StemName::decode(&[0; 31], &bytes).is_err(), "{bad:?}");
        }
        assert!(StemName::decode(&[0; 31], &address[..19]).is_err());
        let overflow = [&address[..], &[STORAGE], &[0xff; 32]].concat();
        assert!(StemName::decode(&[0; 31], &overflow).is_err());
    }

    proptest! {
        #[test]
        fn names_come_back(address: [u8; 20], slot: [u8; 32], chunk in 0u32..1 << 20) {
            let address = Address::from(address);
            for index in [U256::ZERO, chunk_place(chunk).0, slot_place(U256::from_be_bytes(slot)).0] {
                let name = StemName { address, index };
                prop_assert_eq!(StemName::decode(&[0; 31], &name.encode()).unwrap(), name);
            }
        }
    }
}

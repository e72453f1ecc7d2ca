//! A whole state as leaves that are sorted by stem outside of memory.
//!
//! A leaf of a slot is sorted by its stem and suffix, and its value follows a byte 0. An account's stems, one for its
//! fields and the first 128 chunks of code and one for each further 256, are each a single entry, since chunks are read
//! from the table of codes later: a byte 1, the address (20), the number of the first chunk (4, big-endian) and the flat record.

use crate::named_records::slot_key;
use alloy_primitives::{Address, U256};
use arbor_state_tree::{
    ACCOUNTS, KeyedAccount, LoadedCodes, NumberedLeaf, SLOTS, Spread, SpreadLeaf, StateError,
    corrupt,
};
use arbor_store::Write;
use arbor_verify::stems::{
    HeaderLayout, LeafValue, Stem, StemHash, StemName, chunk_place, slot_place,
};
use arbor_versions::View;

use super::changes::code_size;
use super::ordered::hashed;
use super::records::{AccountRecord, decode_slot, encode_slot};
use super::values::account_leaves;

const SLOT: u8 = 0;
const ACCOUNT: u8 = 1;

/// Makes the flat records of accounts, and their leaves. Names are hashed together.
pub(crate) fn spread(
    stems: &dyn StemHash,
    accounts: Vec<KeyedAccount>,
    codes: &LoadedCodes<'_>,
) -> Result<Spread, StateError> {
    let (mut records, mut slots) = (Vec::with_capacity(accounts.len()), Vec::new());
    let mut names: Vec<StemName> = Vec::new();
    // The name of the stem by its place, the suffix, and what the leaf is made of.
    let mut leaves: Vec<(usize, u8, Vec<u8>)> = Vec::new();
    for account in accounts {
        let size = code_size(codes.size(account.address, &account.account)?)?;
        let record = AccountRecord::following(None, account.account, size);
        let encoded = record.encode();
        let address = account.address;
        for first_chunk in std::iter::once(0).chain((128..record.chunks).step_by(256)) {
            let index = match first_chunk {
                0 => U256::ZERO,
                chunk => chunk_place(chunk).0,
            };
            let value = [
                &[ACCOUNT],
                &address[..],
                &first_chunk.to_be_bytes(),
                &encoded,
            ]
            .concat();
            leaves.push((names.len(), 0, value));
            names.push(StemName { address, index });
        }
        records.push(Write {
            table: ACCOUNTS,
            key: address.as_slice().into(),
            value: Some(encoded),
        });
        for slot in account.slots {
            let (index, suffix) = slot_place(slot.slot);
            let name = StemName { address, index };
            if names.last() != Some(&name) {
                names.push(name);
            }
            let value = encode_slot(slot.value);
            leaves.push((names.len() - 1, suffix, [&[SLOT], &value[..]].concat()));
            slots.push(Write {
                table: SLOTS,
                key: slot_key(address, slot.slot).into(),
                value: Some(value),
            });
        }
    }
    let hashed = hashed(stems, &names);
    let leaves = leaves.into_iter().map(|(name, suffix, value)| {
        let mut key = [suffix; 32];
        key[..31].copy_from_slice(&hashed[name]);
        SpreadLeaf { key, value }
    });
    Ok(Spread {
        leaves: leaves.collect(),
        records: vec![records, slots],
    })
}

/// Reads the leaves under one stem, whose entries ascend by key: the stem, and its values by suffix. Code is read from the view.
pub(crate) fn read_leaf_group(
    view: View<'_>,
    layout: HeaderLayout,
    group: &[NumberedLeaf],
) -> Result<(Stem, Vec<(u8, LeafValue)>), StateError> {
    let mut stem = Stem::default();
    let mut values = Vec::with_capacity(group.len());
    for leaf in group {
        let malformed = || corrupt("parts", &leaf.key, "not a leaf under a stem");
        stem.copy_from_slice(&leaf.key[..31]);
        match leaf.value.split_first() {
            Some((&SLOT, value)) => {
                let value = decode_slot(&leaf.key, value)?;
                values.push((leaf.key[31], value.to_be_bytes()));
            }
            Some((&ACCOUNT, rest)) => {
                let (address, rest) = rest.split_first_chunk::<20>().ok_or_else(malformed)?;
                let (first_chunk, record) = rest.split_first_chunk().ok_or_else(malformed)?;
                let record = AccountRecord::decode(&leaf.key, record)?;
                let account = (Address::from(*address), &record);
                let first_chunk = u32::from_be_bytes(*first_chunk);
                values.extend(account_leaves(view, layout, account, first_chunk)?);
            }
            _ => return Err(malformed()),
        }
    }
    values.sort_unstable_by_key(|(suffix, _)| *suffix);
    Ok((stem, values))
}

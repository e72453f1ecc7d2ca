//! Reading single records of a Merkle-Patricia state, by the keys of its tries.

use alloy_primitives::U256;
use arbor_tree::Hash;

use super::keys::{ACCOUNTS, SLOTS, flat_slot_key, slot_key};
use super::records::{AccountRecord, FlatRecord, SlotRecord};
use arbor_state_tree::{Flat, StateError};

pub(super) fn account_record(
    flat: &dyn Flat,
    key: &Hash,
) -> Result<Option<AccountRecord>, StateError> {
    flat.value(ACCOUNTS, key)?
        .map(|bytes| AccountRecord::decode(key, &bytes))
        .transpose()
}

pub(super) fn slot_value(flat: &dyn Flat, account: &Hash, slot: U256) -> Result<U256, StateError> {
    let key = flat_slot_key(account, &slot_key(slot));
    match flat.value(SLOTS, &key)? {
        Some(bytes) => Ok(SlotRecord::decode(&key, &bytes)?.value),
        None => Ok(U256::ZERO),
    }
}

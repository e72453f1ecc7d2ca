//! Reading the flat records of a Merkle-Patricia state, by plain name.

use alloy_primitives::{Address, U256};
use arbor_hashing::keccak256_fixed;
use arbor_store::{Table, Value};
use arbor_tree::Hash;

use super::keys::{ACCOUNTS, SLOTS, account_key, contract_key, flat_slot_key, slot_key};
use super::records::{AccountRecord, FlatRecord, SlotRecord};
use arbor_state_tree::WithSlots;
use arbor_state_tree::{Account, Accounts, StateError};
use arbor_state_tree::{Flat, FlatKey};

/// An account, by its name.
pub(crate) fn account(flat: &dyn Flat, address: Address) -> Result<Option<Account>, StateError> {
    let record = account_record(flat, &account_key(address))?;
    Ok(record.map(|record| record.account))
}

/// Accounts, by their names.
pub(crate) fn accounts_named(
    flat: &dyn Flat,
    addresses: &[Address],
) -> Result<Vec<Option<Account>>, StateError> {
    let mut keys = vec![Hash::default(); addresses.len()];
    let names: Vec<[u8; 20]> = addresses.iter().map(|address| address.0.0).collect();
    keccak256_fixed(&names, &mut keys);
    let wanted: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let records = keys.iter().zip(flat.values(ACCOUNTS, &wanted)?);
    let account = |(key, bytes): (&Hash, Option<Value>)| {
        let record = bytes.map(|bytes| AccountRecord::decode(key, &bytes));
        Ok(record.transpose()?.map(|record| record.account))
    };
    records.map(account).collect()
}

pub(crate) fn flat_keys(
    accounts: &[Address],
    slots: &[(Address, U256)],
) -> [(Table, Vec<FlatKey>); 2] {
    let account = |&address: &Address| account_key(address).into();
    let slot = |&(address, slot): &(Address, U256)| -> FlatKey {
        flat_slot_key(&account_key(address), &slot_key(slot)).into()
    };
    [
        (ACCOUNTS, accounts.iter().map(account).collect()),
        (SLOTS, slots.iter().map(slot).collect()),
    ]
}

/// The accounts whose keys begin with `prefix`, with their slots: ascending by the hash of the
/// address, and slots by the hash of the slot's number.
pub(super) fn listing<'a>(flat: &'a dyn Flat, prefix: &[u8]) -> Result<Accounts<'a>, StateError> {
    let accounts = flat.entries(ACCOUNTS, prefix)?;
    Ok(Box::new(accounts.map(|entry| {
        let (key, bytes) = entry?;
        let record = AccountRecord::decode(&key, &bytes)?;
        let slots = flat.entries(SLOTS, &key)?.map(|entry| {
            let (key, bytes) = entry?;
            let slot = SlotRecord::decode(&key, &bytes)?;
            Ok((slot.slot, slot.value))
        });
        Ok(WithSlots {
            address: record.address,
            account: record.account,
            slots: slots.collect::<Result<_, StateError>>()?,
            storage_root: Some(record.storage_root),
        })
    })))
}

/// A slot's value, by its name; zero if absent.
pub(crate) fn storage(flat: &dyn Flat, address: Address, slot: U256) -> Result<U256, StateError> {
    slot_value(flat, &contract_key(address), slot)
}

/// Whether an account has a slot that is not zero.
pub(crate) fn has_storage(flat: &dyn Flat, address: Address) -> Result<bool, StateError> {
    let record = account_record(flat, &account_key(address))?;
    Ok(record.is_some_and(|record| record.has_storage()))
}

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

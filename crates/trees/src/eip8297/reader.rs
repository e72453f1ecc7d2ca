//! Reading accounts and slots by plain name, and the whole state in the order of names.

use alloy_primitives::{Address, B256, U256};
use arbor_state_tree::{ACCOUNTS, Account, Flat, SLOTS, StateError, WithSlots, corrupt};
use arbor_store::Value;

use super::records::{AccountRecord, decode_slot};
use crate::plain;
use crate::stems::{account_key, slot_key, slot_name};

pub(super) fn account(flat: &dyn Flat, address: Address) -> Result<Option<Account>, StateError> {
    Ok(account_record(flat, address)?.map(|record| record.account))
}

pub(super) fn account_record(
    flat: &dyn Flat,
    address: Address,
) -> Result<Option<AccountRecord>, StateError> {
    let key = address.as_slice();
    record(key, flat.value(ACCOUNTS, key)?)
}

/// Accounts, in the order of their addresses.
pub(super) fn accounts_named(
    flat: &dyn Flat,
    addresses: &[Address],
) -> Result<Vec<Option<Account>>, StateError> {
    let keys: Vec<&[u8]> = addresses.iter().map(|address| &address[..]).collect();
    let records = keys.iter().zip(flat.values(ACCOUNTS, &keys)?);
    let accounts = records.map(|(key, bytes)| Ok(record(key, bytes)?.map(|record| record.account)));
    accounts.collect()
}

/// The record that bytes are.
pub(super) fn record(
    key: &[u8],
    bytes: Option<Value>,
) -> Result<Option<AccountRecord>, StateError> {
    let record = bytes.map(|bytes| AccountRecord::decode(key, &bytes));
    record.transpose()
}

/// A slot's value; zero if absent.
pub(super) fn storage(flat: &dyn Flat, address: Address, slot: U256) -> Result<U256, StateError> {
    let key = slot_key(address, slot);
    let value = flat.value(SLOTS, &key)?;
    let value = value.map(|bytes| decode_slot(&key, &bytes)).transpose()?;
    Ok(value.unwrap_or_default())
}

/// Whether an account has a slot.
pub(super) fn has_storage(flat: &dyn Flat, address: Address) -> Result<bool, StateError> {
    let first = flat.entries(SLOTS, address.as_slice())?.next();
    Ok(first.transpose()?.is_some())
}

/// The accounts whose addresses begin with `prefix`, ascending by address.
pub(super) fn accounts<'a>(
    flat: &'a dyn Flat,
    prefix: &[u8],
) -> Result<impl Iterator<Item = Result<WithSlots, StateError>> + use<'a>, StateError> {
    let mut slots = flat.entries(SLOTS, prefix)?.peekable();
    let mut accounts = flat.entries(ACCOUNTS, prefix)?;
    let mut next = move || {
        let Some((key, bytes)) = accounts.next().transpose()? else {
            // Slots behind the last account.
            return match slots.next().transpose()? {
                Some((key, _)) => Err(corrupt("slots", &key, "its account does not exist")),
                None => Ok(None),
            };
        };
        let address = account_key(&key)?;
        let account = AccountRecord::decode(&key, &bytes)?.account;
        let mut found = Vec::new();
        let up_to = |entry: &Result<(Box<[u8]>, Value), StateError>| match entry {
            Ok((key, _)) => key.get(..20).is_none_or(|of| of <= address.as_slice()),
            Err(_) => true,
        };
        while let Some(entry) = slots.next_if(up_to) {
            let (key, bytes) = entry?;
            let (of, slot) = slot_name(&key)?;
            if of != address {
                return Err(corrupt("slots", &key, "its account does not exist"));
            }
            found.push((slot, decode_slot(&key, &bytes)?));
        }
        Ok(Some(WithSlots {
            address,
            account,
            slots: found,
            storage_root: None,
        }))
    };
    Ok(std::iter::from_fn(move || next().transpose()))
}

/// The Merkle-Patricia root of the same accounts.
pub(super) fn flat_root(flat: &(dyn Flat + Sync)) -> Result<B256, StateError> {
    plain::root(|first| accounts(flat, &[first]))
}

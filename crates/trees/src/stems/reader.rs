//! Reading accounts and slots by plain name, and the whole state in the order of names.

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_store::{Table, Value};
use arbor_versions::View;

use super::records::{AccountRecord, account_key, decode_slot, slot_key, slot_name};
use crate::plain;
use arbor_state_tree::WithSlots;
use arbor_state_tree::{ACCOUNTS, CODE, SLOTS};
use arbor_state_tree::{Account, ReadError, StateError};
use arbor_state_tree::{Flat, FlatKey};

/// An account; none if it was there once and is gone.
pub(crate) fn account(flat: &dyn Flat, address: Address) -> Result<Option<Account>, StateError> {
    let key = address.as_slice();
    account_of(key, flat.value(ACCOUNTS, key)?)
}

/// Accounts, in the order of their addresses.
pub(crate) fn accounts_named(
    flat: &dyn Flat,
    addresses: &[Address],
) -> Result<Vec<Option<Account>>, StateError> {
    let keys: Vec<&[u8]> = addresses.iter().map(|address| &address[..]).collect();
    let records = keys.iter().zip(flat.values(ACCOUNTS, &keys)?);
    let accounts = records.map(|(key, record)| account_of(key, record));
    accounts.collect()
}

/// What a record says of an account.
fn account_of(key: &[u8], record: Option<Value>) -> Result<Option<Account>, StateError> {
    let record = record.map(|bytes| AccountRecord::decode(key, &bytes));
    Ok(record.transpose()?.and_then(|record| record.account))
}

pub(crate) fn flat_keys(
    accounts: &[Address],
    slots: &[(Address, U256)],
) -> [(Table, Vec<FlatKey>); 2] {
    let account = |address: &Address| address.as_slice().into();
    let slot = |&(address, slot): &(Address, U256)| -> FlatKey { slot_key(address, slot).into() };
    [
        (ACCOUNTS, accounts.iter().map(account).collect()),
        (SLOTS, slots.iter().map(slot).collect()),
    ]
}

/// A slot's value; zero if absent.
pub(crate) fn storage(flat: &dyn Flat, address: Address, slot: U256) -> Result<U256, StateError> {
    let key = slot_key(address, slot);
    match flat.value(SLOTS, &key)? {
        Some(bytes) => decode_slot(&key, &bytes),
        None => Ok(U256::ZERO),
    }
}

/// Whether an account has a slot that is not zero.
pub(crate) fn has_storage(flat: &dyn Flat, address: Address) -> Result<bool, StateError> {
    for entry in flat.entries(SLOTS, address.as_slice())? {
        if !entry?.1.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The code with a hash.
pub(crate) fn stored_code(view: View<'_>, code_hash: B256) -> Result<Bytes, StateError> {
    let code = view.get(CODE, code_hash.as_slice())?;
    let code = code.ok_or(StateError::View(ReadError::MissingCode(code_hash)))?;
    Ok(Bytes::copy_from_slice(&code))
}

/// The accounts that exist and whose addresses begin with `prefix`, ascending by address.
pub(crate) fn accounts<'a>(
    flat: &'a dyn Flat,
    prefix: &[u8],
) -> Result<impl Iterator<Item = Result<WithSlots, StateError>> + use<'a>, StateError> {
    let mut slots = flat.entries(SLOTS, prefix)?.peekable();
    let mut of_account = move |address: Address| {
        let mut found = Vec::new();
        let up_to = |entry: &Result<(Box<[u8]>, _), _>| match entry {
            Ok((key, _)) => key.get(..20).is_none_or(|of| of <= address.as_slice()),
            Err(_) => true,
        };
        while let Some(entry) = slots.next_if(up_to) {
            let (key, bytes) = entry?;
            let (of, slot) = slot_name(&key)?;
            let value = decode_slot(&key, &bytes)?;
            if value.is_zero() {
                continue;
            }
            if of != address {
                let why = "its account does not exist";
                return Err(arbor_state_tree::corrupt("slots", &key, why));
            }
            found.push((slot, value));
        }
        Ok(found)
    };
    let accounts = flat.entries(ACCOUNTS, prefix)?.map(move |entry| {
        let (key, bytes) = entry?;
        let address = account_key(&key)?;
        let Some(account) = AccountRecord::decode(&key, &bytes)?.account else {
            return Ok(None);
        };
        Ok(Some(WithSlots {
            address,
            account,
            slots: of_account(address)?,
            storage_root: None,
        }))
    });
    Ok(accounts.filter_map(Result::transpose))
}

/// The Merkle-Patricia root of the same accounts.
pub(crate) fn flat_root(flat: &(dyn Flat + Sync)) -> Result<B256, StateError> {
    plain::root(|first| accounts(flat, &[first]))
}

//! Flat records, and the root of all of them.

use alloy_primitives::{Address, B256, U256};
use arbor_state_tree::conformance::{Codes, Contents, Model as NaiveModel};
use arbor_state_tree::{ACCOUNTS, Account, FlatKey, SLOTS, StateError, corrupt};
use arbor_store::{Table, Value};
use sha2::{Digest, Sha256};

use super::Records;

/// Nonce (8 bytes, big-endian), balance (32), hash of the code (32).
pub(super) fn account_record(account: &Account) -> Value {
    let nonce = account.nonce.to_be_bytes();
    let balance = account.balance.to_be_bytes::<32>();
    [&nonce[..], &balance, account.code_hash.as_slice()]
        .concat()
        .into()
}

pub(super) fn decode_account(key: &[u8], bytes: &[u8]) -> Result<Account, StateError> {
    if key.len() != 20 || bytes.len() != 72 {
        return Err(corrupt("accounts", key, "of another length"));
    }
    let (nonce, rest) = bytes.split_at(8);
    Ok(Account {
        nonce: nonce
            .iter()
            .fold(0, |nonce, byte| nonce << 8 | u64::from(*byte)),
        balance: U256::from_be_slice(&rest[..32]),
        code_hash: B256::from_slice(&rest[32..]),
    })
}

pub(super) fn slot_key(address: Address, slot: U256) -> FlatKey {
    [address.as_slice(), &slot.to_be_bytes::<32>()]
        .concat()
        .into()
}

pub(super) fn decode_slot(key: &[u8], bytes: &[u8]) -> Result<U256, StateError> {
    match key.len() == 52 && bytes.len() == 32 {
        true => Ok(U256::from_be_slice(bytes)),
        false => Err(corrupt("slots", key, "of another length")),
    }
}

/// The records of an account and its slots.
pub(super) fn account_records(
    address: Address,
    account: &Account,
    slots: impl Iterator<Item = (U256, U256)>,
) -> impl Iterator<Item = ((Table, FlatKey), Value)> {
    let own = (
        (ACCOUNTS, address.as_slice().into()),
        account_record(account),
    );
    let slots = slots.map(move |(slot, value)| {
        let value: Value = value.to_be_bytes::<32>()[..].into();
        ((SLOTS, slot_key(address, slot)), value)
    });
    std::iter::once(own).chain(slots)
}

/// SHA-256 over the records, ascending: table, key and value, each with its length.
pub(super) fn root(records: &Records) -> B256 {
    let mut hasher = Sha256::new();
    for ((table, key), value) in records {
        hasher.update([table.0]);
        for part in [&key[..], value] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
    }
    B256::from_slice(&hasher.finalize())
}

/// The same from plain maps.
pub(super) struct Model;

impl NaiveModel for Model {
    fn after(&mut self, contents: &Contents, _: &Codes) -> B256 {
        let records = contents.iter().flat_map(|(address, (account, slots))| {
            let slots = slots.iter().map(|(slot, value)| (*slot, *value));
            account_records(*address, account, slots)
        });
        root(&records.collect())
    }
}

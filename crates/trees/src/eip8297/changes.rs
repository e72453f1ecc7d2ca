//! From a block's changes to flat changes.

use std::collections::BTreeMap;

use crate::named_records::slot_key;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use arbor_state_tree::{
    ACCOUNTS, AccountChange, Flat, FlatKey, SLOTS, StateChanges, StateError, check_old_account,
    check_old_slot, corrupt,
};
use arbor_store::{Table, Value};
use arbor_verify::eip8297::Code;
use arbor_versions::{Change, Changes};

use super::CODE_USERS;
use super::reader::record;
use super::records::{AccountRecord, decode_slot, decode_users, encode_slot, encode_users};

/// Finds code by its hash.
pub(super) type CodeOf<'a> = &'a (dyn Fn(B256) -> Result<Bytes, StateError> + 'a);

/// The flat changes of a block, ascending by table and key.
pub(super) fn flat_changes(
    before: &dyn Flat,
    changes: &StateChanges,
    code: CodeOf<'_>,
) -> Result<Changes, StateError> {
    let mut flat = Changes::default();
    // How many more accounts have a code than before.
    let mut users: BTreeMap<B256, i64> = BTreeMap::new();
    let keys: Vec<&[u8]> = changes
        .accounts
        .keys()
        .map(|address| &address[..])
        .collect();
    let records = before.values(ACCOUNTS, &keys)?;
    for ((address, change), bytes) in changes.accounts.iter().zip(records) {
        let key = address.as_slice();
        let old = record(key, bytes.clone())?;
        check_old_account(*address, change.old, old.map(|old| old.account))?;
        let new = record_after(*address, old.as_ref(), change, code)?;
        for (record, more) in [(old, -1), (new, 1)] {
            if let Some(code) = record.and_then(|record| record.code_with_leaves()) {
                *users.entry(code).or_default() += more;
            }
        }
        let new = new.map(|record| record.encode());
        put(&mut flat, ACCOUNTS, key, bytes.as_deref(), new.as_deref());
    }
    slot_changes(before, changes, &mut flat)?;
    users.retain(|_, more| *more != 0);
    for (code, more) in users {
        let key = code.as_slice();
        let old = before.value(CODE_USERS, key)?;
        let number = old
            .as_ref()
            .map(|bytes| decode_users(key, bytes))
            .transpose()?;
        let after = number.unwrap_or_default().checked_add_signed(more);
        let after =
            after.ok_or_else(|| corrupt("code users", key, "fewer than accounts have it"))?;
        put(
            &mut flat,
            CODE_USERS,
            key,
            old.as_deref(),
            encode_users(after).as_deref(),
        );
    }
    Ok(flat)
}

fn put(flat: &mut Changes, table: Table, key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) {
    if old != new {
        flat.put_flat(Change {
            table,
            key,
            old,
            new,
        });
    }
}

/// The record of an account after a change, if its leaves have room for it.
fn record_after(
    address: Address,
    before: Option<&AccountRecord>,
    change: &AccountChange,
    code: CodeOf<'_>,
) -> Result<Option<AccountRecord>, StateError> {
    let Some(account) = change.new else {
        return Ok(None);
    };
    let code = match before {
        _ if account.code_hash == KECCAK256_EMPTY => Code::None,
        Some(before) if before.account.code_hash == account.code_hash => before.code,
        _ => Code::of(&code(account.code_hash)?)
            .map_err(|cause| StateError::no_room(address, cause))?,
    };
    let record = AccountRecord { account, code };
    record.fields(address)?;
    Ok(Some(record))
}

fn slot_changes(
    before: &dyn Flat,
    changes: &StateChanges,
    flat: &mut Changes,
) -> Result<(), StateError> {
    let stays = |change: &AccountChange| !change.storage_cleared && change.new.is_some();
    let kept = changes.accounts.iter().filter(|(_, change)| stays(change));
    let keys = kept
        .flat_map(|(address, change)| change.slots.keys().map(|slot| slot_key(*address, *slot)));
    let keys: Vec<[u8; 52]> = keys.collect();
    let wanted: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let mut kept = keys.iter().zip(before.values(SLOTS, &wanted)?);
    for (address, change) in &changes.accounts {
        if !stays(change) {
            cleared_slots(before, *address, change, flat)?;
            continue;
        }
        for ((slot, change), (key, old)) in change.slots.iter().zip(&mut kept) {
            let found = old
                .as_ref()
                .map(|bytes| decode_slot(key, bytes))
                .transpose()?;
            check_old_slot((*address, *slot), change.old, found.unwrap_or_default())?;
            put(
                flat,
                SLOTS,
                key,
                old.as_deref(),
                encode_slot(change.new).as_deref(),
            );
        }
    }
    Ok(())
}

/// A record before and after.
type BeforeAndAfter = (Option<Value>, Option<Value>);

/// All slots that an account had are gone, but for those set since.
fn cleared_slots(
    before: &dyn Flat,
    address: Address,
    change: &AccountChange,
    flat: &mut Changes,
) -> Result<(), StateError> {
    let mut slots: BTreeMap<FlatKey, BeforeAndAfter> = BTreeMap::new();
    for (slot, change) in &change.slots {
        check_old_slot((address, *slot), change.old, U256::ZERO)?;
        let key = slot_key(address, *slot);
        slots.insert(key.into(), (None, encode_slot(change.new)));
    }
    for entry in before.entries(SLOTS, address.as_slice())? {
        let (key, old) = entry?;
        slots.entry(key).or_default().0 = Some(old);
    }
    for (key, (old, new)) in &slots {
        put(flat, SLOTS, key, old.as_deref(), new.as_deref());
    }
    Ok(())
}

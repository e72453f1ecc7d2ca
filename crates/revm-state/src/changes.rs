//! What revm changed, as changes of the state.

use std::collections::BTreeMap;

use alloy_primitives::{B256, Bytes, KECCAK256_EMPTY, U256};
use arbor_accounts::{Account, AccountChange, SlotChange, StateChanges};
use revm::database::{BundleAccount, BundleState};

use crate::account::account_of;

/// Returns what a bundle changes, from before its first block to after its last. Reverts are not looked at.
///
/// Old values are those that revm read. revm takes an empty account of before EIP-161 for one that does not exist.
#[must_use]
pub fn changes_of_bundle(bundle: &BundleState) -> StateChanges {
    let accounts = bundle.state.iter();
    let accounts = accounts.filter_map(|(address, of)| Some((*address, bundle_change(of)?)));
    let accounts: BTreeMap<_, _> = accounts.collect();
    let code_of = |hash: &B256| Some(bundle.contracts.get(hash)?.original_bytes());
    let codes = new_codes(&accounts, code_of);
    StateChanges { accounts, codes }
}

fn bundle_change(of: &BundleAccount) -> Option<AccountChange> {
    let (old, new) = (of.original_info.as_ref(), of.info.as_ref());
    let (old, new) = (old.map(account_of), new.map(account_of));
    let storage_cleared = old.is_some() && (of.was_destroyed() || new.is_none());
    let slots = of.storage.iter().map(|(slot, value)| {
        let old = match storage_cleared || old.is_none() {
            true => U256::ZERO,
            false => value.previous_or_original_value,
        };
        (*slot, old, value.present_value)
    });
    change(old, new, storage_cleared, slots)
}

/// The change of an account; `None` if it changes nothing.
fn change(
    old: Option<Account>,
    new: Option<Account>,
    storage_cleared: bool,
    slots: impl Iterator<Item = (U256, U256, U256)>,
) -> Option<AccountChange> {
    let slots = slots.filter(|(_, old, value)| new.is_some() && old != value);
    let slots = slots.map(|(slot, old, new)| (slot, SlotChange { old, new }));
    let slots: BTreeMap<U256, SlotChange> = slots.collect();
    let is_change = old != new || storage_cleared || !slots.is_empty();
    is_change.then_some(AccountChange {
        old,
        new,
        storage_cleared,
        slots,
    })
}

/// The codes that accounts get.
fn new_codes<A>(
    accounts: &BTreeMap<A, AccountChange>,
    code_of: impl Fn(&B256) -> Option<Bytes>,
) -> BTreeMap<B256, Bytes> {
    let hashes = accounts.values().filter_map(|change| {
        let hash = change.new?.code_hash;
        let old = change.old.map(|old| old.code_hash);
        (old != Some(hash) && hash != KECCAK256_EMPTY).then_some(hash)
    });
    hashes
        .filter_map(|hash| Some((hash, code_of(&hash)?)))
        .collect()
}

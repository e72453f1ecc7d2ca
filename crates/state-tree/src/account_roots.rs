//! The Merkle-Patricia root of accounts, which headers carry, whatever tree commits to them.

use std::sync::Arc;

use alloy_primitives::B256;
use arbor_accounts::{AccountSource, KeyedAccount};
use arbor_tree::{Hash, Position};
use arbor_tree_mpt::{Part, build_many, build_part, join};
use arbor_verify::mpt::{AccountRecord, BY_KECCAK, SlotRecord};
use rayon::prelude::*;

use crate::{StateError, check_order};

/// Computes the root of a state, which need not be stored anywhere, on the threads of the caller's pool.
///
/// # Errors
/// A source of another order than [`BY_KECCAK`]; accounts or slots that do not ascend by key;
/// errors of the source.
pub fn state_root(source: &dyn AccountSource) -> Result<B256, StateError> {
    check_order(source, &BY_KECCAK)?;
    let parts = (0..=u8::MAX).into_par_iter().map(|first| {
        let accounts: Vec<KeyedAccount> = source.stream(Some(first))?.collect::<Result<_, _>>()?;
        let records = records(&accounts, &mut |_, _| ())?;
        account_part(&accounts, &records, &mut |_, _| ())
    });
    let parts: Result<Vec<Part>, StateError> = parts.collect();
    Ok(join(None, parts?, &mut |_, _| ())?.into())
}

/// Accounts as leaves of the account trie, with the roots of their storage, in their order.
///
/// # Errors
/// Slots that do not ascend by key.
pub fn account_leaves(accounts: &[KeyedAccount]) -> Result<Vec<(Hash, Vec<u8>)>, StateError> {
    let leaves = accounts.iter().zip(records(accounts, &mut |_, _| ())?);
    Ok(leaves
        .map(|(account, record)| (account.key, record.filled_leaf()))
        .collect())
}

/// The root of an account's storage.
pub fn storage_root(account: &KeyedAccount) -> Result<B256, StateError> {
    let records = records(std::slice::from_ref(account), &mut |_, _| ())?;
    Ok(records[0].storage_root)
}

/// The root of the account trie with these leaves, ascending by key; computed on the threads of the caller's pool.
///
/// # Errors
/// Leaves that do not ascend.
pub fn root_of_leaves(leaves: &[(Hash, Vec<u8>)]) -> Result<B256, StateError> {
    let ranges: Vec<_> = leaves.chunk_by(|(a, _), (b, _)| a[0] == b[0]).collect();
    let parts = ranges.into_par_iter().map(|range| {
        let leaves = range.iter().map(|(key, leaf)| (*key, leaf.clone()));
        build_part(None, leaves, &mut |_, _| ())
    });
    let parts: Result<Vec<Part>, _> = parts.collect();
    Ok(join(None, parts?, &mut |_, _| ())?.into())
}

/// The flat records of accounts; the nodes of their storage tries go to `sink`.
pub fn records(
    accounts: &[KeyedAccount],
    sink: &mut dyn FnMut(Position, Arc<[u8]>),
) -> Result<Vec<AccountRecord>, StateError> {
    let roots = storage_roots(accounts, sink)?;
    let records = accounts
        .iter()
        .zip(roots)
        .map(|(account, root)| AccountRecord {
            address: account.address,
            account: account.account,
            storage_root: root.into(),
        });
    Ok(records.collect())
}

/// Builds the part of the account trie that accounts make.
pub fn account_part(
    accounts: &[KeyedAccount],
    records: &[AccountRecord],
    sink: &mut dyn FnMut(Position, Arc<[u8]>),
) -> Result<Part, StateError> {
    let leaves = accounts.iter().zip(records);
    let leaves = leaves.map(|(account, record)| (account.key, record.filled_leaf()));
    Ok(build_part(None, leaves, sink)?)
}

/// Builds accounts' storage tries, and returns their roots.
fn storage_roots(
    accounts: &[KeyedAccount],
    sink: &mut dyn FnMut(Position, Arc<[u8]>),
) -> Result<Vec<Hash>, StateError> {
    let tries = accounts.iter().map(|account| {
        let leaves = account.slots.iter();
        let leaves = leaves.map(|slot| (slot.key, SlotRecord::leaf(slot.value).into_vec()));
        (account.key, leaves)
    });
    Ok(build_many(tries, sink)?)
}

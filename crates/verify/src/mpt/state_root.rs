//! The Merkle-Patricia root of accounts, which headers carry, whatever tree commits to them.

use std::sync::Arc;

use alloy_primitives::B256;
use arbor_accounts::{AccountSource, KeyedAccount, ReadError, check_order};
use arbor_tree::{Hash, Position};
use arbor_tree_mpt::{Part, TreeError, build_many, build_part, join};
#[cfg(feature = "rayon")]
use rayon::prelude::*;

use super::keys::BY_KECCAK;
use super::leaf::{AccountRecord, SlotRecord};

fn failed(error: TreeError) -> ReadError {
    ReadError::below(error)
}

/// Makes a part of each item, on the threads of the caller's pool if there are any.
fn parts<T: Sync>(
    of: &[T],
    make: impl Fn(&T) -> Result<Part, ReadError> + Send + Sync,
) -> Result<Vec<Part>, ReadError> {
    #[cfg(feature = "rayon")]
    return of.par_iter().map(make).collect();
    #[cfg(not(feature = "rayon"))]
    return of.iter().map(make).collect();
}

/// Computes the root of a state, which need not be stored anywhere, on the threads of the caller's pool.
///
/// # Errors
/// A source of another order than [`BY_KECCAK`]; accounts or slots that do not ascend by key;
/// errors of the source.
pub fn state_root(source: &dyn AccountSource) -> Result<B256, ReadError> {
    check_order(source, &BY_KECCAK)?;
    let firsts: Vec<u8> = (0..=u8::MAX).collect();
    let parts = parts(&firsts, |first| {
        let accounts = source.stream(Some(*first))?;
        let accounts: Vec<KeyedAccount> = accounts.collect::<Result<_, _>>()?;
        let records = records(&accounts, &mut |_, _| ())?;
        account_part(&accounts, &records, &mut |_, _| ())
    });
    let root = join(None, parts?, &mut |_, _| ()).map_err(failed)?;
    Ok(root.into())
}

/// Accounts as leaves of the account trie, with the roots of their storage, in their order.
///
/// # Errors
/// Slots that do not ascend by key.
pub fn account_leaves(accounts: &[KeyedAccount]) -> Result<Vec<(Hash, Vec<u8>)>, ReadError> {
    let leaves = accounts.iter().zip(records(accounts, &mut |_, _| ())?);
    Ok(leaves
        .map(|(account, record)| (account.key, record.filled_leaf()))
        .collect())
}

/// The root of an account's storage.
///
/// # Errors
/// Slots that do not ascend by key.
pub fn storage_root(account: &KeyedAccount) -> Result<B256, ReadError> {
    let records = records(std::slice::from_ref(account), &mut |_, _| ())?;
    Ok(records[0].storage_root)
}

/// The root of the account trie with these leaves, ascending by key; computed on the threads of the caller's pool.
///
/// # Errors
/// Leaves that do not ascend.
pub fn root_of_leaves(leaves: &[(Hash, Vec<u8>)]) -> Result<B256, ReadError> {
    let ranges: Vec<_> = leaves.chunk_by(|(a, _), (b, _)| a[0] == b[0]).collect();
    let parts = parts(&ranges, |range| {
        let leaves = range.iter().map(|(key, leaf)| (*key, leaf.clone()));
        build_part(None, leaves, &mut |_, _| ()).map_err(failed)
    });
    let root = join(None, parts?, &mut |_, _| ()).map_err(failed)?;
    Ok(root.into())
}

/// The flat records of accounts; the nodes of their storage tries go to `sink`.
///
/// # Errors
/// Slots that do not ascend by key.
pub fn records(
    accounts: &[KeyedAccount],
    sink: &mut dyn FnMut(Position, Arc<[u8]>),
) -> Result<Vec<AccountRecord>, ReadError> {
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
///
/// # Errors
/// Accounts that do not ascend by key.
pub fn account_part(
    accounts: &[KeyedAccount],
    records: &[AccountRecord],
    sink: &mut dyn FnMut(Position, Arc<[u8]>),
) -> Result<Part, ReadError> {
    let leaves = accounts.iter().zip(records);
    let leaves = leaves.map(|(account, record)| (account.key, record.filled_leaf()));
    build_part(None, leaves, sink).map_err(failed)
}

/// Builds accounts' storage tries, and returns their roots.
fn storage_roots(
    accounts: &[KeyedAccount],
    sink: &mut dyn FnMut(Position, Arc<[u8]>),
) -> Result<Vec<Hash>, ReadError> {
    let tries = accounts.iter().map(|account| {
        let leaves = account.slots.iter();
        let leaves = leaves.map(|slot| (slot.key, SlotRecord::leaf(slot.value).into_vec()));
        (account.key, leaves)
    });
    build_many(tries, sink).map_err(failed)
}

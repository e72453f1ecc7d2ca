//! Tries from accounts that another tree's flat tables hold.

use alloy_primitives::B256;
use arbor_tree::Hash;
use arbor_tree_mpt::{Part, build_part, join};
use rayon::prelude::*;

use super::load::{LoadAccount, records};
use crate::StateError;

/// Accounts as leaves of the account trie, with the roots of their storage, in their order.
///
/// # Errors
/// Slots that do not ascend by key.
pub(crate) fn account_leaves(accounts: &[LoadAccount]) -> Result<Vec<(Hash, Vec<u8>)>, StateError> {
    let leaves = accounts.iter().zip(records(accounts, &mut |_, _| ())?);
    Ok(leaves
        .map(|(account, record)| (account.key, record.filled_leaf()))
        .collect())
}

/// The root of an account's storage.
pub(crate) fn storage_root(account: &LoadAccount) -> Result<B256, StateError> {
    let records = records(std::slice::from_ref(account), &mut |_, _| ())?;
    Ok(records[0].storage_root)
}

/// The root of the account trie with these leaves, ascending by key; computed on the threads of the caller's pool.
///
/// # Errors
/// Leaves that do not ascend.
pub(crate) fn root_of_leaves(leaves: &[(Hash, Vec<u8>)]) -> Result<B256, StateError> {
    let ranges: Vec<_> = leaves.chunk_by(|(a, _), (b, _)| a[0] == b[0]).collect();
    let parts = ranges.into_par_iter().map(|range| {
        let leaves = range.iter().map(|(key, leaf)| (*key, leaf.clone()));
        build_part(None, leaves, &mut |_, _| ())
    });
    let parts: Result<Vec<Part>, _> = parts.collect();
    Ok(join(None, parts?, &mut |_, _| ())?.into())
}

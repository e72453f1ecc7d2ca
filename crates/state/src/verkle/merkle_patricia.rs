//! The Merkle-Patricia root of a Verkle state's flat tables: what a header says of the state.

use alloy_primitives::B256;
use arbor_tree::Hash;
use arbor_versions::View;
use rayon::prelude::*;

use super::reader::accounts;
use crate::mpt::{account_leaves, root_of_leaves};
use crate::{LoadAccount, StateError};

/// Accounts whose storage is hashed together, unless they have many slots.
const TOGETHER: usize = 1 << 12;
/// Slots from which on accounts are hashed without waiting for more.
const MANY_SLOTS: usize = 1 << 16;

/// Computes the root on the threads of the caller's pool. Memory grows with the number of accounts, by some 150 bytes each, since they
/// are stored in another order than the trie's, and with the slots of the largest account.
///
/// # Errors
/// The store's errors, and the first record that is not what its table promises.
pub(crate) fn flat_root(view: View<'_>) -> Result<B256, StateError> {
    let ranges = (0..=u8::MAX)
        .into_par_iter()
        .map(|first| leaves(view, first));
    let ranges: Result<Vec<_>, StateError> = ranges.collect();
    let mut leaves: Vec<(Hash, Vec<u8>)> = ranges?.into_iter().flatten().collect();
    leaves.par_sort_unstable_by_key(|(key, _)| *key);
    root_of_leaves(&leaves)
}

/// The trie's leaves of the accounts whose addresses have this first byte.
fn leaves(view: View<'_>, first: u8) -> Result<Vec<(Hash, Vec<u8>)>, StateError> {
    let (mut leaves, mut waiting, mut slots) = (Vec::new(), Vec::new(), 0);
    for entry in accounts(&view, &[first])? {
        let entry = entry?;
        slots += entry.slots.len();
        waiting.push(LoadAccount::new(entry.address, entry.account, entry.slots));
        if waiting.len() == TOGETHER || slots >= MANY_SLOTS {
            leaves.extend(account_leaves(&waiting)?);
            waiting.clear();
            slots = 0;
        }
    }
    leaves.extend(account_leaves(&waiting)?);
    Ok(leaves)
}

//! The Merkle-Patricia root, which headers carry, of a state whose flat tables lead to accounts by plain name.

use alloy_primitives::B256;
use arbor_tree::Hash;
use rayon::prelude::*;

use arbor_state_tree::{FullAccount, StateError, WithSlots};
use arbor_verify::mpt::{BY_KECCAK, account_leaves, root_of_leaves};

/// Accounts whose storage is hashed together, unless they have many slots.
const ACCOUNTS_HASHED_TOGETHER: usize = 1 << 12;
/// Slots from which on accounts are hashed without waiting for more.
const MANY_SLOTS: usize = 1 << 16;

/// Computes the root on the threads of the caller's pool, of the accounts that are listed by the first byte of their addresses. Memory grows with the
/// number of accounts, by some 150 bytes each, since they are stored in another order than the trie's, and with the slots of the largest account.
///
/// # Errors
/// Those of the lists.
pub(crate) fn header_root<I>(
    accounts: impl Fn(u8) -> Result<I, StateError> + Sync,
) -> Result<B256, StateError>
where
    I: Iterator<Item = Result<WithSlots, StateError>>,
{
    let ranges = (0..=u8::MAX)
        .into_par_iter()
        .map(|first| leaves(accounts(first)?));
    let ranges: Result<Vec<_>, StateError> = ranges.collect();
    let mut leaves: Vec<(Hash, Vec<u8>)> = ranges?.into_iter().flatten().collect();
    leaves.par_sort_unstable_by_key(|(key, _)| *key);
    Ok(root_of_leaves(&leaves)?)
}

/// The trie's leaves of some accounts.
fn leaves(
    accounts: impl Iterator<Item = Result<WithSlots, StateError>>,
) -> Result<Vec<(Hash, Vec<u8>)>, StateError> {
    let (mut leaves, mut waiting, mut slots) = (Vec::new(), Vec::<FullAccount>::new(), 0);
    let leaves_of = |accounts: Vec<FullAccount>| account_leaves(&BY_KECCAK.with_keys(accounts));
    for entry in accounts {
        let entry = entry?;
        slots += entry.slots.len();
        waiting.push(entry.into());
        if waiting.len() == ACCOUNTS_HASHED_TOGETHER || slots >= MANY_SLOTS {
            leaves.extend(leaves_of(std::mem::take(&mut waiting))?);
            slots = 0;
        }
    }
    leaves.extend(leaves_of(waiting)?);
    Ok(leaves)
}

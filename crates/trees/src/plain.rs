//! Whole states whose flat tables lead to accounts by plain name: their Merkle-Patricia root, which is what a header says, and their dump.

use alloy_primitives::{Address, B256, U256};
use arbor_tree::Hash;
use rayon::prelude::*;

use arbor_state_tree::{
    BY_KECCAK, FullAccount, StateError, WithSlots, account_leaves, root_of_leaves,
};

/// Accounts whose storage is hashed together, unless they have many slots.
const TOGETHER: usize = 1 << 12;
/// Slots from which on accounts are hashed without waiting for more.
const MANY_SLOTS: usize = 1 << 16;

/// Computes the root on the threads of the caller's pool, of the accounts that are listed by the first byte of their addresses. Memory grows with the
/// number of accounts, by some 150 bytes each, since they are stored in another order than the trie's, and with the slots of the largest account.
///
/// # Errors
/// Those of the lists.
pub(crate) fn root<I>(
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
    root_of_leaves(&leaves)
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
        if waiting.len() == TOGETHER || slots >= MANY_SLOTS {
            leaves.extend(leaves_of(std::mem::take(&mut waiting))?);
            slots = 0;
        }
    }
    leaves.extend(leaves_of(waiting)?);
    Ok(leaves)
}

/// A slot of the first account with storage whose address is not below the first bytes of `account`: the first from `slot` on, else the
/// account's first. `set` finds the first slot whose name begins with some bytes and is not below others.
pub(crate) fn slot_near(
    account: &Hash,
    slot: &Hash,
    set: impl Fn(&[u8], &[u8]) -> Result<Option<(Address, U256)>, StateError>,
) -> Result<Option<(Address, U256)>, StateError> {
    let Some(first) = set(&[], &account[..20])? else {
        return Ok(None);
    };
    let owner = first.0.as_slice();
    let found = set(owner, &[owner, slot].concat())?;
    Ok(found.or(Some(first)))
}

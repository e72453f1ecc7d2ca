//! Proofs of several accounts and slots, and what a version writes in the form of zkSync's prover.

use arbor_accounts::AccountSlots;
use arbor_tree::Hash;
use arbor_tree_ar16mt::{Multiproof, Operation, StorageLogs, TreeError, apply_with_proofs};
use arbor_verify::ar16mt::{StateMultiproof, leaves_of};

use super::compute::next_index;
use super::failed;
use super::names::LeafName;
use super::nodes::{AtHead, Standing};
use super::parts::Ways;
use super::records::{decode_leaf, leaf_key};
use super::settings::with_hasher;
use super::{Ar16mt, LEAVES};
use arbor_state_tree::StateError;
use arbor_state_tree::Then;

/// Proves accounts and slots together.
pub(crate) fn prove_many(
    ar16mt: Ar16mt,
    state: &dyn Then,
    accounts: &[AccountSlots],
) -> Result<StateMultiproof, StateError> {
    let keys = LeafName::keys(&leaves_of(accounts));
    Ok(StateMultiproof {
        accounts: accounts.to_vec(),
        multiproof: multiproof(ar16mt, state, &keys)?.encode().into(),
    })
}

/// Proves keys, present or absent.
pub(super) fn multiproof(
    ar16mt: Ar16mt,
    state: &dyn Then,
    keys: &[Hash],
) -> Result<Multiproof, StateError> {
    let ways = Ways::of(ar16mt, state, keys)?;
    let view = state.view();
    let standing = Standing {
        head: AtHead { view, ar16mt },
        undone: &ways,
        now: &|table, key| state.value(table, key),
    };
    with_hasher!(ar16mt, hasher => Multiproof::new(&standing, hasher, keys)).map_err(failed)
}

/// What a version writes on top of the one before it.
pub(crate) fn storage_logs(
    ar16mt: Ar16mt,
    (before, after): (&dyn Then, &dyn Then),
) -> Result<StorageLogs, StateError> {
    let view = after.view();
    let undo = view.undo_of_part(after.meta().version, LEAVES, 0..=u8::MAX)?;
    let mut operations = Vec::with_capacity(undo.len());
    for write in undo {
        let key = leaf_key(&write.key)?;
        let record = after.value(LEAVES, &key)?;
        let new = record.map(|bytes| decode_leaf(&key, &bytes)).transpose()?;
        // No version takes a leaf away.
        let missing = || failed(TreeError::MissingLeaf(arbor_tree::Path::from_key(&key)));
        let new = Some(new.ok_or_else(missing)?);
        operations.push(((write.value.is_none(), new), Operation { key, new }));
    }
    operations.sort_unstable_by_key(|((is_new, new), operation)| {
        (*is_new, new.map(|entry| entry.index), operation.key)
    });
    let operations: Vec<Operation> = operations.into_iter().map(|(_, one)| one).collect();
    let keys: Vec<Hash> = operations.iter().map(|one| one.key).collect();
    let ways = Ways::of(ar16mt, before, &keys)?;
    let view = before.view();
    let standing = Standing {
        head: AtHead { view, ar16mt },
        undone: &ways,
        now: &|table, key| before.value(table, key),
    };
    let leaves = next_index(before)? - 1;
    Ok(with_hasher!(ar16mt, hasher => {
        let (_, proofs) = apply_with_proofs(&standing, hasher, &operations).map_err(failed)?;
        StorageLogs::new(hasher, leaves, &operations, &proofs)
    }))
}

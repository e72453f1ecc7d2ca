//! Proofs of accounts and slots, and what a block touches.

use std::collections::BTreeSet;

use arbor_state_tree::{AccountSlots, Opened, StateError, StateWitness, Then, Touched, own};
use arbor_tree_eip7864::{Path, select, select_for_updates};
use arbor_verify::eip7864::{AccountsMultiproof, HashName, MultiproofFile, keys_of};

use super::updates::updates;
use super::{Eip7864, failed};
use crate::binary::{AtHead, AtVersion};
use crate::stems::{code_after, flat_changes, leaf_changes};

fn nodes<'t>(then: &'t dyn Then) -> Result<AtVersion<'t>, StateError> {
    Ok(AtVersion {
        undone: own(then.nodes()?),
        head: AtHead(then.view()),
    })
}

/// Bits of a key that are its stem: 31 of its 32 bytes (EIP-7864, "Tree structure").
const STEM_BITS: usize = 248;

/// Proves accounts and slots of them by one proof.
pub(super) fn prove_accounts(
    tree: Eip7864,
    then: &dyn Then,
    accounts: &[AccountSlots],
) -> Result<AccountsMultiproof, StateError> {
    let keys = keys_of(tree.stems(), accounts);
    let nodes = nodes(then)?;
    let selection = select(&nodes, tree.hasher, tree.packing, &keys).map_err(failed)?;
    Ok(AccountsMultiproof {
        revision: tree.revision,
        file: MultiproofFile {
            hash: HashName::of(tree.hasher.0),
            accounts: accounts.to_vec(),
            multiproof: selection.multiproof().encode().into(),
        },
    })
}

/// One proof of the leaves that a block reads and changes: all fields of every account, and slots.
pub(super) fn block_proof(
    tree: Eip7864,
    then: &dyn Then,
    touched: Touched<'_>,
) -> Result<StateWitness, StateError> {
    let stems = tree.stems();
    let code = code_after(then.view(), touched.changes);
    let flat = flat_changes(then, touched.changes, &code)?;
    let changes = leaf_changes(flat.flat(), Eip7864::LAYOUT, &stems, &code)?;
    let reads = touched.reads.iter().map(|(address, slots)| AccountSlots {
        address: *address,
        slots: slots.iter().copied().collect(),
    });
    // What changes is also read: fields that stay, and slots that stay absent.
    let changed = touched.changes.accounts.iter();
    let changed = changed.map(|(address, change)| AccountSlots {
        address: *address,
        slots: change.slots.keys().copied().collect(),
    });
    let accounts: Vec<AccountSlots> = reads.chain(changed).collect();
    let mut keys: Vec<Path> = keys_of(stems, &accounts);
    keys.sort_unstable();
    keys.dedup();
    let nodes = nodes(then)?;
    let updates = updates(&changes);
    let selection = select_for_updates(&nodes, tree.hasher, tree.packing, &keys, &updates);
    let selection = selection.map_err(failed)?;
    let updated = updates.iter().map(|update| update.key);
    let leaves: BTreeSet<Path> = keys.iter().copied().chain(updated).collect();
    let of_leaves: BTreeSet<Path> = leaves.iter().map(|key| key.prefix(STEM_BITS)).collect();
    Ok(StateWitness::Nodes {
        nodes: vec![selection.multiproof().encode().into()],
        opened: Opened {
            nodes: Some(selection.nodes().count() as u64),
            stems: Some(of_leaves.len() as u64),
            leaves: leaves.len() as u64,
        },
    })
}

//! What a block's changes make of the leaves, and those of the tree.

use std::collections::BTreeMap;
use std::time::Instant;

use alloy_primitives::{Address, U256};
use arbor_store::{Value, Write};
use arbor_tree::{Hash, Position};
use arbor_tree_ar16mt::{
    Entry, LeafUpdate, NodeChange, Operation, OperationProofs, TreeError, TreeStats, TreeUpdate,
    apply, apply_unread, apply_with_proofs, order_of,
};
use arbor_versions::{Change, Changes, View};
use rayon::prelude::*;

use super::LeafWrite;
use super::names::{LeafName, Named};
use super::nodes::{AtHead, spread};
use super::reader::{account, slots};
use super::records::{
    decode_counter, decode_leaf, encode_counter, encode_leaf, leaf_key, leaf_record,
};
use super::settings::with_hasher;
use super::{Ar16mt, COUNTER, KEY_BYTES, LEAVES, NAMES, NEXT_INDEX, NODES, failed};
use arbor_state_tree::Flat;
use arbor_state_tree::code_writes;
use arbor_state_tree::corrupt;
use arbor_state_tree::{AccountChange, Computed, StateChanges, StateError};
use arbor_state_tree::{LeafProofs, LeafStats, ProvenLeaves, check_old_account, check_old_slot};
use arbor_verify::ar16mt::fields;

/// Records that a thread forms together.
const RECORDS_OF_A_THREAD: usize = 1 << 10;

/// A leaf to be changed.
struct LeafChange {
    key: Hash,
    /// The record before.
    old: Option<Value>,
    new: Entry,
}

/// A value that a leaf is to have.
struct Wish {
    name: LeafName,
    value: Hash,
    /// What the changes say that it held before, zeros if it is absent; `None` if they do not say.
    said: Option<Hash>,
}

/// What changes on top of the head make of the state.
pub(crate) fn compute(
    ar16mt: Ar16mt,
    view: View<'_>,
    changes: &StateChanges,
) -> Result<Computed, StateError> {
    let start = Instant::now();
    let wishes = wishes(view, changes)?;
    let names: Vec<LeafName> = wishes.iter().map(|wish| wish.name).collect();
    let keys = LeafName::keys(&names);
    let before = records(ar16mt, view, &keys)?;
    let mut next = next_index(&view)?;
    let (mut leaves, mut blobs) = (Vec::new(), code_writes(changes.codes.iter()));
    for ((wish, key), old) in wishes.into_iter().zip(keys).zip(before) {
        let Wish { name, value, said } = wish;
        let found = old.as_ref().map_or([0; 32], |(_, entry)| entry.value);
        if said.is_some_and(|said| said != found) {
            return Err(old_value_error(view, changes, name, found));
        }
        let index = match &old {
            Some((_, entry)) if entry.value == value => continue,
            Some((_, entry)) => entry.index,
            None if value == [0; 32] => continue,
            None => {
                let index = next;
                next = after(index)?;
                blobs.extend(Named::of(name).map(|named| name_write(named, &key)));
                index
            }
        };
        leaves.push(LeafChange {
            key,
            old: old.map(|(bytes, _)| bytes),
            new: Entry { index, value },
        });
    }
    let keys = start.elapsed();
    let mut computed = compute_changes(ar16mt, view, leaves, next)?;
    computed.changes.blobs = blobs;
    computed.timings.keys += keys;
    Ok(computed)
}

/// What entries without accounts make of the tree. New ones are numbered in the order of the batch.
pub(super) fn compute_entries(
    ar16mt: Ar16mt,
    view: View<'_>,
    batch: &[(Hash, Hash)],
) -> Result<Computed, StateError> {
    let start = Instant::now();
    let keys: Vec<Hash> = batch.iter().map(|(key, _)| *key).collect();
    let before = records(ar16mt, view, &keys)?;
    let mut next = next_index(&view)?;
    let mut leaves = Vec::with_capacity(batch.len());
    for ((key, value), old) in batch.iter().zip(before) {
        let index = match &old {
            Some((_, entry)) if entry.value == *value => continue,
            Some((_, entry)) => entry.index,
            None => {
                let index = next;
                next = after(index)?;
                index
            }
        };
        leaves.push(LeafChange {
            key: *key,
            old: old.map(|(bytes, _)| bytes),
            new: Entry {
                index,
                value: *value,
            },
        });
    }
    let keys = start.elapsed();
    let mut computed = compute_changes(ar16mt, view, leaves, next)?;
    computed.timings.keys += keys;
    Ok(computed)
}

/// What changes of leaves, in any order, make of the tree.
fn compute_changes(
    ar16mt: Ar16mt,
    view: View<'_>,
    mut leaves: Vec<LeafChange>,
    next: u64,
) -> Result<Computed, StateError> {
    let start = Instant::now();
    leaves.sort_unstable_by_key(|leaf| leaf.key);
    let updates: Vec<LeafUpdate> = leaves
        .iter()
        .map(|leaf| LeafUpdate {
            key: leaf.key,
            existed: leaf.old.is_some(),
            new: Some(leaf.new),
        })
        .collect();
    let keyed = Instant::now();
    let reader = AtHead { view, ar16mt };
    let update =
        with_hasher!(ar16mt, hasher => apply(&reader, hasher, &updates)).map_err(failed)?;
    let tree = keyed.elapsed();
    let mut computed = computed(view, leaves.into_iter(), next, update)?;
    computed.timings.keys = keyed - start;
    computed.timings.tree = tree;
    Ok(computed)
}

/// What writes of leaves make of the tree, below any account. The tree tells which of them are there: nodes know enough of their leaves' keys.
pub(crate) fn compute_leaves(
    ar16mt: Ar16mt,
    view: View<'_>,
    writes: &[LeafWrite],
) -> Result<(Computed, LeafStats), StateError> {
    let start = Instant::now();
    let next = next_after(view, writes)?;
    let update = |at: &u32| {
        let write = &writes[*at as usize];
        LeafUpdate {
            key: write.key,
            existed: false,
            new: Some(entry(write)),
        }
    };
    let order = order_of(writes, |write| &write.key);
    let updates = order
        .par_iter()
        .with_min_len(RECORDS_OF_A_THREAD)
        .map(update);
    let updates: Vec<LeafUpdate> = updates.collect();
    let reader = AtHead { view, ar16mt };
    let update =
        with_hasher!(ar16mt, hasher => apply_unread(&reader, hasher, &updates)).map_err(failed)?;
    let (tree, stats) = (start.elapsed(), update.stats);
    let new = updates.into_iter();
    let new = new.filter_map(|update| Some((update.key, update.new?)));
    let mut computed = computed_leaves(view, new, next, update)?;
    computed.timings.tree = tree;
    Ok((computed, leaf_stats(&stats)))
}

/// As [`compute_leaves`], for leaves that are not there yet; the inner error is a key that is, or that comes twice.
pub(crate) fn compute_new(
    ar16mt: Ar16mt,
    view: View<'_>,
    leaves: &[LeafWrite],
) -> Result<Result<Computed, Hash>, StateError> {
    let (computed, _) = match compute_leaves(ar16mt, view, leaves) {
        // They are sorted for it, so keys that do not ascend are the same.
        Err(error) => match error.in_tree() {
            Some(TreeError::Order(key)) => return Ok(Err(*key)),
            _ => return Err(error),
        },
        Ok(computed) => computed,
    };
    let mut changes = computed.changes.flat();
    let there = changes.find(|change| change.table == LEAVES && change.old.is_some());
    if let Some(change) = there {
        return Ok(Err(leaf_key(change.key)?));
    }
    drop(changes);
    Ok(Ok(computed))
}

/// As [`computed`], of writes of leaves, ascending by key: what they held the tree found, and maybe of others, too.
fn computed_leaves(
    view: View<'_>,
    new: impl Iterator<Item = (Hash, Entry)> + Send,
    next: u64,
    mut update: TreeUpdate,
) -> Result<Computed, StateError> {
    let mut found = std::mem::take(&mut update.found).into_iter().peekable();
    let changes = new.map(move |(key, new)| {
        while found.next_if(|(other, _)| *other < key).is_some() {}
        let old = found.next_if(|(other, _)| *other == key);
        let old = old.map(|(_, entry)| encode_leaf(&entry));
        LeafChange { key, old, new }
    });
    computed(view, changes, next, update)
}

/// As [`compute_leaves`], with a proof of each write, and of each of some reads after them. Of writes of one key the last remains.
pub(crate) fn compute_proven(
    ar16mt: Ar16mt,
    view: View<'_>,
    writes: &[LeafWrite],
    reads: &[Hash],
) -> Result<ProvenLeaves, StateError> {
    let start = Instant::now();
    let next = next_after(view, writes)?;
    let (write, read) = (
        writes.par_iter().with_min_len(RECORDS_OF_A_THREAD),
        reads.par_iter().with_min_len(RECORDS_OF_A_THREAD),
    );
    let write = write.map(|write| Operation {
        key: write.key,
        new: Some(entry(write)),
    });
    let read = read.map(|key| Operation {
        key: *key,
        new: None,
    });
    let operations: Vec<Operation> = write.chain(read).collect();
    let reader = AtHead { view, ar16mt };
    let (update, proofs) =
        with_hasher!(ar16mt, hasher => apply_with_proofs(&reader, hasher, &operations))
            .map_err(failed)?;
    drop(operations);
    let (tree, stats) = (start.elapsed(), update.stats);
    let mut computed = computed_leaves(view, proofs.written(), next, update)?;
    computed.timings.tree = tree;
    Ok(ProvenLeaves {
        computed,
        stats: leaf_stats(&stats),
        proofs: Box::new(Proofs { ar16mt, proofs }),
    })
}

/// Proofs of operations, with the tree's hash function.
struct Proofs {
    ar16mt: Ar16mt,
    proofs: OperationProofs,
}

impl LeafProofs for Proofs {
    fn count(&self) -> usize {
        self.proofs.len()
    }

    fn root_after(&self, operation: usize) -> Hash {
        self.proofs.roots()[operation]
    }

    fn found(&self, operation: usize, key: &Hash) -> Option<LeafWrite> {
        let Entry { index, value } = self.proofs.outcome(operation).before()?;
        let key = *key;
        Some(LeafWrite { key, index, value })
    }

    fn holds(
        &self,
        operation: usize,
        before: &Hash,
        key: &Hash,
        write: Option<&LeafWrite>,
    ) -> bool {
        let proof = self.proofs.get(operation);
        with_hasher!(self.ar16mt, hasher => proof.verify(hasher, before, key, write.map(entry)))
    }
}

fn leaf_stats(stats: &TreeStats) -> LeafStats {
    LeafStats {
        new_leaves: stats.new_leaves,
        moved_leaves: stats.moved_leaves,
        updated_leaves: stats.updated_leaves,
        new_internals: stats.new_internals,
        nodes_read: stats.nodes_read,
        nodes_written: stats.nodes_written,
        level_sum: stats.level_sum,
        level_max: stats.level_max,
        hashed_bytes: stats.hashed_bytes(),
        fold_hashes: stats.fold_hashes,
        rise_hashes: stats.rise_hashes,
        node_hashes: stats.node_hashes,
        load: stats.load,
        place: stats.place,
        hash: stats.hash,
    }
}

/// The writes behind an update of the tree; the leaves ascend.
fn computed(
    view: View<'_>,
    leaves: impl Iterator<Item = LeafChange> + Send,
    next: u64,
    update: TreeUpdate,
) -> Result<Computed, StateError> {
    let start = Instant::now();
    let (mut changes, nodes) = rayon::join(|| leaf_changes(leaves), || node_changes(update.nodes));
    changes.put_flat(Change {
        table: COUNTER,
        key: NEXT_INDEX,
        old: view.get(COUNTER, NEXT_INDEX)?.as_deref(),
        new: Some(&encode_counter(next)),
    });
    changes.append(nodes);
    let mut computed = Computed::on_head(view, update.root.into(), changes);
    computed.timings.writes = start.elapsed();
    Ok(computed)
}

fn leaf_changes(leaves: impl Iterator<Item = LeafChange>) -> Changes {
    let mut changes = Changes::default();
    changes.reserve(leaves.size_hint().1.unwrap_or(0) + 1, 0);
    for leaf in leaves {
        changes.put_flat(Change {
            table: LEAVES,
            key: &leaf.key,
            old: leaf.old.as_deref(),
            new: Some(&leaf_record(&leaf.new)),
        });
    }
    changes
}

fn node_changes(nodes: Vec<NodeChange>) -> Changes {
    let mut changes = Changes::default();
    changes.reserve(0, nodes.len());
    for change in nodes {
        let key = Position::outer(change.path).key();
        changes.put_shared_node(NODES, &key, change.record);
    }
    changes
}

/// The values that leaves are to have, in the order in which new ones are numbered. All fields of each account are among them, so that
/// all old values are checked, and slots that a block does not change may be.
fn wishes(view: View<'_>, changes: &StateChanges) -> Result<Vec<Wish>, StateError> {
    let mut wishes = Vec::with_capacity(4 * changes.accounts.len());
    for (&address, change) in &changes.accounts {
        let (old, new) = (fields(change.old), fields(change.new));
        let names = [
            LeafName::Nonce(address),
            LeafName::Balance(address),
            LeafName::CodeHash(address),
        ];
        for (name, (old, value)) in names.into_iter().zip(old.into_iter().zip(new)) {
            let said = Some(old);
            wishes.push(Wish { name, value, said });
        }
        let slots = slot_wishes(view, address, change)?;
        wishes.extend(slots.into_iter().map(|(slot, (value, said))| Wish {
            name: LeafName::Slot(address, slot),
            value: value.to_be_bytes(),
            said: said.map(|said| said.to_be_bytes()),
        }));
    }
    Ok(wishes)
}

/// The error of changes that say that a leaf held another value than it does.
fn old_value_error(
    view: View<'_>,
    changes: &StateChanges,
    name: LeafName,
    found: Hash,
) -> StateError {
    let address = match name {
        LeafName::Nonce(address)
        | LeafName::Balance(address)
        | LeafName::CodeHash(address)
        | LeafName::Slot(address, _) => address,
    };
    let change = &changes.accounts[&address];
    let checked = match name {
        LeafName::Slot(_, slot) => {
            let found = U256::from_be_bytes(found);
            check_old_slot((address, slot), change.slots[&slot].old, found)
        }
        _ => {
            account(&view, address).and_then(|found| check_old_account(address, change.old, found))
        }
    };
    match checked {
        Err(error) => error,
        Ok(()) => corrupt("leaves", &name.key(), "an account's leaves do not agree"),
    }
}

/// The values that slots are to have, and those that the changes say that they had.
fn slot_wishes(
    view: View<'_>,
    address: Address,
    change: &AccountChange,
) -> Result<BTreeMap<U256, (U256, Option<U256>)>, StateError> {
    let mut wishes = BTreeMap::new();
    let clears = change.storage_cleared || change.new.is_none();
    if clears {
        for slot in slots(&view, address)? {
            wishes.insert(slot?, (U256::ZERO, None));
        }
    }
    for (slot, change) in &change.slots {
        if clears {
            check_old_slot((address, *slot), change.old, U256::ZERO)?;
        }
        wishes.insert(*slot, (change.new, (!clears).then_some(change.old)));
    }
    Ok(wishes)
}

/// The records of leaves.
fn records(
    ar16mt: Ar16mt,
    view: View<'_>,
    keys: &[Hash],
) -> Result<Vec<Option<(Value, Entry)>>, StateError> {
    spread(ar16mt, keys, |keys: &[Hash]| {
        let wanted: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let found = view.multi_get(LEAVES, &wanted)?.into_iter().zip(keys);
        let records = found.map(|(bytes, key)| {
            let Some(bytes) = bytes else { return Ok(None) };
            let entry = decode_leaf(key, &bytes)?;
            Ok(Some((bytes, entry)))
        });
        records.collect()
    })
}

fn entry(write: &LeafWrite) -> Entry {
    Entry {
        index: write.index,
        value: write.value,
    }
}

/// The number of the next leaf after writes.
fn next_after(view: View<'_>, writes: &[LeafWrite]) -> Result<u64, StateError> {
    let last = writes.iter().map(|write| write.index).max();
    let next = last.map_or(Ok(0), after)?;
    Ok(next.max(next_index(&view)?))
}

/// Leaves are numbered on, and after the last number there is none.
#[derive(Debug, thiserror::Error)]
#[error("no leaf can have index {}: none could come after it", u64::MAX)]
struct LastIndex;

/// The number after an index.
pub(super) fn after(index: u64) -> Result<u64, StateError> {
    index.checked_add(1).ok_or_else(|| failed(LastIndex))
}

/// The number of the next leaf: 1 in an empty tree.
pub(super) fn next_index(state: &dyn Flat) -> Result<u64, StateError> {
    match state.value(COUNTER, NEXT_INDEX)? {
        Some(bytes) => decode_counter(&bytes),
        None => Ok(1),
    }
}

pub(super) fn name_write(named: Named, key: &Hash) -> Write {
    Write {
        table: NAMES,
        key: named.encode().into(),
        value: Some(key[..KEY_BYTES].into()),
    }
}

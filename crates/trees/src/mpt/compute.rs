//! What a block's changes make of the tries and of the flat tables beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use alloy_primitives::U256;
use arbor_store::Value;
use arbor_tree::{Hash, Position};
use arbor_tree_mpt::{
    InnerPart, OuterUpdate, TreeError, TreeUpdate, apply_inner, apply_nodes, apply_outer,
};
use arbor_versions::{Change, Changes, View};
use rayon::prelude::*;

use super::AtHead;
use super::failed;
use super::keys::{ACCOUNTS, SLOTS, STORAGE_NODES, flat_slot_key, node_table};
use super::prove::Provable;
use super::records::{AccountRecord, FlatRecord, SlotRecord};
use arbor_state_tree::code_writes;
use arbor_state_tree::{Computed, StateChanges, StateError, Timings};
use arbor_state_tree::{check_old_account, check_old_slot};
use arbor_verify::mpt::{KeyedChange, keyed, tree_updates};

/// What changes on top of the head make of the state. Called on a thread of a rayon pool, it spreads large changes over the
/// pool.
pub(crate) fn compute(head: AtHead<'_>, changes: &StateChanges) -> Result<Computed, StateError> {
    let start = Instant::now();
    let mut old_values = Vec::new();
    let keyed = keyed(changes, |keys| {
        old_values = head.account_values(keys)?;
        let values = keys.iter().zip(&old_values);
        let records = values.map(|(key, value)| {
            let value = value.as_ref();
            value
                .map(|value| AccountRecord::decode(key, value))
                .transpose()
        });
        records.collect()
    })?;
    for change in &keyed {
        let found = change.old.map(|record| record.account);
        check_old_account(change.address, change.change.old, found)?;
    }
    let old_slots = OldSlots::read(head.0, &keyed)?;
    let updates = tree_updates(&keyed);
    let hashed = Instant::now();
    let cleared = keyed.iter().filter(|change| change.clears_storage());
    let mut gone = stored_nodes(head.0, cleared.map(|change| &change.key[..]))?;
    let slots: usize = keyed.iter().map(|change| change.slots.len()).sum();
    let touched = keyed.len() + slots;
    let mut written = Changes::default();
    // Mostly fewer than two nodes are written for each name that changes.
    written.reserve(touched, 2 * touched);
    let update = apply_spread(head, &updates, &mut |position, record| {
        let key = position.key();
        gone.remove(&*key);
        written.put_node(node_table(position), &key, record);
    });
    let update = update.map_err(|error| old_slot_error(head, &keyed, error))?;
    for key in gone {
        written.put_node(STORAGE_NODES, &key, None);
    }
    let applied = Instant::now();
    // By table and key, as they are applied fastest.
    let mut record = Vec::new();
    for (change, root) in keyed.iter().zip(&update.inner_roots) {
        let new = change.new_record(*root);
        record.clear();
        if let Some(new) = &new {
            new.encode_into(&mut record);
        }
        written.put_flat(Change {
            table: ACCOUNTS,
            key: &change.key,
            old: old_values[change.place].as_deref(),
            new: new.map(|_| &record[..]),
        });
    }
    let mut old_slots = old_slots.0.iter();
    for change in &keyed {
        slot_changes(head, change, &mut old_slots, &mut written)?;
    }
    written.blobs = code_writes(changes.codes.iter());
    let mut computed = Computed::on_head(head.0, update.root.into(), written);
    computed.timings = Timings {
        keys: hashed - start,
        tree: applied - hashed,
        writes: applied.elapsed(),
    };
    Ok(computed)
}

/// The records of slots that change and, as the changes say, are there before: in the order of the changes, where no
/// storage is cleared. The changes are checked against them.
///
/// A slot that is said to be absent is not read here: the trie finds out without a read if that is wrong.
struct OldSlots(Vec<Option<Value>>);

impl OldSlots {
    fn read(view: View<'_>, changes: &[KeyedChange<'_>]) -> Result<Self, StateError> {
        let mut keys = Vec::new();
        for change in changes {
            let clears = change.starts_empty();
            for slot in &change.slots {
                match clears {
                    true => {
                        check_old_slot((change.address, slot.slot), slot.change.old, U256::ZERO)?;
                    }
                    false if slot.change.old.is_zero() => {}
                    false => keys.push(flat_slot_key(&change.key, &slot.key)),
                }
            }
        }
        let wanted: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let records = view.multi_get(SLOTS, &wanted)?;
        let mut found = keys.iter().zip(&records);
        for change in changes.iter().filter(|change| !change.starts_empty()) {
            for slot in &change.slots {
                if slot.change.old.is_zero() {
                    continue;
                }
                let Some((key, record)) = found.next() else {
                    unreachable!("invariant: a record for each key");
                };
                let value = match record {
                    Some(bytes) => SlotRecord::decode(key, bytes)?.value,
                    None => U256::ZERO,
                };
                check_old_slot((change.address, slot.slot), slot.change.old, value)?;
            }
        }
        Ok(Self(records))
    }
}

/// The error of the trie in terms of the changes, if it is that a slot is there which they say is absent.
fn old_slot_error(head: AtHead<'_>, changes: &[KeyedChange<'_>], error: StateError) -> StateError {
    let Some(TreeError::There { key, position }) = error.in_tree() else {
        return error;
    };
    let Some(owner) = position.trie else {
        return error;
    };
    let change = changes.iter().find(|change| change.key == owner);
    let slot = change.and_then(|change| change.slots.iter().find(|slot| slot.key == *key));
    let (Some(change), Some(slot)) = (change, slot) else {
        return error;
    };
    let named = (change.address, slot.slot);
    let found = head.slot_value(&owner, slot.slot);
    match found.and_then(|found| check_old_slot(named, slot.change.old, found)) {
        // The flat tables do not have what the trie has.
        Ok(()) => error,
        Err(error) => error,
    }
}

/// The flat changes of one account's slots. A cleared storage is listed slot by slot.
fn slot_changes(
    head: AtHead<'_>,
    change: &KeyedChange<'_>,
    old_slots: &mut dyn Iterator<Item = &Option<Value>>,
    changes: &mut Changes,
) -> Result<(), StateError> {
    if !change.clears_storage() {
        let mut new = Vec::new();
        for slot in &change.slots {
            let old = match slot.change.old.is_zero() {
                true => None,
                false => old_slots.next().and_then(Option::as_deref),
            };
            changes.put_flat(Change {
                table: SLOTS,
                key: &flat_slot_key(&change.key, &slot.key),
                old,
                new: encoded(slot.new_record(), &mut new),
            });
        }
        return Ok(());
    }
    let mut after: BTreeMap<Box<[u8]>, Value> = BTreeMap::new();
    for slot in &change.slots {
        if let Some(record) = slot.new_record() {
            after.insert(
                flat_slot_key(&change.key, &slot.key).into(),
                record.encode(),
            );
        }
    }
    let mut put = |key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>| {
        changes.put_flat(Change {
            table: SLOTS,
            key,
            old,
            new,
        });
    };
    for entry in head.0.scan(SLOTS, &change.key, &change.key)? {
        let (key, old) = entry?;
        put(&key, Some(&old), after.remove(&key).as_deref());
    }
    for (key, new) in after {
        put(&key, None, Some(&new));
    }
    Ok(())
}

/// A slot's stored form, in the buffer.
fn encoded(record: Option<SlotRecord>, buffer: &mut Vec<u8>) -> Option<&[u8]> {
    buffer.clear();
    record?.encode_into(buffer);
    Some(buffer)
}

/// Changed slots from which on storage tries are spread over the threads of a pool.
const SPREAD_FROM: usize = 256;

/// Applies updates, those of different accounts' storage on different threads if the caller runs in a pool. The nodes changed are given to `each`.
fn apply_spread(
    head: AtHead<'_>,
    updates: &[OuterUpdate],
    each: &mut dyn FnMut(&Position, Option<&[u8]>),
) -> Result<TreeUpdate, StateError> {
    let (head, root): (_, Hash) = (&head, head.root());
    let slots: usize = updates.iter().map(|update| update.inner.len()).sum();
    let threads = match rayon::current_thread_index() {
        Some(_) => rayon::current_num_threads(),
        None => 1,
    };
    if threads == 1 || slots < SPREAD_FROM {
        return apply_nodes(head, root, updates, each).map_err(failed);
    }
    // Some more pieces than threads, since accounts differ in size; but few, since a piece fills the hash lanes alone.
    let most = slots.div_ceil(2 * threads);
    let mut weight = 0;
    let pieces = updates.chunk_by(|update, _| {
        weight += update.inner.len();
        let full = weight >= most;
        weight = if full { 0 } else { weight };
        !full
    });
    let pieces: Vec<&[OuterUpdate]> = pieces.collect();
    let parts: Result<Vec<InnerPart>, TreeError> = pieces
        .into_par_iter()
        .map(|piece| apply_inner(head, piece))
        .collect();
    let mut update = parts
        .and_then(|parts| apply_outer(head, root, updates, parts))
        .map_err(failed)?;
    for change in std::mem::take(&mut update.nodes) {
        each(&change.position, change.record.as_deref());
    }
    Ok(update)
}

/// The keys of all nodes of the given storage tries.
pub(crate) fn stored_nodes<'a>(
    view: View<'_>,
    owners: impl Iterator<Item = &'a [u8]>,
) -> Result<BTreeSet<Box<[u8]>>, StateError> {
    let mut keys = BTreeSet::new();
    for owner in owners {
        for entry in view.scan(STORAGE_NODES, owner, owner)? {
            keys.insert(entry?.0);
        }
    }
    Ok(keys)
}

//! What a block's changes make of the tries and of the flat tables beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use arbor_store::{Value, Write};
use arbor_tree::Hash;
use arbor_tree_mpt::{
    InnerPart, OuterUpdate, TreeError, TreeUpdate, apply_inner, apply_nodes, apply_outer,
};
use arbor_versions::{Changes, View};
use rayon::prelude::*;

use super::AtHead;
use super::embedding::{KeyedChange, keyed, tree_updates};
use super::keys::{STORAGE_NODES, flat_slot_key, node_table};
use super::records::AccountRecord;
use crate::state::code_writes;
use crate::tables::{ACCOUNTS, SLOTS};
use crate::{Computed, StateChanges, StateError, Timings, Work};

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
    let updates = tree_updates(&keyed);
    let hashed = Instant::now();
    let update = apply_spread(head, &updates)?;
    let applied = Instant::now();
    let mut computed = Computed {
        root: update.root.into(),
        changes: Changes::default(),
        timings: Timings {
            keys: hashed - start,
            tree: applied - hashed,
            writes: Duration::ZERO,
        },
        work: Work::default(),
    };
    // By table and key, as they are applied fastest.
    for (change, root) in keyed.iter().zip(&update.inner_roots) {
        let old = old_values[change.place].take();
        let new = change.new_record(*root).map(|record| record.encode());
        computed.push_flat(ACCOUNTS, &change.key, old, new);
    }
    for change in &keyed {
        slot_changes(head, change, &mut computed)?;
    }
    let cleared = keyed.iter().filter(|change| change.clears_storage());
    let cleared = cleared.map(|change| &change.key[..]);
    computed.changes.nodes = node_writes(head.0, cleared, update)?;
    computed.changes.blobs = code_writes(changes.codes.iter());
    computed.timings.writes = applied.elapsed();
    Ok(computed)
}

/// The flat changes of one account's slots. A cleared storage is listed slot by slot.
fn slot_changes(
    head: AtHead<'_>,
    change: &KeyedChange<'_>,
    computed: &mut Computed,
) -> Result<(), StateError> {
    if !change.clears_storage() {
        for slot in &change.slots {
            let (old, new) = slot.records();
            let key = flat_slot_key(&change.key, &slot.key);
            computed.push_flat(
                SLOTS,
                &key,
                old.map(|r| r.encode()),
                new.map(|r| r.encode()),
            );
        }
        return Ok(());
    }
    let mut after: BTreeMap<Box<[u8]>, Value> = BTreeMap::new();
    for slot in &change.slots {
        if let Some(record) = slot.records().1 {
            after.insert(
                flat_slot_key(&change.key, &slot.key).into(),
                record.encode(),
            );
        }
    }
    for entry in head.0.scan(SLOTS, &change.key, &change.key)? {
        let (key, old) = entry?;
        let new = after.remove(&key);
        computed.push_flat(SLOTS, &key, Some(old), new);
    }
    for (key, new) in after {
        computed.push_flat(SLOTS, &key, None, Some(new));
    }
    Ok(())
}

/// Changed slots from which on storage tries are spread over the threads of a pool.
const SPREAD_FROM: usize = 256;

/// Applies updates, those of different accounts' storage on different threads if the caller runs in a pool.
fn apply_spread(head: AtHead<'_>, updates: &[OuterUpdate]) -> Result<TreeUpdate, StateError> {
    let (head, root): (_, Hash) = (&head, head.root());
    let slots: usize = updates.iter().map(|update| update.inner.len()).sum();
    let threads = match rayon::current_thread_index() {
        Some(_) => rayon::current_num_threads(),
        None => 1,
    };
    if threads == 1 || slots < SPREAD_FROM {
        return Ok(apply_nodes(head, root, updates)?);
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
    Ok(apply_outer(head, root, updates, parts?)?)
}

/// Node writes of an update, after the deletion of all nodes of the given storage tries.
pub(crate) fn node_writes<'a>(
    view: View<'_>,
    cleared: impl Iterator<Item = &'a [u8]>,
    update: TreeUpdate,
) -> Result<Vec<Write>, StateError> {
    let mut gone: BTreeSet<Box<[u8]>> = BTreeSet::new();
    for owner in cleared {
        for entry in view.scan(STORAGE_NODES, owner, owner)? {
            gone.insert(entry?.0);
        }
    }
    let mut writes = Vec::with_capacity(update.nodes.len() + gone.len());
    for change in update.nodes {
        let key: Box<[u8]> = Box::from(&*change.position.key());
        gone.remove(&key);
        writes.push(Write {
            table: node_table(&change.position),
            key,
            value: change.record,
        });
    }
    writes.extend(gone.into_iter().map(|key| Write {
        table: STORAGE_NODES,
        key,
        value: None,
    }));
    Ok(writes)
}

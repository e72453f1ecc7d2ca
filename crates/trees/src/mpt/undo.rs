//! The tries of other versions than the head's: what changed laid over those of the head.

use std::collections::BTreeMap;

use arbor_store::{Value, Write};
use arbor_tree::Hash;
use arbor_tree_mpt::{EMPTY_ROOT, InnerUpdate, LaidNodes, OuterUpdate, TreeUpdate, apply};
use arbor_versions::{Meta, View};

use super::AtHead;
use super::compute::stored_nodes;
use super::failed;
use super::keys::{ACCOUNTS, SLOTS, STORAGE_NODES, account_key, node_table, slot_key};
use super::records::{AccountRecord, FlatRecord, SlotRecord};
use arbor_state_tree::Lookup;
use arbor_state_tree::StateError;
use arbor_state_tree::corrupt;

/// The tries of another version than the head's: what changed on the way there laid over those of the head.
pub(super) struct Undone {
    pub(super) laid: LaidNodes,
    root: Hash,
}

impl Undone {
    /// Begins at the head.
    pub(super) fn new(view: View<'_>) -> Self {
        Self {
            root: AtHead(view).root(),
            laid: LaidNodes::default(),
        }
    }

    /// See [`StateTree::step`](crate::StateTree::step).
    pub(super) fn step(
        &mut self,
        view: View<'_>,
        to: &Meta,
        then: &[Write],
        now: Lookup<'_>,
    ) -> Result<(), StateError> {
        let (updates, _) = updates_to(then, now)?;
        let update = apply(&self.laid.over(AtHead(view)), self.root, &updates).map_err(failed)?;
        check_rebuilt(to, then, &update)?;
        self.laid.push(&update);
        self.root = update.root;
        Ok(())
    }
}

/// The writes of nodes that lead from the head back to the version `to`, whose flat values `undo` has.
pub(crate) fn writes_back(
    view: View<'_>,
    to: &Meta,
    undo: &[Write],
) -> Result<Vec<Write>, StateError> {
    let head = AtHead(view);
    let (updates, cleared) = updates_to(undo, &|table, key| Ok(view.get(table, key)?))?;
    let update = apply(&head, head.root(), &updates).map_err(failed)?;
    check_rebuilt(to, undo, &update)?;
    let mut gone = stored_nodes(view, cleared.iter().map(|owner| &owner[..]))?;
    let write = |table, key, value| Write { table, key, value };
    let mut writes = Vec::with_capacity(update.nodes.len());
    for change in update.nodes {
        let key: Box<[u8]> = Box::from(&*change.position.key());
        gone.remove(&key);
        writes.push(write(node_table(&change.position), key, change.record));
    }
    writes.extend(gone.into_iter().map(|key| write(STORAGE_NODES, key, None)));
    Ok(writes)
}

/// Tree updates that lead from a state whose values `now` gives to one whose values `then` has, and the accounts whose storage trie does not exist there.
fn updates_to(
    then: &[Write],
    now: Lookup<'_>,
) -> Result<(Vec<OuterUpdate>, Vec<Hash>), StateError> {
    let mut slots: BTreeMap<Hash, Vec<InnerUpdate>> = BTreeMap::new();
    for Write { key, value, .. } in then.iter().filter(|write| write.table == SLOTS) {
        let (owner, slot) = split_slot_key(key)?;
        let value = value
            .as_ref()
            .map(|bytes| SlotRecord::decode(key, bytes))
            .transpose()?;
        if value.is_some_and(|record| slot_key(record.slot) != slot) {
            return Err(wrong_name("slots", key));
        }
        slots.entry(owner).or_default().push(InnerUpdate {
            key: slot,
            existed: now(SLOTS, key)?.is_some(),
            value: value.map(|record| SlotRecord::leaf(record.value)),
        });
    }
    let (mut updates, mut cleared) = (Vec::new(), Vec::new());
    for Write { key, value, .. } in then.iter().filter(|write| write.table == ACCOUNTS) {
        let owner: Hash = key[..]
            .try_into()
            .map_err(|_| wrong_length("accounts", key))?;
        let record = |bytes: Option<&Value>| {
            let record = bytes.map(|bytes| AccountRecord::decode(&owner, bytes));
            record.transpose()
        };
        let (now, then) = (
            record(now(ACCOUNTS, key)?.as_ref())?,
            record(value.as_ref())?,
        );
        if then.is_some_and(|record| account_key(record.address) != owner) {
            return Err(wrong_name("accounts", key));
        }
        let mut inner = slots.remove(&owner).unwrap_or_default();
        if then.is_none() {
            if inner.iter().any(|slot| slot.value.is_some()) {
                return Err(corrupt(
                    "slots",
                    key,
                    "slots of an account that did not exist",
                ));
            }
            inner.clear();
            cleared.push(owner);
        }
        updates.push(OuterUpdate {
            key: owner,
            existed: now.is_some(),
            inner_root: now.map_or(EMPTY_ROOT, |record| record.storage_root.0),
            leaf: then.map(|record| AccountRecord::leaf(&record.account)),
            inner,
        });
    }
    match slots.into_keys().next() {
        // Every slot change changes its account's storage root, so the account has a record too.
        Some(owner) => Err(corrupt("accounts", &owner, "slots undone without account")),
        None => Ok((updates, cleared)),
    }
}

/// Checks what the tree makes of undo records: the version's root, and the storage root of every account,
/// which the tree computes and does not take from the record.
fn check_rebuilt(meta: &Meta, then: &[Write], update: &TreeUpdate) -> Result<(), StateError> {
    if update.root != meta.root {
        return Err(StateError::RebuiltRoot {
            version: meta.version.0,
            expected: meta.root.into(),
            actual: update.root.into(),
        });
    }
    let accounts = then.iter().filter(|write| write.table == ACCOUNTS);
    for (Write { key, value, .. }, root) in accounts.zip(&update.inner_roots) {
        let Some(bytes) = value else { continue };
        if AccountRecord::decode(key, bytes)?.storage_root != *root {
            return Err(corrupt(
                "accounts",
                key,
                "undone to a storage root that its slots do not have",
            ));
        }
    }
    Ok(())
}

fn wrong_name(table: &'static str, key: &[u8]) -> StateError {
    corrupt(
        table,
        key,
        "undone to a name of which the key is not the hash",
    )
}

fn wrong_length(table: &'static str, key: &[u8]) -> StateError {
    corrupt(table, key, "key of the wrong length")
}

pub(super) fn split_slot_key(key: &[u8]) -> Result<(Hash, Hash), StateError> {
    let (owner, slot) = key
        .split_first_chunk::<32>()
        .ok_or_else(|| wrong_length("slots", key))?;
    Ok((
        *owner,
        slot.try_into().map_err(|_| wrong_length("slots", key))?,
    ))
}

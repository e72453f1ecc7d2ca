//! The tries of an older version: the undo records applied to those of the head.

use std::collections::BTreeMap;

use arbor_store::{Table, Value, Write};
use arbor_tree::Hash;
use arbor_tree_mpt::{EMPTY_ROOT, InnerUpdate, OuterUpdate, Overlay, TreeUpdate, apply};
use arbor_versions::Meta;

use super::AtHead;
use super::compute::stored_nodes;
use super::keys::{ACCOUNTS, SLOTS, STORAGE_NODES, account_key, node_table, slot_key};
use super::records::{AccountRecord, SlotRecord};
use crate::StateError;
use crate::error::corrupt;

/// What lies between the tries of the head and those of an older version.
pub(crate) struct Undone<'a> {
    head: AtHead<'a>,
    update: TreeUpdate,
    cleared: Vec<Hash>,
    pub(super) overlay: Overlay<AtHead<'a>>,
}

impl<'a> Undone<'a> {
    /// Rebuilds the tries of `to`, whose flat values `undo` has.
    pub(crate) fn new(head: AtHead<'a>, to: &Meta, undo: &[Write]) -> Result<Self, StateError> {
        let now = |table, key: &[u8]| Ok(head.0.get(table, key)?);
        let (updates, cleared) = updates_back(undo, now)?;
        let update = apply(&head, head.root(), &updates)?;
        check_rebuilt(to, undo, &update)?;
        let mut overlay = Overlay::new(head);
        overlay.push(&update);
        Ok(Self {
            head,
            update,
            cleared,
            overlay,
        })
    }

    /// The writes of nodes that lead back.
    pub(crate) fn into_writes(self) -> Result<Vec<Write>, StateError> {
        let cleared = self.cleared.iter().map(|owner| &owner[..]);
        let mut gone = stored_nodes(self.head.0, cleared)?;
        let write = |table, key, value| Write { table, key, value };
        let mut writes = Vec::with_capacity(self.update.nodes.len());
        for change in self.update.nodes {
            let key: Box<[u8]> = Box::from(&*change.position.key());
            gone.remove(&key);
            writes.push(write(node_table(&change.position), key, change.record));
        }
        writes.extend(gone.into_iter().map(|key| write(STORAGE_NODES, key, None)));
        Ok(writes)
    }
}

/// Tree updates that lead from a later state, whose values `now` gives, back to the one whose values `undo`
/// has, and the accounts whose storage trie does not exist there.
pub(super) fn updates_back(
    undo: &[Write],
    now: impl Fn(Table, &[u8]) -> Result<Option<Value>, StateError>,
) -> Result<(Vec<OuterUpdate>, Vec<Hash>), StateError> {
    let mut slots: BTreeMap<Hash, Vec<InnerUpdate>> = BTreeMap::new();
    for Write {
        key, value: old, ..
    } in undo.iter().filter(|write| write.table == SLOTS)
    {
        let (owner, slot) = split_slot_key(key)?;
        let value = old
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
    for Write {
        key, value: old, ..
    } in undo.iter().filter(|write| write.table == ACCOUNTS)
    {
        let owner: Hash = key[..]
            .try_into()
            .map_err(|_| wrong_length("accounts", key))?;
        let record = |bytes: Option<&Value>| {
            let record = bytes.map(|bytes| AccountRecord::decode(&owner, bytes));
            record.transpose()
        };
        let (now, then) = (record(now(ACCOUNTS, key)?.as_ref())?, record(old.as_ref())?);
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
pub(super) fn check_rebuilt(
    meta: &Meta,
    undo: &[Write],
    update: &TreeUpdate,
) -> Result<(), StateError> {
    if update.root != meta.root {
        return Err(StateError::RebuiltRoot {
            version: meta.version.0,
            expected: meta.root.into(),
            actual: update.root.into(),
        });
    }
    let accounts = undo.iter().filter(|write| write.table == ACCOUNTS);
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

//! The state at an older version: flat values from the undo records, nodes rebuilt from them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_store::{Table, Value, Write};
use arbor_tree::{Hash, Leaf, NodeReader, NodeRequest, ReadError};
use arbor_tree_mpt::{EMPTY_ROOT, InnerUpdate, OuterUpdate, Overlay, TreeUpdate, apply};
use arbor_versions::{Meta, Version};

use crate::head::Head;
use crate::keys::{ACCOUNTS, SLOTS, account_key, flat_slot_key, slot_key};
use crate::mpt::{MptState, node_writes};
use crate::pending::{Base, PendingRoots};
use crate::proof::Provable;
use crate::records::{AccountRecord, SlotRecord};
use crate::{Account, StateError, StateView};

/// A flat record with its key.
pub(crate) type FlatEntry = Result<(Box<[u8]>, Value), StateError>;

/// The state of a retained version, readable and provable.
///
/// Opening costs nothing, and an account or a slot some seeks. Nodes are not stored: the first proof, scan or
/// root applies the undo records since to the head's tree in memory, which costs what changed since; after
/// that everything costs what it costs at the head.
pub struct Historical<'a> {
    head: Head<'a>,
    meta: Meta,
    undone: OnceLock<Undone<'a>>,
}

/// What lies between the head and an older version.
struct Undone<'a> {
    flat: BTreeMap<(Table, Box<[u8]>), Option<Value>>,
    update: TreeUpdate,
    cleared: Vec<Hash>,
    overlay: Overlay<Head<'a>>,
}

impl<'a> Undone<'a> {
    fn new(head: Head<'a>, to: &Meta) -> Result<Self, StateError> {
        let undo = head.view().undo_since(to.version)?;
        let now = |table, key: &[u8]| Ok(head.view().get(table, key)?);
        let (updates, cleared) = updates_back(&undo, now)?;
        let update = apply(&head, head.root().0, &updates)?;
        check_rebuilt(to, &undo, &update)?;
        let mut overlay = Overlay::new(head);
        overlay.push(&update);
        let flat = undo
            .into_iter()
            .map(|write| ((write.table, write.key), write.value))
            .collect();
        Ok(Self {
            flat,
            update,
            cleared,
            overlay,
        })
    }
}

impl<'a> Historical<'a> {
    pub(crate) fn new(head: Head<'a>, version: Version) -> Result<Self, StateError> {
        head.view().retained(version)?;
        let meta = head.view().meta(version)?.ok_or(StateError::Read(format!(
            "no record of retained version {}",
            version.0
        )))?;
        Ok(Self {
            head,
            meta,
            undone: OnceLock::new(),
        })
    }

    /// What lies between the head and this version, read and rebuilt at the first call.
    fn undone(&self) -> Result<&Undone<'a>, StateError> {
        if let Some(undone) = self.undone.get() {
            return Ok(undone);
        }
        let undone = Undone::new(self.head, &self.meta)?;
        Ok(self.undone.get_or_init(|| undone))
    }

    /// The version's block and root.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Roots of changes laid over this version, for receipts from before Byzantium.
    pub fn intermediate_roots(&self) -> PendingRoots<'_> {
        PendingRoots::new(self)
    }

    fn value(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StateError> {
        let view = self.head.view();
        let Some(undone) = self.undone.get() else {
            return Ok(view.get_at(self.meta.version, table, key)?);
        };
        match undone.flat.get(&(table, Box::from(key))) {
            Some(value) => Ok(value.clone()),
            None => Ok(view.get(table, key)?),
        }
    }

    pub(crate) fn record(&self, key: &Hash) -> Result<Option<AccountRecord>, StateError> {
        self.value(ACCOUNTS, key)?
            .map(|bytes| AccountRecord::decode(key, &bytes))
            .transpose()
    }

    /// Flat records of a table below a prefix, ascending, as they were.
    pub(crate) fn scan(
        &self,
        table: Table,
        prefix: &[u8],
    ) -> Result<impl Iterator<Item = FlatEntry> + '_, StateError> {
        let undone = self.undone()?;
        let mut head = self.head.view().scan(table, prefix, prefix)?.peekable();
        let start = (table, Box::from(prefix));
        let prefix: Box<[u8]> = prefix.into();
        let mut undone = undone
            .flat
            .range(start..)
            .take_while(move |((t, key), _)| *t == table && key.starts_with(&prefix))
            .map(|((_, key), value)| (key.clone(), value.clone()))
            .peekable();
        Ok(std::iter::from_fn(move || {
            loop {
                let take_undone = match (head.peek(), undone.peek()) {
                    (None, None) => return None,
                    (Some(Err(_)), _) | (Some(_), None) => false,
                    (None, Some(_)) => true,
                    (Some(Ok((key, _))), Some((undone_key, _))) => {
                        if key == undone_key {
                            head.next();
                            continue;
                        }
                        undone_key < key
                    }
                };
                if !take_undone {
                    return head.next().map(|entry| entry.map_err(StateError::from));
                }
                if let Some((key, Some(value))) = undone.next() {
                    return Some(Ok((key, value)));
                }
            }
        }))
    }

    /// The writes that make this version the head again.
    pub(crate) fn into_writes(self) -> Result<(Vec<Write>, Vec<Write>), StateError> {
        let undone = match self.undone.into_inner() {
            Some(undone) => undone,
            None => Undone::new(self.head, &self.meta)?,
        };
        let cleared = undone.cleared.iter().map(|owner| &owner[..]);
        let nodes = node_writes(self.head.view(), cleared, undone.update)?;
        let flat = undone
            .flat
            .into_iter()
            .map(|((table, key), value)| Write { table, key, value })
            .collect();
        Ok((flat, nodes))
    }
}

/// Tree updates that lead from a later state, whose values `now` gives, back to the one whose values `undo`
/// has, and the accounts whose storage trie does not exist there.
pub(crate) fn updates_back(
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
pub(crate) fn check_rebuilt(
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

pub(crate) fn corrupt(table: &'static str, key: &[u8], why: &'static str) -> StateError {
    let key = key.to_vec();
    StateError::Corrupt { table, key, why }
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

pub(crate) fn split_slot_key(key: &[u8]) -> Result<(Hash, Hash), StateError> {
    let (owner, slot) = key
        .split_first_chunk::<32>()
        .ok_or_else(|| wrong_length("slots", key))?;
    Ok((
        *owner,
        slot.try_into().map_err(|_| wrong_length("slots", key))?,
    ))
}

impl StateView for Historical<'_> {
    fn account(&self, address: Address) -> Result<Option<Account>, StateError> {
        Ok(self
            .record(&account_key(address))?
            .map(|record| record.account))
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, StateError> {
        self.slot_value(&account_key(address), slot)
    }

    fn has_storage(&self, address: Address) -> Result<bool, StateError> {
        let record = self.record(&account_key(address))?;
        Ok(record.is_some_and(|record| record.has_storage()))
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, StateError> {
        self.head.code(code_hash)
    }
}

impl NodeReader for Historical<'_> {
    fn nodes(&self, requests: &[NodeRequest]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        self.undone()?.overlay.nodes(requests)
    }

    fn leaf(&self, request: &NodeRequest) -> Result<Option<Leaf>, ReadError> {
        self.undone()?.overlay.leaf(request)
    }
}

impl Base for Historical<'_> {
    fn root(&self) -> Hash {
        self.meta.root
    }

    fn account_record(&self, _: Address, key: &Hash) -> Result<Option<AccountRecord>, StateError> {
        self.record(key)
    }
}

impl Provable for Historical<'_> {
    fn slot_value(&self, account: &Hash, slot: U256) -> Result<U256, StateError> {
        let key = flat_slot_key(account, &slot_key(slot));
        let value = self.value(SLOTS, &key)?;
        Ok(value
            .map(|bytes| SlotRecord::decode(&key, &bytes))
            .transpose()?
            .map_or(U256::ZERO, |slot| slot.value))
    }
}

impl NodeReader for MptState {
    fn nodes(&self, requests: &[NodeRequest]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        self.reader().nodes(requests)
    }

    fn leaf(&self, request: &NodeRequest) -> Result<Option<Leaf>, ReadError> {
        self.reader().leaf(request)
    }
}

impl Base for Head<'_> {
    fn root(&self) -> Hash {
        Head::root(*self).0
    }

    fn account_record(&self, _: Address, key: &Hash) -> Result<Option<AccountRecord>, StateError> {
        Head::account_record(self, key)
    }
}

impl Provable for Head<'_> {
    fn slot_value(&self, account: &Hash, slot: U256) -> Result<U256, StateError> {
        Head::slot_value(self, account, slot)
    }
}

impl Base for MptState {
    fn root(&self) -> Hash {
        MptState::root(self).0
    }

    fn account_record(&self, _: Address, key: &Hash) -> Result<Option<AccountRecord>, StateError> {
        self.reader().account_record(key)
    }
}

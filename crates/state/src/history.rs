//! The state at an older version: flat values from the undo records, nodes rebuilt from them.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_store::{Table, Value, Write};
use arbor_tree::{Hash, Leaf, NodeReader, NodeRequest, ReadError};
use arbor_tree_mpt::{EMPTY_ROOT, InnerUpdate, OuterUpdate, Overlay, TreeUpdate, apply};
use arbor_versions::{Meta, Version};

use crate::keys::{ACCOUNTS, SLOTS, account_key, flat_slot_key, slot_key};
use crate::mpt::MptState;
use crate::pending::{Base, PendingRoots};
use crate::proof::Provable;
use crate::records::{AccountRecord, SlotRecord};
use crate::{Account, StateError, StateView};

/// A flat record with its key.
pub(crate) type FlatEntry = Result<(Box<[u8]>, Value), StateError>;

/// The state of a retained version, readable and provable.
///
/// Its nodes are not stored: the undo records since are applied to the head's tree in memory, so
/// opening costs what changed since, and reading then costs what reading the head costs.
pub struct Historical<'a> {
    state: &'a MptState,
    meta: Meta,
    flat: BTreeMap<(Table, Box<[u8]>), Option<Value>>,
    update: TreeUpdate,
    cleared: Vec<Hash>,
    overlay: Overlay<&'a dyn NodeReader>,
}

impl<'a> Historical<'a> {
    pub(crate) fn new(state: &'a MptState, version: Version) -> Result<Self, StateError> {
        let undo = state.versions.view().undo_since(version)?;
        let meta = state
            .versions
            .view()
            .meta(version)?
            .ok_or(StateError::Read(format!(
                "no record of retained version {}",
                version.0
            )))?;
        let (updates, cleared) = updates_back(state, &undo)?;
        let update = apply(state, state.root().0, &updates)?;
        let expected = B256::from(meta.root);
        if update.root != meta.root {
            return Err(StateError::RebuiltRoot {
                version: version.0,
                expected,
                actual: update.root.into(),
            });
        }
        let mut overlay = Overlay::new(state as &dyn NodeReader);
        overlay.push(&update);
        let flat = undo
            .into_iter()
            .map(|write| ((write.table, write.key), write.value))
            .collect();
        Ok(Self {
            state,
            meta,
            flat,
            update,
            cleared,
            overlay,
        })
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
        match self.flat.get(&(table, Box::from(key))) {
            Some(value) => Ok(value.clone()),
            None => Ok(self.state.versions.view().get(table, key)?),
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
        let mut head = self
            .state
            .versions
            .view()
            .scan(table, prefix, prefix)?
            .peekable();
        let start = (table, Box::from(prefix));
        let prefix: Box<[u8]> = prefix.into();
        let mut undone = self
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
        let nodes = self
            .state
            .node_writes(self.cleared.iter().map(|owner| &owner[..]), self.update)?;
        let flat = self
            .flat
            .into_iter()
            .map(|((table, key), value)| Write { table, key, value })
            .collect();
        Ok((flat, nodes))
    }
}

/// Tree updates that lead from the head back to the version whose values `undo` has, and the
/// accounts whose storage trie does not exist there.
fn updates_back(
    state: &MptState,
    undo: &[Write],
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
        slots.entry(owner).or_default().push(InnerUpdate {
            key: slot,
            existed: state.versions.view().get(SLOTS, key)?.is_some(),
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
        let now = state.reader().account_record(&owner)?;
        let then = old
            .as_ref()
            .map(|bytes| AccountRecord::decode(key, bytes))
            .transpose()?;
        let mut inner = slots.remove(&owner).unwrap_or_default();
        if then.is_none() {
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
        Some(owner) => Err(StateError::Corrupt {
            table: "accounts",
            key: owner.to_vec(),
            why: "slots undone without account",
        }),
        None => Ok((updates, cleared)),
    }
}

fn wrong_length(table: &'static str, key: &[u8]) -> StateError {
    StateError::Corrupt {
        table,
        key: key.to_vec(),
        why: "key of the wrong length",
    }
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

    fn code(&self, code_hash: B256) -> Result<Bytes, StateError> {
        self.state.code(code_hash)
    }
}

impl NodeReader for Historical<'_> {
    fn nodes(&self, requests: &[NodeRequest]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        self.overlay.nodes(requests)
    }

    fn leaf(&self, request: &NodeRequest) -> Result<Option<Leaf>, ReadError> {
        self.overlay.leaf(request)
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

impl Base for MptState {
    fn root(&self) -> Hash {
        MptState::root(self).0
    }

    fn account_record(&self, _: Address, key: &Hash) -> Result<Option<AccountRecord>, StateError> {
        self.reader().account_record(key)
    }
}

impl Provable for MptState {
    fn slot_value(&self, account: &Hash, slot: U256) -> Result<U256, StateError> {
        self.reader().slot_value(account, slot)
    }
}

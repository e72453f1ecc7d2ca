//! The updates of leaves that flat changes come to, forwards and backwards in history.

use std::collections::HashMap;

use crate::named_records::{account_key, slot_name};
use alloy_primitives::{Address, U256};
use arbor_state_tree::{ACCOUNTS, SLOTS, StateError};
use arbor_tree::Hash;
use arbor_tree_eip8297::{Hasher, LeafUpdate, Packing};
use arbor_verify::eip8297::{Embedding, code_leaves, field_updates};
use arbor_versions::{Change, View};
use foldhash::fast::RandomState;

use super::changes::CodeOf;
use super::entries::{ENTRIES, entry_update};
use super::records::{AccountRecord, code_key, decode_slot, decode_users};
use super::{CODE_USERS, Eip8297};
use crate::binary::{FlatChanges, Undo};
use crate::stems::stored_code;

/// Returns the updates of leaves, ascending by key, that flat changes in any order come to.
pub(super) fn leaf_updates<'a>(
    flat: impl Iterator<Item = Change<'a>>,
    embedding: Embedding,
    code: CodeOf<'_>,
) -> Result<Vec<LeafUpdate>, StateError> {
    let mut changed = Changed::default();
    let mut updates = Vec::new();
    for change in flat {
        match change.table {
            ACCOUNTS => changed.account(&change)?,
            SLOTS => changed.slot(&change)?,
            ENTRIES => updates.push(entry_update(&change)?),
            CODE_USERS => updates.extend(code_updates(&change, embedding, code)?),
            _ => {}
        }
    }
    changed.updates(embedding, &mut updates);
    updates.sort_unstable_by_key(|update| update.key);
    Ok(updates)
}

impl Undo for Eip8297 {
    type Hash = Hasher;

    fn name(&self) -> &'static str {
        super::settings::NAME
    }

    fn nodes(&self) -> (Hasher, Packing) {
        (self.hasher, self.packing)
    }

    fn updates(
        &self,
        view: View<'_>,
        flat: FlatChanges<'_, '_>,
    ) -> Result<Vec<LeafUpdate>, StateError> {
        leaf_updates(flat, self.embedding(), &|hash| stored_code(view, hash))
    }
}

/// What changes of accounts and slots, by plain name.
#[derive(Default)]
struct Changed {
    addresses: Vec<Address>,
    places: HashMap<Address, usize, RandomState>,
    /// Places among the addresses, with the fields before and after.
    accounts: Vec<(usize, [[Hash; 3]; 2])>,
    slots: Vec<(usize, U256, Hash)>,
}

impl Changed {
    fn place(&mut self, address: Address) -> usize {
        // Slots of one account follow each other.
        if self.addresses.last() == Some(&address) {
            return self.addresses.len() - 1;
        }
        *self.places.entry(address).or_insert_with(|| {
            self.addresses.push(address);
            self.addresses.len() - 1
        })
    }

    fn account(&mut self, change: &Change<'_>) -> Result<(), StateError> {
        let address = account_key(change.key)?;
        let fields = |bytes: Option<&[u8]>| match bytes {
            Some(bytes) => AccountRecord::decode(change.key, bytes)?.fields(address),
            None => Ok([[0; 32]; 3]),
        };
        let fields = [fields(change.old)?, fields(change.new)?];
        let place = self.place(address);
        self.accounts.push((place, fields));
        Ok(())
    }

    fn slot(&mut self, change: &Change<'_>) -> Result<(), StateError> {
        let (address, slot) = slot_name(change.key)?;
        let value = change.new.map(|bytes| decode_slot(change.key, bytes));
        let value = value.transpose()?.unwrap_or_default();
        let place = self.place(address);
        self.slots.push((place, slot, value.to_be_bytes()));
        Ok(())
    }

    fn updates(self, embedding: Embedding, updates: &mut Vec<LeafUpdate>) {
        let hashes = embedding.accounts(&self.addresses);
        for (place, [before, after]) in &self.accounts {
            updates.extend(field_updates(&hashes[*place], *before, *after));
        }
        let slots = self.slots.iter();
        let names = slots.map(|(place, slot, _)| (hashes[*place], self.addresses[*place], *slot));
        let keys = embedding.slots(&names.collect::<Vec<_>>());
        let slots = keys.into_iter().zip(&self.slots);
        updates.extend(slots.map(|(key, (_, _, value))| LeafUpdate { key, value: *value }));
    }
}

/// The leaves of a code that its first account brings, or its last one takes away.
fn code_updates(
    change: &Change<'_>,
    embedding: Embedding,
    code: CodeOf<'_>,
) -> Result<Vec<LeafUpdate>, StateError> {
    let hash = code_key(change.key)?;
    for bytes in [change.old, change.new].into_iter().flatten() {
        decode_users(change.key, bytes)?;
    }
    let is_there = change.new.is_some();
    if change.old.is_some() == is_there {
        return Ok(Vec::new());
    }
    let mut leaves = code_leaves(embedding, hash, &code(hash)?);
    if !is_there {
        leaves.iter_mut().for_each(|leaf| leaf.value = [0; 32]);
    }
    Ok(leaves)
}

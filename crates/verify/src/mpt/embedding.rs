//! From plain names to tree updates: how accounts and slots sit in the Merkle-Patricia trie.

use alloy_primitives::{Address, B256, U256};
use arbor_accounts::{AccountChange, SlotChange, StateChanges};
use arbor_hashing::keccak256_fixed;
use arbor_tree::Hash;
use arbor_tree_mpt::{EMPTY_ROOT, InnerUpdate, OuterUpdate};

use super::leaf::{AccountRecord, SlotRecord};

/// One account's change under its tree key.
pub struct KeyedChange<'a> {
    /// Whose it is.
    pub address: Address,
    /// Which of the block's accounts it is, ascending by address.
    pub place: usize,
    /// Its key in the account trie.
    pub key: Hash,
    /// What changes.
    pub change: &'a AccountChange,
    /// The account before.
    pub old: Option<AccountRecord>,
    /// Slots, ascending by tree key.
    pub slots: Vec<KeyedSlot>,
}

/// One slot's change under its tree key.
pub struct KeyedSlot {
    /// Its key in the storage trie.
    pub key: Hash,
    /// Its number.
    pub slot: U256,
    /// What changes.
    pub change: SlotChange,
}

/// Hashes all names of a block in one batch and sorts by tree key. `old_records` reads the records of accounts, given their keys in the order of their addresses.
///
/// # Errors
/// The error of `old_records`.
pub fn keyed<'a, E>(
    changes: &'a StateChanges,
    old_records: impl FnOnce(&[Hash]) -> Result<Vec<Option<AccountRecord>>, E>,
) -> Result<Vec<KeyedChange<'a>>, E> {
    let addresses: Vec<[u8; 20]> = changes.accounts.keys().map(|address| address.0.0).collect();
    let mut account_keys = vec![Hash::default(); addresses.len()];
    keccak256_fixed(&addresses, &mut account_keys);

    let slots = changes.accounts.values().map(|change| change.slots.len());
    let mut names: Vec<[u8; 32]> = Vec::with_capacity(slots.sum());
    for change in changes.accounts.values() {
        names.extend(change.slots.keys().map(U256::to_be_bytes::<32>));
    }
    let mut slot_keys = vec![Hash::default(); names.len()];
    keccak256_fixed(&names, &mut slot_keys);

    let old = old_records(&account_keys)?;
    let mut slot_keys = slot_keys.into_iter();
    let mut keyed = Vec::with_capacity(account_keys.len());
    let accounts = changes.accounts.iter().zip(account_keys).zip(old);
    for (place, (((&address, change), key), old)) in accounts.enumerate() {
        let mut slots: Vec<KeyedSlot> = change
            .slots
            .iter()
            .zip(slot_keys.by_ref())
            .map(|((&slot, &change), key)| KeyedSlot { key, slot, change })
            .collect();
        slots.sort_unstable_by_key(|slot| slot.key);
        keyed.push(KeyedChange {
            address,
            place,
            key,
            change,
            old,
            slots,
        });
    }
    keyed.sort_unstable_by_key(|account| account.key);
    Ok(keyed)
}

/// The tree updates of a block's changes, in their order.
pub fn tree_updates(changes: &[KeyedChange<'_>]) -> Vec<OuterUpdate> {
    changes.iter().map(KeyedChange::tree_update).collect()
}

impl KeyedChange<'_> {
    /// Whether no slot is there before those that the changes set.
    pub fn starts_empty(&self) -> bool {
        self.change.storage_cleared || self.old.is_none()
    }

    /// Whether the storage that stood before is gone.
    pub fn clears_storage(&self) -> bool {
        (self.change.storage_cleared || self.change.new.is_none())
            && self.old.is_some_and(|old| old.storage_root != EMPTY_ROOT)
    }

    fn tree_update(&self) -> OuterUpdate {
        let cleared = self.starts_empty();
        let inner = match self.change.new {
            None => Vec::new(),
            Some(_) => self
                .slots
                .iter()
                .map(|slot| slot.tree_update(cleared))
                .collect(),
        };
        OuterUpdate {
            key: self.key,
            existed: self.old.is_some(),
            inner_root: self
                .old
                .filter(|_| !cleared)
                .map_or(EMPTY_ROOT, |old| old.storage_root.0),
            leaf: self.change.new.as_ref().map(AccountRecord::leaf),
            inner,
        }
    }

    /// The account's flat record after the change.
    pub fn new_record(&self, storage_root: Hash) -> Option<AccountRecord> {
        self.change.new.map(|account| AccountRecord {
            address: self.address,
            account,
            storage_root: B256::from(storage_root),
        })
    }
}

impl KeyedSlot {
    fn tree_update(&self, cleared: bool) -> InnerUpdate {
        InnerUpdate {
            key: self.key,
            existed: !cleared && !self.change.old.is_zero(),
            value: (!self.change.new.is_zero()).then(|| SlotRecord::leaf(self.change.new)),
        }
    }

    /// The slot's flat record after the change.
    pub fn new_record(&self) -> Option<SlotRecord> {
        let (slot, value) = (self.slot, self.change.new);
        (!value.is_zero()).then_some(SlotRecord { slot, value })
    }
}

//! What execution sees ahead of the database, beside plain maps; and changes of blocks added up.

#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::{BTreeMap, VecDeque};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use arbor_state::{
    Account, AccountChange, ReadError, RecentState, SlotChange, StateChanges, StateView,
};
use proptest::prelude::*;

const ACCOUNTS: u8 = 6;
const SLOTS: u8 = 6;

/// Accounts, slots and code in plain maps.
#[derive(Clone, Default, PartialEq, Debug)]
struct Model {
    accounts: BTreeMap<Address, (Account, BTreeMap<U256, U256>)>,
    codes: BTreeMap<B256, Bytes>,
}

impl StateView for Model {
    fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
        Ok(self.accounts.get(&address).map(|(account, _)| *account))
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError> {
        let value = self
            .accounts
            .get(&address)
            .and_then(|(_, slots)| slots.get(&slot));
        Ok(value.copied().unwrap_or_default())
    }

    fn has_storage(&self, address: Address) -> Result<bool, ReadError> {
        Ok(self
            .accounts
            .get(&address)
            .is_some_and(|(_, slots)| !slots.is_empty()))
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        self.codes
            .get(&code_hash)
            .cloned()
            .ok_or(ReadError::MissingCode(code_hash))
    }
}

impl Model {
    /// Moves on by changes whose every word about the state before must be true.
    fn apply(&mut self, changes: &StateChanges) {
        for (address, change) in &changes.accounts {
            let before = self.accounts.remove(address);
            assert_eq!(before.as_ref().map(|(account, _)| *account), change.old);
            let mut slots = before.map(|(_, slots)| slots).unwrap_or_default();
            if change.storage_cleared {
                slots.clear();
            }
            let Some(new) = change.new else {
                assert!(change.slots.is_empty());
                continue;
            };
            for (slot, change) in &change.slots {
                assert_ne!(change.old, change.new);
                let old = match change.new.is_zero() {
                    true => slots.remove(slot),
                    false => slots.insert(*slot, change.new),
                };
                assert_eq!(old.unwrap_or_default(), change.old);
            }
            self.accounts.insert(*address, (new, slots));
        }
        self.codes.extend(changes.codes.clone());
    }
}

/// What a block does to an account.
#[derive(Clone, Debug)]
enum Edit {
    Set(u8, Vec<(u8, u8)>),
    /// Its storage goes first.
    Clear(u8, Vec<(u8, u8)>),
    Remove,
}

fn edits() -> impl Strategy<Value = BTreeMap<u8, Edit>> {
    let slots = || prop::collection::vec((0..SLOTS, 0u8..3), 0..5);
    let edit = prop_oneof![
        4 => (0u8..4, slots()).prop_map(|(nonce, slots)| Edit::Set(nonce, slots)),
        1 => (0u8..4, slots()).prop_map(|(nonce, slots)| Edit::Clear(nonce, slots)),
        2 => Just(Edit::Remove),
    ];
    prop::collection::btree_map(0..ACCOUNTS, edit, 0..5)
}

fn address(number: u8) -> Address {
    Address::repeat_byte(number)
}

/// The changes that edits make of a state, with a code of their own for every account set.
fn changes(before: &Model, edits: &BTreeMap<u8, Edit>) -> StateChanges {
    let mut changes = StateChanges::default();
    for (number, edit) in edits {
        let address = address(*number);
        let existing = before.accounts.get(&address);
        let old = existing.map(|(account, _)| *account);
        let (nonce, slots, clear) = match edit {
            Edit::Remove => {
                let storage_cleared = old.is_some();
                let change = AccountChange {
                    old,
                    storage_cleared,
                    ..Default::default()
                };
                if old.is_some() {
                    changes.accounts.insert(address, change);
                }
                continue;
            }
            Edit::Set(nonce, slots) => (*nonce, slots, false),
            Edit::Clear(nonce, slots) => (*nonce, slots, old.is_some()),
        };
        let code = Bytes::from(vec![nonce]);
        let code_hash = keccak256(&code);
        changes.codes.insert(code_hash, code);
        let mut change = AccountChange {
            old,
            new: Some(Account {
                nonce: nonce.into(),
                balance: U256::ZERO,
                code_hash,
            }),
            storage_cleared: clear,
            ..Default::default()
        };
        for (slot, value) in slots {
            let (slot, new) = (U256::from(*slot), U256::from(*value));
            let stood = existing
                .filter(|_| !clear)
                .and_then(|(_, slots)| slots.get(&slot));
            let old = stood.copied().unwrap_or_default();
            change.slots.insert(slot, SlotChange { old, new });
        }
        change.slots.retain(|_, slot| slot.old != slot.new);
        changes.accounts.insert(address, change);
    }
    changes
}

/// Compares accounts and slots from `from` on, so that not everything is read, and thereby kept, every time.
fn compare(seen: &impl StateView, wanted: &Model, from: u8) {
    for number in from..ACCOUNTS {
        let address = address(number);
        assert_eq!(
            seen.account(address).unwrap(),
            wanted.account(address).unwrap()
        );
        // Slots set to zero may be taken for set, where there is code.
        assert!(seen.has_storage(address).unwrap() || !wanted.has_storage(address).unwrap());
        for slot in (from..SLOTS).map(U256::from) {
            let value = seen.storage(address, slot).unwrap();
            assert_eq!(
                value,
                wanted.storage(address, slot).unwrap(),
                "{address} slot {slot}"
            );
        }
    }
    for (hash, code) in &wanted.codes {
        assert_eq!(&seen.code(*hash).unwrap(), code);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Blocks reach the database late, and it may be ahead of what has been told; memory for few names.
    #[test]
    fn recent_state_is_that_after_the_latest_block(
        blocks in prop::collection::vec((edits(), 0u8..ACCOUNTS, 0usize..4, 0usize..2), 1..40),
        bytes in 0usize..8000,
    ) {
        let (mut latest, mut database) = (Model::default(), Model::default());
        let mut recent = RecentState::new(bytes);
        let (mut executed, mut stored) = (VecDeque::new(), VecDeque::new());
        for (number, (edits, from, to_store, to_tell)) in (1..).zip(&blocks) {
            compare(&recent.over(&database), &latest, *from);
            let changes = changes(&latest, edits);
            latest.apply(&changes);
            recent.apply(number, &changes);
            executed.push_back((number, changes));
            for _ in 0..*to_store {
                if let Some((number, changes)) = executed.pop_front() {
                    database.apply(&changes);
                    stored.push_back(number);
                }
            }
            for _ in 0..*to_tell {
                if let Some(number) = stored.pop_front() {
                    recent.settle(number);
                }
            }
        }
        compare(&recent.over(&database), &latest, 0);
    }

    /// Added up, changes lead to the same state, tell the truth about the state before, and hold nothing that does not change.
    #[test]
    fn changes_add_up(
        before in prop::collection::vec(edits(), 0..4),
        blocks in prop::collection::vec(edits(), 1..12),
    ) {
        let mut first = Model::default();
        for edits in &before {
            first.apply(&changes(&first, edits));
        }
        let (mut last, mut sum) = (first.clone(), StateChanges::default());
        for edits in &blocks {
            let changes = changes(&last, edits);
            last.apply(&changes);
            sum.extend(&changes);
        }
        let mut at_once = first;
        at_once.apply(&sum);
        prop_assert_eq!(at_once, last);
        for change in sum.accounts.values() {
            prop_assert!(change.old != change.new || change.storage_cleared || !change.slots.is_empty());
        }
    }
}

//! The state beside a naive model: plain maps for contents, a naive trie for roots.

#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256, keccak256};
use arbor_state::{
    Account, AccountChange, BlockRef, Network, SlotChange, State, StateChanges, StateView, Tree,
};
use arbor_store::{MemoryStore, Store};
use arbor_tree::naive;
use arbor_versions::{Options, Retain, Version};
use proptest::prelude::*;

type Slots = BTreeMap<U256, U256>;
type Contents = BTreeMap<Address, (Account, Slots)>;

/// A step of a random history over few accounts and slots, so that they meet often.
#[derive(Clone, Debug)]
enum Step {
    Block(Vec<Edit>),
    Flush,
    Reopen,
    Rollback(u64),
    Prune(u64),
}

#[derive(Clone, Debug)]
enum Edit {
    Set {
        account: u8,
        balance: u8,
        slots: Vec<(u8, u8)>,
    },
    Clear {
        account: u8,
        slots: Vec<(u8, u8)>,
    },
    Remove {
        account: u8,
    },
}

fn edit() -> impl Strategy<Value = Edit> {
    let slots = || prop::collection::vec((0u8..12, 0u8..4), 0..6);
    prop_oneof![
        6 => (0u8..10, 0u8..4, slots()).prop_map(|(account, balance, slots)| Edit::Set { account, balance, slots }),
        1 => (0u8..10, slots()).prop_map(|(account, slots)| Edit::Clear { account, slots }),
        1 => (0u8..10).prop_map(|account| Edit::Remove { account }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop::collection::vec(edit(), 0..6).prop_map(Step::Block),
        1 => Just(Step::Flush),
        1 => Just(Step::Reopen),
        1 => (0u64..8).prop_map(Step::Rollback),
        1 => (1u64..8).prop_map(Step::Prune),
    ]
}

fn address(number: u8) -> Address {
    Address::with_last_byte(number)
}

/// Applies an edit to the model and records the change.
fn edit_model(contents: &mut Contents, changes: &mut StateChanges, before: &Contents, edit: &Edit) {
    let (Edit::Set { account, .. } | Edit::Clear { account, .. } | Edit::Remove { account }) = edit;
    let address = address(*account);
    let entry = changes
        .accounts
        .entry(address)
        .or_insert_with(|| AccountChange {
            old: before.get(&address).map(|(account, _)| *account),
            new: before.get(&address).map(|(account, _)| *account),
            ..Default::default()
        });
    let (clear, balance, slots): (bool, u8, &[(u8, u8)]) = match edit {
        Edit::Set { balance, slots, .. } => (false, *balance, slots),
        Edit::Clear { slots, .. } => (true, 1, slots),
        Edit::Remove { .. } => {
            contents.remove(&address);
            *entry = AccountChange {
                old: entry.old,
                storage_cleared: true,
                ..Default::default()
            };
            return;
        }
    };
    let new = Account {
        nonce: 1,
        balance: U256::from(balance),
        code_hash: KECCAK256_EMPTY,
    };
    entry.new = Some(new);
    let (model, model_slots) = contents
        .entry(address)
        .or_insert_with(|| (new, Slots::new()));
    *model = new;
    if clear {
        entry.storage_cleared = true;
        entry.slots.clear();
        model_slots.clear();
    }
    for (slot, value) in slots {
        let (slot, value) = (U256::from(*slot), U256::from(*value));
        let old = match entry.storage_cleared {
            true => U256::ZERO,
            false => before
                .get(&address)
                .and_then(|(_, slots)| slots.get(&slot))
                .copied()
                .unwrap_or_default(),
        };
        entry.slots.insert(slot, SlotChange { old, new: value });
        match value.is_zero() {
            true => model_slots.remove(&slot),
            false => model_slots.insert(slot, value),
        };
    }
}

/// The state root from the contents alone.
fn model_root(contents: &Contents) -> B256 {
    let mut leaves = BTreeMap::new();
    for (address, (account, slots)) in contents {
        let slots: BTreeMap<Vec<u8>, Vec<u8>> = slots
            .iter()
            .map(|(slot, value)| {
                (
                    keccak256(B256::from(*slot)).to_vec(),
                    alloy_rlp::encode(value),
                )
            })
            .collect();
        let storage_root = naive::root(&slots);
        let mut leaf = Vec::new();
        let fields: [&dyn alloy_rlp::Encodable; 4] = [
            &account.nonce,
            &account.balance,
            &B256::from(storage_root),
            &account.code_hash,
        ];
        alloy_rlp::encode_list::<_, dyn alloy_rlp::Encodable>(&fields, &mut leaf);
        leaves.insert(keccak256(address).to_vec(), leaf);
    }
    naive::root(&leaves).into()
}

fn open(store: &Arc<MemoryStore>) -> State {
    let network = Network {
        chain_id: 1,
        genesis_hash: B256::ZERO,
    };
    let options = Options {
        dirty_bytes: 4096,
        cache_bytes: 1 << 16,
        retain: Retain::Last(6),
        ..Default::default()
    };
    State::open(
        Arc::clone(store) as Arc<dyn Store>,
        None,
        Tree::MerklePatricia,
        network,
        options,
    )
    .unwrap()
}

/// Everything readable at a version equals the model's contents, and is proven under its root.
fn check(state: &State, version: u64, contents: &Contents) {
    let root = model_root(contents);
    let then = state.at(Version(version)).unwrap();
    assert_eq!(
        B256::from(then.meta().root),
        root,
        "root of version {version}"
    );
    for number in 0..10 {
        let address = address(number);
        let expected = contents.get(&address);
        assert_eq!(
            then.account(address).unwrap(),
            expected.map(|(account, _)| *account)
        );
        let names: Vec<U256> = (0..12).map(U256::from).collect();
        let proof = then.prove(address, &names).unwrap();
        assert_eq!(proof.verify(root).unwrap(), Ok(()));
        for slot in names {
            let value = expected
                .and_then(|(_, slots)| slots.get(&slot))
                .copied()
                .unwrap_or_default();
            assert_eq!(then.storage(address, slot).unwrap(), value);
            assert!(
                proof
                    .storage_proof
                    .iter()
                    .any(|proof| proof.key == slot && proof.value == value)
            );
        }
    }
    let mut dumped = Vec::new();
    then.dump::<arbor_state::StateError>(|account| {
        dumped.push((account.address, account.storage.len()));
        Ok(())
    })
    .unwrap();
    dumped.sort_unstable();
    let expected: Vec<_> = contents
        .iter()
        .map(|(address, (_, slots))| (*address, slots.len()))
        .collect();
    assert_eq!(dumped, expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_random_history_agrees_with_the_model(steps in prop::collection::vec(step(), 1..40)) {
        let store = Arc::new(MemoryStore::default());
        let mut state = open(&store);
        // The contents of each version, the oldest retained one known to the database.
        let mut history: Vec<Contents> = Vec::new();
        for step in steps {
            match step {
                Step::Block(edits) => {
                    let before = history.last().cloned().unwrap_or_default();
                    let (mut contents, mut changes) = (before.clone(), StateChanges::default());
                    edits.iter().for_each(|edit| edit_model(&mut contents, &mut changes, &before, edit));
                    let computed = state.compute(&changes).unwrap();
                    prop_assert_eq!(computed.root(), model_root(&contents));
                    let number = history.len() as u64;
                    state.commit(&BlockRef { number, hash: B256::from(U256::from(number)), header: vec![] }, computed).unwrap();
                    history.push(contents);
                }
                Step::Flush => state.flush().unwrap(),
                Step::Reopen => {
                    state.flush().unwrap();
                    drop(state);
                    state = open(&store);
                }
                Step::Rollback(back) => {
                    let target = (history.len() as u64).saturating_sub(1 + back);
                    if !history.is_empty() && state.rollback(Version(target)).is_ok() {
                        history.truncate(target as usize + 1);
                    }
                }
                Step::Prune(keep) => {
                    state.prune(Retain::Last(keep)).unwrap();
                }
            }
            if let Some(contents) = history.last() {
                let head = history.len() as u64 - 1;
                check(&state, head, contents);
                let oldest = head.saturating_sub(6);
                for version in oldest..head {
                    if state.at(Version(version)).is_ok() {
                        check(&state, version, &history[version as usize]);
                    }
                }
                let report = state.verify().unwrap();
                prop_assert!(report.is_ok(), "{:?}", report.faults);
            }
        }
    }
}

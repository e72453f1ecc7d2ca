//! What is said to be asked for soon is read at once: accounts are then known, and questions for slots find them in the database's cache.

#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::sync::Arc;

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use arbor_state::{
    Account, AccountChange, BlockRef, Network, RecentState, SlotChange, State, StateChanges,
    StateView, Tree,
};
use arbor_store::{MemoryStore, Store};
use arbor_trees::MPT;
use arbor_trees::ar16mt::AR16MT;
use arbor_trees::verkle::{Committer, Verkle, VerkleSettings};

fn open(store: &Arc<dyn Store>, tree: &Tree) -> State {
    let network = Network {
        chain_id: 1,
        genesis_hash: B256::ZERO,
    };
    State::open(
        Arc::clone(store),
        None,
        tree.clone(),
        network,
        Default::default(),
    )
    .unwrap()
}

fn account(number: u8) -> Account {
    Account {
        nonce: u64::from(number) + 1,
        balance: U256::from(number) + U256::ONE,
        code_hash: KECCAK256_EMPTY,
    }
}

/// Twenty accounts with a slot each, flushed.
fn stored(tree: &Tree) -> Arc<dyn Store> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let mut state = open(&store, tree);
    let mut changes = StateChanges::default();
    for number in 0..20 {
        let (old, new) = (U256::ZERO, U256::from(number + 1));
        let change = AccountChange {
            new: Some(account(number)),
            slots: [(U256::from(5), SlotChange { old, new })]
                .into_iter()
                .collect(),
            ..Default::default()
        };
        changes
            .accounts
            .insert(Address::with_last_byte(number), change);
    }
    let block = BlockRef {
        number: 0,
        hash: B256::ZERO,
        record: Vec::new(),
    };
    let computed = state.compute(&changes).unwrap();
    state.commit(&block, computed).unwrap();
    state.flush().unwrap();
    store
}

#[test]
fn expected_names_are_read_together() {
    let verkle = Verkle::with(
        Arc::new(Committer::within(6_000_000)),
        VerkleSettings::default(),
    );
    for tree in [MPT.tree(), Arc::new(verkle) as Tree, AR16MT.tree()] {
        let store = stored(&tree);
        let state = open(&store, &tree);
        let missed = || state.versions().stats().cache_misses;
        let recent = RecentState::new(1 << 20);
        let view = recent.over(&state);
        let accounts: Vec<_> = (0..20).map(Address::with_last_byte).collect();
        let slots: Vec<_> = accounts
            .iter()
            .map(|&address| (address, U256::from(5)))
            .collect();
        view.expect(&accounts, &slots);
        let expected = missed();
        assert!(expected >= 40, "{tree:?}: {expected}");
        let hits = state.versions().stats().cache_hits;
        for (number, &address) in (0..).zip(&accounts) {
            assert_eq!(view.account(address).unwrap(), Some(account(number)));
        }
        // Accounts are not only near but known.
        assert_eq!(state.versions().stats().cache_hits, hits, "{tree:?}");
        for (number, &address) in (0..).zip(&accounts) {
            let value = view.storage(address, U256::from(5)).unwrap();
            assert_eq!(value, U256::from(number + 1));
        }
        assert_eq!(missed(), expected, "{tree:?}");
        // What is known is not read again.
        let hits = state.versions().stats().cache_hits;
        view.expect(&accounts, &slots);
        assert_eq!(state.versions().stats().cache_hits, hits, "{tree:?}");
    }
}

#[test]
fn accounts_together_are_those_one_by_one() {
    for tree in [MPT.tree(), AR16MT.tree()] {
        let state = open(&stored(&tree), &tree);
        let addresses: Vec<_> = (15..25).map(Address::with_last_byte).collect();
        let one_by_one = addresses.iter().map(|&address| state.account(address));
        let one_by_one: Vec<_> = one_by_one.map(Result::unwrap).collect();
        assert!(one_by_one[0].is_some() && one_by_one[9].is_none());
        assert_eq!(state.accounts(&addresses).unwrap(), one_by_one, "{tree:?}");
    }
}

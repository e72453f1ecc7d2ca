//! Every tree, for tests of what all of them must do, and a state to begin with.

#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

#[path = "../toy/mod.rs"]
mod toy;

use std::sync::Arc;

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use arbor_state::{
    Account, AccountChange, BlockRef, Network, Registry, Settings, SlotChange, State, Tree,
};
use arbor_store::{MemoryStore, Store};
use arbor_trees::standard;

pub(crate) const NETWORK: Network = Network {
    chain_id: 1,
    genesis_hash: B256::ZERO,
};

/// The trees of this project, and one that a newcomer adds.
pub(crate) fn registry() -> Registry {
    standard().with(&toy::TOY)
}

pub(crate) fn trees() -> Vec<Tree> {
    // Small tables are made quickly; what they compute does not depend on their sizes.
    let settings = Settings {
        memory: Some(18_000_000),
        ..Settings::default()
    };
    let rows = registry();
    let trees = rows.rows().map(|row| (row.make)(&settings).unwrap());
    trees.collect()
}

/// An empty state in memory.
pub(crate) fn empty(tree: &Tree) -> State {
    open(tree, &Arc::new(MemoryStore::default()))
}

pub(crate) fn open(tree: &Tree, store: &Arc<MemoryStore>) -> State {
    let store: Arc<dyn Store> = store.clone();
    State::open(store, None, tree.clone(), NETWORK, Default::default()).unwrap()
}

pub(crate) fn block(number: u64) -> BlockRef {
    BlockRef {
        number,
        hash: B256::from(U256::from(number)),
        record: Vec::new(),
    }
}

pub(crate) fn address(number: u8) -> Address {
    Address::repeat_byte(number)
}

/// An account without code.
pub(crate) fn plain(nonce: u64, balance: u64) -> Account {
    Account {
        nonce,
        balance: U256::from(balance),
        code_hash: KECCAK256_EMPTY,
    }
}

/// The change of an account, with its slots by number: old and new.
pub(crate) fn change(
    old: Option<Account>,
    new: Option<Account>,
    slots: &[(u64, u64, u64)],
) -> AccountChange {
    let slots = slots.iter().map(|&(slot, old, new)| {
        let (old, new) = (U256::from(old), U256::from(new));
        (U256::from(slot), SlotChange { old, new })
    });
    AccountChange {
        old,
        new,
        storage_cleared: false,
        slots: slots.collect(),
    }
}

//! Changes so large that the storage tries of a Merkle-Patricia state are spread over threads.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use arbor_state::{
    Account, AccountChange, BlockRef, Computed, Network, SlotChange, State, StateChanges,
};
use arbor_store::MemoryStore;
use arbor_trees::MPT;
use proptest::prelude::*;

/// What a block sets: balances and slots of accounts, a slot to zero to clear it.
type Block = BTreeMap<u8, (u8, BTreeMap<u16, u8>)>;

fn block() -> impl Strategy<Value = Block> {
    // Five large storages have more slots than any threshold; small ones lie between them.
    let slots = |many| prop::collection::btree_map(0u16..400, 0u8..4, many);
    let account = |many| (any::<u8>(), slots(many));
    let large = prop::collection::btree_map(0u8..40, account(90..150), 5..9);
    let small = prop::collection::btree_map(40u8..80, account(0..3), 0..12);
    (large, small).prop_map(|(large, small)| large.into_iter().chain(small).collect())
}

fn changes(
    block: &Block,
    stands: &mut BTreeMap<Address, (Account, BTreeMap<u16, u8>)>,
) -> StateChanges {
    let mut changes = StateChanges::default();
    for (name, (balance, slots)) in block {
        let address = Address::repeat_byte(*name);
        let new = Account {
            nonce: 1,
            balance: U256::from(*balance),
            code_hash: KECCAK256_EMPTY,
        };
        let before = stands.get(&address).map(|(account, _)| *account);
        let (account, stored) = stands.entry(address).or_insert((new, BTreeMap::new()));
        *account = new;
        let mut change = AccountChange {
            old: before,
            new: Some(new),
            ..AccountChange::default()
        };
        for (slot, value) in slots {
            let old = match value {
                0 => stored.remove(slot),
                value => stored.insert(*slot, *value),
            };
            let old = old.unwrap_or_default();
            if old != *value {
                let (old, new) = (U256::from(old), U256::from(*value));
                change
                    .slots
                    .insert(U256::from(*slot), SlotChange { old, new });
            }
        }
        changes.accounts.insert(address, change);
    }
    changes
}

/// The nodes that change, by their keys.
fn nodes(computed: &Computed) -> BTreeMap<&[u8], Option<&[u8]>> {
    let nodes: BTreeMap<_, _> = computed.nodes().collect();
    assert_eq!(nodes.len(), computed.nodes().len());
    nodes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn threads_make_the_nodes_that_one_makes(blocks in prop::collection::vec(block(), 1..4), threads in 2usize..6) {
        let network = Network { chain_id: 1, genesis_hash: B256::ZERO };
        let store = Arc::new(MemoryStore::default());
        let mut state =
            State::open(store, None, MPT.tree(), network, Default::default()).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut stands = BTreeMap::new();
        for (number, block) in (0..).zip(&blocks) {
            let changes = changes(block, &mut stands);
            let alone = state.compute(&changes).unwrap();
            let spread = pool.install(|| state.compute(&changes)).unwrap();
            prop_assert_eq!(spread.root(), alone.root());
            prop_assert_eq!(nodes(&spread), nodes(&alone));
            let block = BlockRef { number, hash: B256::ZERO, record: Vec::new() };
            state.commit(&block, spread).unwrap();
        }
    }
}

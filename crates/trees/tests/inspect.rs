//! What trees say of their stored records: every account and slot once, whatever the tree.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::trees::{self, address, block, open, trees};
use alloy_primitives::{Bytes, U256, keccak256};
use arbor_state::{
    Account, AccountChange, Inspection, SlotChange, StateChanges, StateSnapshot, Tree,
};
use arbor_store::MemoryStore;
use arbor_versions::OWN_TABLES;

/// Account `n` has `n` slots; the last two have code.
fn changes(accounts: u8) -> StateChanges {
    let code = |n: u8| Bytes::from(vec![n; 100 * usize::from(n)]);
    let mut changes = StateChanges::default();
    for n in 1..=accounts {
        let mut account = trees::plain(n.into(), 5);
        if n + 2 > accounts {
            let code = code(n);
            account = Account {
                code_hash: keccak256(&code),
                ..account
            };
            changes.codes.insert(account.code_hash, code);
        }
        let slot = |slot| {
            let (old, new) = (U256::ZERO, U256::from(n));
            (U256::from(slot), SlotChange { old, new })
        };
        let change = AccountChange {
            old: None,
            new: Some(account),
            storage_cleared: false,
            slots: (0..n).map(slot).collect(),
        };
        changes.accounts.insert(address(n), change);
    }
    changes
}

/// The snapshot of a flushed state with so many accounts, and one more version above it.
fn state(tree: &Tree, accounts: u8) -> StateSnapshot {
    let store = Arc::new(MemoryStore::default());
    let mut state = open(tree, &store);
    let computed = state.compute(&changes(accounts)).unwrap();
    state.commit(&block(0), computed).unwrap();
    state.flush().unwrap();
    state.snapshot().unwrap()
}

fn all(snapshot: &StateSnapshot) -> Inspection {
    let go_on = &mut |_| ControlFlow::Continue(());
    snapshot.inspect(3, go_on).unwrap()
}

#[test]
fn every_tree_tells_accounts_slots_and_codes() {
    for tree in trees() {
        let name = tree.kind().name;
        let found = all(&state(&tree, 9));
        assert!(found.complete, "{name}");
        assert_eq!(found.accounts, 9, "{name}");
        assert_eq!(found.storage.slots, 45, "{name}");
        assert_eq!(found.storage.accounts, 9, "{name}");
        let largest = found.storage.largest.iter();
        let largest: Vec<_> = largest.map(|of| (of.address.unwrap(), of.slots)).collect();
        let wanted: Vec<_> = [9, 8, 7].map(|n| (address(n), u64::from(n))).into();
        assert_eq!(largest, wanted, "{name}");
        let buckets = found.storage.slots_per_account.iter();
        let buckets: Vec<_> = buckets.map(|b| (b.from, b.to, b.count)).collect();
        let wanted = [(1, 1, 1), (2, 2, 1), (3, 4, 2), (5, 8, 4), (9, 16, 1)];
        assert_eq!(buckets, wanted, "{name}");
        assert_eq!((found.codes.codes, found.codes.bytes), (2, 1_700), "{name}");
        assert_eq!(found.codes.largest[0].bytes, 900, "{name}");
        let tables: u64 = found.tables.iter().map(|table| table.records).sum();
        assert!(
            tables > 0 && found.tables.len() == tree.kind().tables.len() + OWN_TABLES.len(),
            "{name}"
        );
        for of in &found.nodes {
            assert_eq!(of.by_depth.iter().sum::<u64>(), of.count, "{name}");
        }
    }
}

/// Of a Verkle tree each leaf is a stem: the occupancy has all of them.
#[test]
fn nodes_are_those_of_the_tree() {
    for tree in trees() {
        let found = all(&state(&tree, 9));
        let count = |trie, kind| {
            let of = found
                .nodes
                .iter()
                .find(|of| of.trie == trie && of.kind == kind);
            of.map_or(0, |of| of.count)
        };
        let stems: u64 = found.occupancy.iter().map(|bucket| bucket.count).sum();
        let (leaves, values) = (count("state", "leaf"), found.storage.slots);
        match tree.kind().name {
            "mpt" => {
                assert_eq!(count("accounts", "leaf"), 9);
                // The trie of one slot is a leaf without a record.
                assert_eq!(count("storage", "leaf"), values - 1);
            }
            "ar16mt" => assert!(leaves > values && stems == 0),
            "toy" => assert!(found.nodes.is_empty()),
            "eip8297" | "eip7864" | "eip7864-a" => {
                assert!(leaves > values && stems == 0);
                assert_eq!(count("state", "branch"), leaves - 1);
            }
            _ => assert!(leaves >= 9 && leaves == stems),
        }
    }
}

#[test]
fn a_broken_inspection_is_incomplete() {
    for tree in trees() {
        let snapshot = state(&tree, 3);
        let mut told = 0;
        let found = snapshot.inspect(3, &mut |_| {
            told += 1;
            match told {
                3 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        let found = found.unwrap();
        assert!(!found.complete);
        assert_eq!(found.tables.len(), 3);
        let complete: Vec<bool> = found.tables.iter().map(|table| table.complete).collect();
        assert_eq!(complete, [true, true, false]);
    }
}

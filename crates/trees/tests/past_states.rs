//! States in the past that own what they are read from, in threads that outlive the writer, under every tree; and the way back to a block
//! by its number or its hash.

#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::thread;

use alloy_primitives::{B256, U256};
use arbor_state::{Account, PastState, State, StateChanges, StateError, StateView, Tree};
use arbor_verify::Verdict;
use arbor_versions::{Retain, Version};

use crate::trees::{address, block, change, empty, plain, trees};

const BLOCKS: u64 = 5;

/// The account of the tests after a block, and its slot 1.
fn account(number: u64) -> (Account, u64) {
    (plain(number, 100 + number), number + 1)
}

/// A state with blocks, each of which changes the account.
fn with_blocks(tree: &Tree) -> (State, Vec<B256>) {
    let (mut state, mut before) = (empty(tree), (None, 0));
    let mut roots = Vec::new();
    for number in 0..BLOCKS {
        let (now, value) = account(number);
        let mut changes = StateChanges::default();
        let change = change(before.0, Some(now), &[(1, before.1, value)]);
        changes.accounts.insert(address(1), change);
        let computed = state.compute(&changes).unwrap();
        roots.push(computed.root());
        state.commit(&block(number), computed).unwrap();
        if number == 2 {
            state.flush().unwrap();
        }
        before = (Some(now), value);
    }
    (state, roots)
}

/// Checks by reads and proofs that a state is the one after a block.
fn check(past: &PastState, number: u64, root: B256) {
    let (account, value) = account(number);
    let (name, slot) = (address(1), U256::from(1));
    assert_eq!((past.meta().block_number, past.root()), (number, root));
    assert_eq!(past.account(name).unwrap(), Some(account));
    assert_eq!(past.account(address(2)).unwrap(), None);
    assert_eq!(past.storage(name, slot).unwrap(), U256::from(value));
    // The second proof finds the nodes of the first one.
    for past in [past.clone(), past.clone()] {
        let proof = past.prove(name, &[slot]).unwrap();
        let Verdict::True(claims) = proof.verify(root).unwrap() else {
            panic!("the proof of block {number} is false");
        };
        let proven = claims.account(name).unwrap();
        assert_eq!(proven.slot(slot), Some(U256::from(value)));
    }
}

#[test]
fn a_past_state_is_read_in_a_thread_that_outlives_the_writer() {
    for tree in trees() {
        let (mut state, roots) = with_blocks(&tree);
        let snapshot = state.snapshot().unwrap();
        assert_eq!(snapshot.root(), state.root());
        assert_eq!(snapshot.meta(), state.head());
        assert_eq!(
            snapshot.account(address(1)).unwrap(),
            Some(account(BLOCKS - 1).0)
        );
        let hash = |number: u64| block(number).hash;
        let readers = (0..BLOCKS).map(|number| {
            let root = roots[number as usize];
            let past = match number % 4 {
                0 => snapshot.at(Version(number)).unwrap(),
                1 => snapshot.at_block(number).unwrap(),
                2 => snapshot.at_block_hash(hash(number)).unwrap(),
                _ => snapshot.at_root(root).unwrap(),
            };
            thread::spawn(move || check(&past, number, root))
        });
        let readers: Vec<_> = readers.collect();
        let none = snapshot.at_block(BLOCKS).err();
        assert!(matches!(none, Some(StateError::NoBlock { .. })), "{none:?}");
        drop(snapshot);
        state.rollback(Version(3)).unwrap();
        state.prune(Retain::Last(1)).unwrap();
        drop(state);
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
    }
}

/// A past state and its reader lead to the next version, also if another reader still has this one.
#[test]
fn a_past_state_leads_to_the_next() {
    for tree in trees() {
        let (mut state, roots) = with_blocks(&tree);
        let past = state.snapshot().unwrap().at_block(0).unwrap();
        check(&past, 0, roots[0]);
        let next = past.reader().next().unwrap().next().unwrap();
        assert_eq!(B256::from(next.meta().root), roots[2]);
        let proof = next.prove(address(1), &[]).unwrap();
        assert!(matches!(proof.verify(roots[2]), Ok(Verdict::True(_))));
        check(&past, 0, roots[0]);
    }
}

#[test]
fn a_state_is_rolled_back_to_a_block() {
    for tree in trees() {
        let (mut state, roots) = with_blocks(&tree);
        state.rollback_to_block(3).unwrap();
        assert_eq!(state.root(), roots[3]);
        state.rollback_to_block_hash(block(1).hash).unwrap();
        assert_eq!(state.root(), roots[1]);
        let none = state.rollback_to_block(2).err();
        assert!(matches!(none, Some(StateError::NoBlock { .. })), "{none:?}");
        let none = state.rollback_to_block_hash(block(2).hash).err();
        assert!(matches!(none, Some(StateError::NoBlock { .. })), "{none:?}");
        assert_eq!(state.root(), roots[1]);
        assert!(state.verify().unwrap().is_ok());
    }
}

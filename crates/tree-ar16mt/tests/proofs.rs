//! Proofs of trees beside their definition, and beside proofs that were tampered with.

#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeMap;

use arbor_tree::conformance::flat::key;
use arbor_tree_ar16mt::{
    Blake2s, Entry, Hash, LeafProof, LeafUpdate, MemoryTree, apply, naive, prove,
};
use proptest::prelude::*;

fn hasher() -> Blake2s {
    Blake2s::new()
}

fn entry(index: u64) -> Entry {
    let value = [index as u8; 32];
    Entry { index, value }
}

fn tree(leaves: &BTreeMap<Hash, Entry>) -> MemoryTree {
    let update = |(key, entry): (&Hash, &Entry)| LeafUpdate {
        key: *key,
        existed: false,
        new: Some(*entry),
    };
    let updates: Vec<LeafUpdate> = leaves.iter().map(update).collect();
    let mut tree = MemoryTree::default();
    let done = apply(&tree, hasher(), &updates).unwrap();
    tree.change(&done, &updates);
    tree
}

/// Keys, some of which are in the tree, numbered as they come.
fn numbered(keys: &[Hash]) -> BTreeMap<Hash, Entry> {
    keys.iter()
        .zip(1..)
        .map(|(key, i)| (*key, entry(i)))
        .collect()
}

fn check_tampered(proof: &LeafProof, root: &Hash, key: &Hash) -> Result<(), TestCaseError> {
    for at in 0..proof.path.len() {
        let mut other = proof.clone();
        other.path[at][at % 32] ^= 1 << (at % 8);
        prop_assert!(!other.verify(hasher(), root, key), "hash {}", at);
        other = proof.clone();
        other.path.remove(at);
        prop_assert!(!other.verify(hasher(), root, key), "without hash {}", at);
    }
    let mut other = proof.clone();
    other.entry = match proof.entry {
        None => Some(entry(1)),
        Some(entry) => Some(Entry {
            index: entry.index + 1,
            ..entry
        }),
    };
    prop_assert!(!other.verify(hasher(), root, key), "another index");
    other.entry = proof.entry.map(|mut entry| {
        entry.value[31] ^= 1;
        entry
    });
    prop_assert_eq!(other.verify(hasher(), root, key), proof.entry.is_none());
    other.entry = if proof.entry.is_some() {
        None
    } else {
        Some(Entry {
            index: 0,
            value: [0; 32],
        })
    };
    prop_assert!(!other.verify(hasher(), root, key), "the opposite");
    other.path = vec![[0; 32]; 257];
    prop_assert!(
        !other.verify(hasher(), root, key),
        "a path that is too long"
    );
    Ok(())
}

#[test]
fn an_empty_tree_proves_that_nothing_is_there() {
    let proofs = prove(&MemoryTree::default(), hasher(), &[[7; 32], [7; 32]]).unwrap();
    let root = naive::root(&BTreeMap::new());
    for proof in proofs {
        assert_eq!(
            proof,
            LeafProof {
                entry: None,
                path: Vec::new()
            }
        );
        assert!(proof.verify(hasher(), &root, &[7; 32]));
        let mut one = BTreeMap::new();
        one.insert([7; 32], entry(1));
        assert_eq!(
            proof.root_after(hasher(), &[7; 32], entry(1)),
            Some(naive::root(&one))
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Present and absent keys, near each other and far apart: proofs hold, show the root after a write, and fail when anything is changed.
    #[test]
    fn proofs_hold_and_tampered_ones_do_not(
        there in prop::collection::vec(key(), 0..10),
        asked in prop::collection::vec(key(), 1..6),
    ) {
        let leaves = numbered(&there);
        let (tree, root) = (tree(&leaves), naive::root(&leaves));
        let asked: Vec<Hash> = asked.into_iter().chain(there.iter().take(3).copied()).collect();
        let proofs = prove(&tree, hasher(), &asked).unwrap();
        for (key, proof) in asked.iter().zip(&proofs) {
            prop_assert_eq!(proof.entry.as_ref(), leaves.get(key));
            prop_assert!(proof.verify(hasher(), &root, key));
            let mut after = leaves.clone();
            after.insert(*key, entry(99));
            prop_assert_eq!(proof.root_after(hasher(), key, entry(99)), Some(naive::root(&after)));
            check_tampered(proof, &root, key)?;
        }
    }
}

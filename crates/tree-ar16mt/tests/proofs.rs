//! Proofs of trees beside their definition, and beside proofs that were tampered with.

#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeMap;

use arbor_tree::conformance::flat::key;
use arbor_tree_ar16mt::{
    Blake2s, Entry, Hash, LeafProof, LeafUpdate, MemoryTree, Operation, Outcome, TreeError,
    TreeUpdate, apply, apply_unread, apply_with_proofs, naive, prove,
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

/// A batch with proofs writes the nodes that its last writes alone write.
fn check_nodes(tree: &MemoryTree, operations: &[Operation], update: &TreeUpdate) {
    let writes = operations.iter().filter_map(|op| Some((op.key, op.new?)));
    let last: BTreeMap<Hash, Entry> = writes.collect();
    let updates = last.into_iter().map(|(key, new)| LeafUpdate {
        key,
        existed: false,
        new: Some(new),
    });
    let updates: Vec<LeafUpdate> = updates.collect();
    let alone = apply_unread(tree, hasher(), &updates).unwrap();
    let nodes = |update: &TreeUpdate| {
        let nodes = update.nodes.iter();
        let nodes: BTreeMap<_, _> = nodes.map(|node| (node.path, node.record.clone())).collect();
        assert_eq!(nodes.len(), update.nodes.len(), "a node is written twice");
        nodes
    };
    assert!(nodes(&alone) == nodes(update), "other nodes are written");
    assert_eq!(alone.root, update.root);
}

/// What an operation does to the contents, and what it finds.
fn perform(contents: &mut BTreeMap<Hash, Entry>, key: Hash, new: Option<Entry>) -> Outcome {
    let found = contents.get(&key).copied();
    if let Some(entry) = new {
        contents.insert(key, entry);
    }
    match (found, new) {
        (None, Some(_)) => Outcome::Inserted,
        (Some(entry), Some(_)) => Outcome::Updated(entry),
        (Some(entry), None) => Outcome::Read(entry),
        (None, None) => Outcome::ReadMissing,
    }
}

fn check_operations(
    there: &BTreeMap<Hash, Entry>,
    wishes: &[(Hash, Option<Entry>)],
) -> Result<(), TestCaseError> {
    let operations: Vec<Operation> = wishes
        .iter()
        .map(|(key, new)| Operation {
            key: *key,
            new: *new,
        })
        .collect();
    let tree = tree(there);
    let (update, proofs) = apply_with_proofs(&tree, hasher(), &operations).unwrap();
    check_nodes(&tree, &operations, &update);
    prop_assert_eq!(proofs.len(), operations.len());
    let mut contents = there.clone();
    let mut before = naive::root(&contents);
    for (at, (key, new)) in wishes.iter().enumerate() {
        // What a proof of this key alone says at this point.
        let alone = prove(&self::tree(&contents), hasher(), &[*key])
            .unwrap()
            .remove(0);
        let outcome = perform(&mut contents, *key, *new);
        let proof = proofs.get(at);
        prop_assert_eq!(proof.outcome, outcome);
        prop_assert_eq!(
            proof.root,
            naive::root(&contents),
            "root after operation {}",
            at
        );
        prop_assert_eq!(&proof.path, &alone.path, "path of operation {}", at);
        prop_assert!(proof.verify(hasher(), &before, key, *new));
        prop_assert!(!proof.verify(hasher(), &[1; 32], key, *new));
        let other = if new.is_some() { None } else { Some(entry(77)) };
        prop_assert!(!proof.verify(hasher(), &before, key, other));
        before = proof.root;
    }
    prop_assert_eq!(update.root, before);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Operations in any order, keys more than once: each proof is that of the tree as it was then, and leads to the tree after.
    #[test]
    fn operations_are_proven_one_after_the_other(
        there in prop::collection::vec(key(), 0..8),
        wishes in prop::collection::vec((key(), prop::option::weighted(0.6, 50u64..200)), 0..16),
        again in prop::collection::vec((any::<prop::sample::Index>(), prop::option::weighted(0.5, 200u64..250)), 0..8),
    ) {
        let leaves = numbered(&there);
        let mut wishes: Vec<(Hash, Option<Entry>)> = wishes.into_iter().map(|(key, new)| (key, new.map(entry))).collect();
        let keys: Vec<Hash> = wishes.iter().map(|wish| wish.0).chain(there).collect();
        if !keys.is_empty() {
            wishes.extend(again.into_iter().map(|(at, new)| (*at.get(&keys), new.map(entry))));
        }
        check_operations(&leaves, &wishes)?;
    }
}

/// Many keys at random, so that nodes and threads have many operations each; in one part, in 16 and in 256, in a tree with few leaves and in one with many.
#[test]
fn many_operations_are_proven() {
    for (leaves, operations) in [(0, 300), (3000, 4000), (5, 20_000), (3000, 20_000)] {
        prove_many(leaves, operations);
    }
}

fn prove_many(leaves: u64, operations: u64) {
    let key = |i: u64| arbor_hashing::Blake2s::new().hash(&i.to_le_bytes());
    let there: BTreeMap<Hash, Entry> = (0..leaves).map(|i| (key(i), entry(i + 1))).collect();
    let operations: Vec<Operation> = (0..operations)
        .map(|i| {
            let key = key(i * 7919 % 18_000);
            let new = (i % 4 > 0).then(|| entry(10_000 + i));
            Operation { key, new }
        })
        .collect();
    let tree = tree(&there);
    let (update, proofs) = apply_with_proofs(&tree, hasher(), &operations).unwrap();
    check_nodes(&tree, &operations, &update);
    let mut before = naive_root_of(&there);
    for (at, operation) in operations.iter().enumerate() {
        let proof = proofs.get(at);
        assert!(
            proof.verify(hasher(), &before, &operation.key, operation.new),
            "operation {at}"
        );
        before = proof.root;
    }
    assert_eq!(update.root, before);
}

fn naive_root_of(leaves: &BTreeMap<Hash, Entry>) -> Hash {
    arbor_tree_ar16mt::root(&tree(leaves), hasher()).unwrap()
}

#[test]
fn operations_that_cannot_be_are_errors() {
    let tree = tree(&numbered(&[[1; 32]]));
    let zero = Operation {
        key: [1; 32],
        new: Some(Entry {
            index: 0,
            value: [1; 32],
        }),
    };
    // Also one that another write of the same key follows.
    let after = Operation {
        new: Some(entry(2)),
        ..zero
    };
    for operations in [&[zero][..], &[zero, after]] {
        let error = apply_with_proofs(&tree, hasher(), operations).unwrap_err();
        assert!(matches!(error, TreeError::Index(_)), "{error}");
    }
}

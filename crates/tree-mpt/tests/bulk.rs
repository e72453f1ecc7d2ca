//! Bulk builds of many batches: the same nodes as an incremental update, in the promised order.

use std::collections::BTreeMap;

use arbor_tree::{Hash, MemoryNodes, Position};
use arbor_tree_mpt::{EMPTY_ROOT, LeafTemplate, OuterUpdate, TreeError, apply, build};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// 30,000 keys, half of them crowded under one prefix of 20 nibbles.
fn leaves() -> BTreeMap<Hash, Vec<u8>> {
    let mut rng = StdRng::seed_from_u64(7);
    let leaf = |index| {
        let mut key: Hash = rng.random();
        if index % 2 == 0 {
            key[..10].fill(0x5a);
        }
        (key, rng.random::<[u8; 32]>().to_vec())
    };
    (0..30_000).map(leaf).collect()
}

#[test]
fn many_batches_make_the_nodes_of_one_update() {
    let leaves = leaves();
    let mut built = BTreeMap::new();
    let mut last: BTreeMap<usize, Position> = BTreeMap::new();
    let root = build(None, leaves.clone(), &mut |position, record| {
        let before = last.insert(position.path.len(), position);
        assert!(before < Some(position), "{position} after {before:?}");
        built.insert(position, record);
    });
    let root = root.expect("sorted");
    // The hole fills the whole leaf: its value is the inner root that the update names.
    let update = |(key, value): (&Hash, &Vec<u8>)| OuterUpdate {
        key: *key,
        existed: false,
        inner_root: value.as_slice().try_into().expect("32 bytes"),
        leaf: Some(LeafTemplate {
            bytes: vec![0; 32],
            hole: 0,
        }),
        inner: Vec::new(),
    };
    let updates: Vec<OuterUpdate> = leaves.iter().map(update).collect();
    let applied = apply(&MemoryNodes::new(), EMPTY_ROOT, &updates).expect("applies");
    assert_eq!(applied.root, root);
    let nodes = applied.nodes.into_iter();
    let nodes: BTreeMap<_, _> = nodes
        .map(|node| (node.position, node.record.expect("nothing is deleted")))
        .collect();
    assert_eq!(nodes, built);
}

#[test]
fn out_of_order_and_empty_are_rejected() {
    let build = |leaves: [(Hash, Vec<u8>); 2]| build(None, leaves, &mut |_, _| {});
    let error = build([([2; 32], vec![1]), ([2; 32], vec![1])]).expect_err("a key twice");
    assert!(matches!(error, TreeError::UnsortedKey { key } if key == [2; 32]));
    let error = build([([1; 32], vec![1]), ([2; 32], vec![])]).expect_err("no value");
    assert!(matches!(error, TreeError::EmptyValue { key } if key == [2; 32]));
}

//! Bulk builds of many batches: the same nodes as an incremental update, in the promised order.

use std::collections::BTreeMap;

use arbor_tree::{Hash, MemoryNodes, Path, Position};
use arbor_tree_mpt::{
    EMPTY_ROOT, LeafTemplate, OuterUpdate, Part, TreeError, apply, build, build_many, build_part,
    join,
};
use proptest::prelude::*;
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
fn many_tries_are_those_built_alone() {
    let mut rng = StdRng::seed_from_u64(11);
    // Sizes about that of a batch, and many small ones between.
    let sizes = (0..3_000).map(|number| match number {
        500 | 501 => 9_000,
        1_000..1_040 => 1_355 + (number - 1_000),
        _ => number % 6,
    });
    let tries = sizes.map(|size| {
        let leaves = (0..size).map(|_| (rng.random::<Hash>(), vec![7; 1 + size % 40]));
        (size, leaves.collect::<BTreeMap<_, _>>())
    });
    let mut tries: Vec<_> = tries.collect();
    let owner = |number: usize| [(number >> 8) as u8, number as u8].repeat(16);
    let owner = |number: usize| Hash::try_from(owner(number)).expect("32 bytes");
    let mut alone = Nodes::new();
    let mut roots = Vec::new();
    for (number, (_, leaves)) in tries.iter().enumerate() {
        let root = build(
            Some(owner(number)),
            leaves.clone(),
            &mut |position, record| {
                alone.insert(position, record);
            },
        );
        roots.push(root.expect("sorted"));
    }
    let mut together = Nodes::new();
    let mut last = None;
    let many = tries
        .drain(..)
        .enumerate()
        .map(|(number, (_, leaves))| (owner(number), leaves));
    let many = build_many(many, &mut |position: Position, record| {
        assert!(last <= position.trie, "{position} comes late");
        last = position.trie;
        together.insert(position, record);
    });
    assert!(many.expect("sorted") == roots, "the roots");
    assert!(together == alone, "the nodes");
    assert_eq!(roots[0], EMPTY_ROOT);
}

/// A trie whose last leaf happened to fill a batch lost its root, and `arbor verify` ended in a panic on a sound database. Tries
/// that grow leaf by leaf around the size of a batch, leaves and nodes together, meet it.
#[test]
fn the_last_leaf_may_fill_a_batch() {
    for spread in [1u64, 3] {
        let leaf = |index: u64| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&((index * spread) << 40).to_be_bytes());
            (key, vec![1; 40])
        };
        for count in 3_650..3_850 {
            let leaves = (0..count).map(leaf).collect();
            assert!(
                whole(&leaves) == from_parts(&leaves, 4),
                "{count} leaves, {spread} apart"
            );
        }
    }
}

type Nodes = BTreeMap<Position, std::sync::Arc<[u8]>>;

fn whole(leaves: &BTreeMap<Hash, Vec<u8>>) -> (Hash, Nodes) {
    let mut nodes = Nodes::new();
    let root = build(Some([3; 32]), leaves.clone(), &mut |position, record| {
        assert!(nodes.insert(position, record).is_none(), "{position} twice");
    });
    (root.expect("sorted"), nodes)
}

/// Builds a trie from parts whose keys share so many nibbles, and joins them.
fn from_parts(leaves: &BTreeMap<Hash, Vec<u8>>, nibbles: usize) -> (Hash, Nodes) {
    let mut groups: BTreeMap<Path, Vec<(Hash, Vec<u8>)>> = BTreeMap::new();
    for (key, value) in leaves {
        let path = Path::prefix_of_key(key, nibbles);
        groups.entry(path).or_default().push((*key, value.clone()));
    }
    let mut nodes = Nodes::new();
    let mut sink = |position: Position, record| {
        assert!(nodes.insert(position, record).is_none(), "{position} twice");
    };
    let part = |group| build_part(Some([3; 32]), group, &mut sink).expect("sorted");
    let mut parts: Vec<_> = groups.into_values().map(part).collect();
    let nothing = build_part(None, [], &mut |_, _| {}).expect("nothing to sort");
    parts.insert(parts.len() / 2, nothing);
    // As another process would join them.
    let sent = parts
        .iter()
        .map(|part| Part::decode(&part.encode()).expect("whole"));
    let parts: Vec<Part> = sent.collect();
    let root = join(Some([3; 32]), parts, &mut sink).expect("apart");
    (root, nodes)
}

#[test]
fn bytes_that_are_no_part_are_refused() {
    let leaves = |keys: &[u8]| {
        keys.iter()
            .map(|key| ([*key; 32], vec![1]))
            .collect::<Vec<_>>()
    };
    for keys in [&[7][..], &[7, 8]] {
        let part = build_part(None, leaves(keys), &mut |_, _| {}).expect("sorted");
        let bytes = part.encode();
        for length in 1..bytes.len() {
            // The value of a single leaf may have any length.
            let is_leaf = keys.len() == 1 && length > 65;
            assert_eq!(
                Part::decode(&bytes[..length]).is_some(),
                is_leaf,
                "{length}"
            );
        }
        let mut deep = bytes;
        deep[64] = 64;
        assert!(Part::decode(&deep).is_none());
    }
}

#[test]
fn parts_of_many_batches_make_the_whole() {
    let leaves = leaves();
    let whole = whole(&leaves);
    for nibbles in [0, 1, 2, 3, 20, 22, 64] {
        assert!(from_parts(&leaves, nibbles) == whole, "{nibbles} nibbles");
    }
}

proptest! {
    /// Few keys of few nibbles, some crowded under a prefix, so that parts are empty, single leaves and long extensions;
    /// values short enough that nodes are inlined.
    #[test]
    fn parts_make_the_whole(
        keys in prop::collection::btree_map(
            (any::<bool>(), prop::collection::vec(prop::sample::select(&[0u8, 1, 0x10, 0xff][..]), 4)), 1u8..3, 0..24),
        nibbles in 0usize..70,
    ) {
        let leaf = |((deep, bytes), value): ((bool, Vec<u8>), u8)| {
            let mut key = [0; 32];
            let from = if deep { 28 } else { 0 };
            key[from..from + 4].copy_from_slice(&bytes);
            (key, vec![value])
        };
        let leaves: BTreeMap<Hash, Vec<u8>> = keys.into_iter().map(leaf).collect();
        prop_assert!(from_parts(&leaves, nibbles.min(64)) == whole(&leaves));
    }
}

#[test]
fn parts_that_are_not_apart_are_rejected() {
    let part = |keys: &[u8]| {
        let leaves = keys.iter().map(|key| ([*key; 32], vec![1]));
        build_part(None, leaves, &mut |_, _| {}).expect("sorted")
    };
    let join = |parts| join(None, parts, &mut |_, _| {});
    let error = join([part(&[1, 2]), part(&[2, 3])]).expect_err("a key twice");
    assert!(matches!(error, TreeError::UnsortedKey { key } if key == [2; 32]));
    let error = join([part(&[1, 2]), part(&[3])]).expect_err("all begin with 0");
    assert!(matches!(error, TreeError::MixedParts { key } if key == [3; 32]));
    join([part(&[1, 2]), part(&[0x11, 0x12])]).expect("0 and 1");
}

#[test]
fn out_of_order_and_empty_are_rejected() {
    let build = |leaves: [(Hash, Vec<u8>); 2]| build(None, leaves, &mut |_, _| {});
    let error = build([([2; 32], vec![1]), ([2; 32], vec![1])]).expect_err("a key twice");
    assert!(matches!(error, TreeError::UnsortedKey { key } if key == [2; 32]));
    let error = build([([1; 32], vec![1]), ([2; 32], vec![])]).expect_err("no value");
    assert!(matches!(error, TreeError::EmptyValue { key } if key == [2; 32]));
}

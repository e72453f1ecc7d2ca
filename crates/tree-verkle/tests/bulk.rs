//! Trees of some thousand leaves: many batches, many nodes of a level, threads.

use crate::support::{self, COMMITTER, change, records, said, store, updates};
use arbor_tree_verkle::{
    BuildLeaf, MemoryTree, NodeChange, Record, Settings, TreeUpdate, apply, build,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;

type Wishes = Vec<([u8; 32], Option<[u8; 32]>)>;

/// Keys of which some share stems, and stems of which some share many bytes.
fn wishes(random: &mut StdRng, count: usize) -> Wishes {
    let mut keys: Vec<[u8; 32]> = Vec::new();
    for _ in 0..count {
        let mut key: [u8; 32] = random.random();
        if random.random_ratio(1, 3) && !keys.is_empty() {
            let other = keys[random.random_range(0..keys.len())];
            let shared = random.random_range(0..32);
            key[..shared].copy_from_slice(&other[..shared]);
        }
        keys.push(key);
    }
    keys.into_iter()
        .map(|key| (key, Some(random.random())))
        .collect()
}

fn built(tree: &MemoryTree) -> BTreeMap<arbor_tree_verkle::NodeKey, Vec<u8>> {
    let leaf = |(stem, values): (&_, &BTreeMap<_, _>)| -> BuildLeaf {
        (
            *stem,
            values
                .iter()
                .map(|(suffix, value)| (*suffix, *value))
                .collect(),
        )
    };
    let mut records = BTreeMap::new();
    let mut last_at_depth: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
    let leaves = tree.all_values().iter().map(leaf);
    build(
        &COMMITTER,
        &Settings::default(),
        leaves,
        &mut |key, record| {
            // The nodes of a depth come in their order: who compares them with stored ones relies on it.
            let last = last_at_depth.insert(key.encode()[0], key.encode().to_vec());
            assert!(last.is_none_or(|last| *last < *key.encode()), "{key}");
            records.insert(key, record.to_vec());
        },
    )
    .expect("builds");
    records
}

#[test]
fn many_changes_at_once_are_the_tree_built_anew() {
    let mut random = StdRng::seed_from_u64(5);
    let settings = Settings::default();
    let mut tree = MemoryTree::new();
    let mut known: Wishes = Vec::new();
    for count in [18_000, 1, 2_000] {
        let mut step = wishes(&mut random, count);
        for (key, _) in &known {
            match random.random_range(0..10) {
                0 => step.push((*key, None)),
                1 => step.push((*key, Some([0; 32]))),
                _ => {}
            }
        }
        let done = change(&mut tree, &settings, &step);
        assert_eq!(said(records(&tree)), said(built(&tree)));
        assert_eq!(
            done.stats.filled.iter().sum::<usize>(),
            done.stats.leaves_written
        );
        assert_eq!(published(&tree, &done), {
            let stats = &done.stats;
            stats.published_leaves + stats.published_values
        });
        known.append(&mut step);
    }
}

/// Bytes of the leaves written in go-verkle's form: 193 for one value, 192 for an account without code, else 256 and 32 for each value.
fn published(tree: &MemoryTree, done: &TreeUpdate) -> usize {
    let bytes = |change: &NodeChange| {
        let record = Record::decode(&change.key, change.record.as_ref()?).expect("a record");
        let Record::Leaf(leaf) = record else {
            return None;
        };
        let values = &tree.all_values()[&leaf.stem];
        Some(match values.keys().copied().collect::<Vec<_>>()[..] {
            [_] => 193,
            [0, 1] => 192,
            _ => 256 + 32 * values.len(),
        })
    };
    done.nodes.iter().filter_map(bytes).sum()
}

#[test]
fn undoing_leads_back() {
    let mut random = StdRng::seed_from_u64(6);
    let settings = Settings::default();
    let mut tree = MemoryTree::new();
    change(&mut tree, &settings, &wishes(&mut random, 500));
    let before = tree.clone();
    let keys: Vec<_> = before
        .all_values()
        .iter()
        .flat_map(|(stem, values)| values.keys().map(|suffix| support::join(stem, *suffix)))
        .collect();
    let mut step = wishes(&mut random, 300);
    step.extend(keys.iter().step_by(3).map(|key| (*key, None)));
    step.extend(
        keys.iter()
            .skip(1)
            .step_by(3)
            .map(|key| (*key, Some([1; 32]))),
    );
    let mut undo = updates(&tree, &step);
    let done = apply(&tree, &COMMITTER, &undo, &settings).expect("applies");
    store(&mut tree, &undo, &done);
    assert_ne!(tree, before);
    for change in undo.iter_mut().flat_map(|update| &mut update.changes) {
        std::mem::swap(&mut change.old, &mut change.new);
    }
    let done = apply(&tree, &COMMITTER, &undo, &settings).expect("applies");
    store(&mut tree, &undo, &done);
    assert_eq!(tree.all_values(), before.all_values());
    assert_eq!(said(records(&tree)), said(records(&before)));
}

#[test]
fn one_thread_computes_what_many_do() {
    let step = wishes(&mut StdRng::seed_from_u64(7), 2_000);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("a pool").install(|| {
            let mut tree = MemoryTree::new();
            change(&mut tree, &Settings::default(), &step);
            tree
        })
    };
    assert_eq!(run(1), run(3));
}

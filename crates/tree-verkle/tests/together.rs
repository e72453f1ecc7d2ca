//! Updates applied together, beside the same ones applied one by one.

use crate::support::{COMMITTER, change, records, said, store, updates};
use arbor_tree::conformance::key;
use arbor_tree_verkle::{
    Form, MemoryTree, Settings, StemUpdate, TreeError, TreeStats, TreeUpdate, Value, ValueChange,
    apply, apply_together,
};
use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::StdRng};

type Writes = Vec<([u8; 32], Option<Value>)>;

/// Values of few bytes and of many, so that leaves keep them or points.
fn value() -> impl Strategy<Value = Option<Value>> {
    let value = |(byte, length): (u8, usize)| {
        let mut value = [0; 32];
        value[32 - length..].fill(byte);
        Some(value)
    };
    (
        any::<u8>(),
        prop::sample::select(vec![0usize, 1, 8, 17, 32]),
    )
        .prop_map(value)
}

fn writes() -> impl Strategy<Value = Writes> {
    // Suffixes of both halves.
    let suffixes = vec![0u8, 1, 2, 3, 4, 5, 64, 128, 200];
    let key = (key(), prop::sample::select(suffixes));
    let key = key.prop_map(|(mut key, suffix)| {
        key[31] = suffix;
        key
    });
    // Of two stems many, so that halves get more values than they keep.
    let few = (0u8..2, 0u8..7).prop_map(|(stem, suffix)| {
        let mut key = [0; 32];
        (key[0], key[31]) = (stem, suffix);
        key
    });
    proptest::collection::vec((prop_oneof![key, few], value()), 0..8)
}

fn settings() -> impl Strategy<Value = Settings> {
    any::<[bool; 7]>().prop_map(|[a, b, c, d, e, f, g]| Settings {
        form: Form {
            compressed: a,
            images: b,
            leaf_commitments: c,
            values: d,
            whole: e,
        },
        batched_images: f,
        batched_affine: g,
    })
}

/// Applies steps one by one and together; both must leave the same.
fn compare(tree: &MemoryTree, settings: &Settings, steps: &[Writes]) {
    let mut one_by_one = tree.clone();
    let mut all: Vec<Vec<StemUpdate>> = Vec::new();
    let (mut roots, mut stats) = (Vec::new(), TreeStats::default());
    for step in steps {
        let updates = updates(&one_by_one, step);
        let done = apply(&one_by_one, &COMMITTER, &updates, settings).expect("applies");
        store(&mut one_by_one, &updates, &done);
        all.push(updates);
        roots.push(done.root);
        stats += done.stats;
    }
    let run: Vec<&[StemUpdate]> = all.iter().map(Vec::as_slice).collect();
    let done = apply_together(tree, &COMMITTER, &run, settings).expect("applies");
    assert_eq!(done.roots, roots);
    let counts = |stats: TreeStats| (stats.values, stats.internals_written);
    assert_eq!(counts(done.stats), counts(stats));
    // Leaves that only move, deeper and deeper, may do so once.
    let changed = |update: &&StemUpdate| update.changes.iter().any(|of| of.old != of.new);
    let changed = all.iter().flatten().filter(changed).count();
    let written = done.stats.leaves_written;
    assert!((changed..=stats.leaves_written).contains(&written));
    assert_eq!(done.stats.filled.iter().sum::<usize>(), written);
    assert!(done.nodes.is_sorted_by(|a, b| a.key < b.key));
    let mut together = tree.clone();
    let Some(last) = roots.last() else { return };
    let done = TreeUpdate {
        nodes: done.nodes,
        root: *last,
        stats: done.stats,
    };
    all.iter()
        .for_each(|updates| store(&mut together, updates, &done));
    assert_eq!(said(records(&together)), said(records(&one_by_one)));
    // What was kept of leaves leads on.
    let again: Writes = steps.iter().flatten().copied().collect();
    let again: Writes = again
        .into_iter()
        .map(|(key, _)| (key, Some([9; 32])))
        .collect();
    let roots = [&mut together, &mut one_by_one].map(|tree| change(tree, settings, &again).root);
    assert_eq!(roots[0], roots[1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn together_as_one_by_one(
        settings in settings(),
        before in writes(),
        steps in proptest::collection::vec(writes(), 0..6),
    ) {
        let mut tree = MemoryTree::new();
        change(&mut tree, &settings, &before);
        compare(&tree, &settings, &steps);
    }
}

/// Random keys, of which some begin like others that are there already, and some are there.
fn random_writes(random: &mut StdRng, keys: &mut Vec<[u8; 32]>, count: usize) -> Writes {
    let mut writes = Vec::new();
    for _ in 0..count {
        let mut key: [u8; 32] = random.random();
        if !keys.is_empty() && random.random_ratio(2, 3) {
            let shared = *[1, 2, 3, 31, 32]
                .get(random.random_range(0..5))
                .unwrap_or(&0);
            let other = keys[random.random_range(0..keys.len())];
            key[..shared].copy_from_slice(&other[..shared]);
        }
        keys.push(key);
        writes.push((key, Some(random.random())));
    }
    writes
}

#[test]
fn many_changes_of_a_large_tree() {
    let mut random = StdRng::seed_from_u64(11);
    let mut keys = Vec::new();
    let settings = Settings::default();
    for before in [0, 3_000] {
        let mut tree = MemoryTree::new();
        change(
            &mut tree,
            &settings,
            &random_writes(&mut random, &mut keys, before),
        );
        let mut steps = vec![Vec::new(); 9];
        for (n, step) in steps.iter_mut().enumerate() {
            // One step changes nothing.
            *step = random_writes(&mut random, &mut keys, 150 * (n % 4));
        }
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.expect("a pool")
                .install(|| compare(&tree, &settings, &steps));
        }
    }
}

#[test]
fn what_cannot_be_together() {
    let settings = Settings::default();
    let tree = MemoryTree::new();
    let write = |old: Option<u8>, new: Option<u8>| {
        let value = |byte: Option<u8>| byte.map(|byte| [byte; 32]);
        let change = ValueChange {
            suffix: 3,
            old: value(old),
            new: value(new),
        };
        [StemUpdate {
            stem: [7; 31],
            changes: vec![change],
        }]
    };
    let run = |updates: &[&[StemUpdate]]| apply_together(&tree, &COMMITTER, updates, &settings);
    let first = write(None, Some(1));
    let other = run(&[&first, &write(Some(2), Some(3))]).expect_err("another value");
    assert!(
        matches!(other, TreeError::Old { said: true, .. }),
        "{other}"
    );
    let removed = run(&[&first, &write(Some(1), None)]).expect_err("a removal");
    assert!(
        matches!(removed, TreeError::Removed { suffix: 3, .. }),
        "{removed}"
    );
    let nothing = run(&[]).expect("nothing to do");
    assert_eq!((nothing.nodes, nothing.roots), (Vec::new(), Vec::new()));
    let unchanged = run(&[&first, &write(Some(1), Some(1)), &[]]).expect("applies");
    assert_eq!(unchanged.roots[0], unchanged.roots[2]);
    assert_eq!(unchanged.nodes.len(), 2);
}

//! The tree beside its definition, step by step.

#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeMap;

use arbor_tree_eip8297::{
    Builder, Hash, Hasher, LeafUpdate, MemoryRecords, Messages, Multiproof, Packing, Path, Shown,
    TreeError, apply, join, naive, prove, prove_many, rewrite, root, witness, witness_tree,
};
use proptest::prelude::*;

type Contents = BTreeMap<Vec<u8>, Hash>;
type Step = Vec<(Vec<u8>, Hash)>;

/// Keys of both lengths that share long prefixes, and some that differ in the last bits only.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let at = prop::sample::select(vec![1usize, 2, 3, 16, 31, 32, 33, 34, 64]);
    let byte = prop::sample::select(vec![1u8, 2, 128, 255]);
    let last = prop::sample::select(vec![0u8, 1, 2, 63, 64, 127, 128, 255]);
    let zone = prop::sample::select(vec![0u8, 1, 255]);
    (prop::collection::vec((at, byte), 0..4), last, zone).prop_map(|(changes, last, zone)| {
        let mut key = vec![0; if zone == 255 { 66 } else { 34 }];
        for (at, byte) in changes {
            if let Some(place) = key.get_mut(at) {
                *place = byte;
            }
        }
        key[0] = zone;
        *key.last_mut().unwrap() = last;
        key
    })
}

fn value() -> impl Strategy<Value = Hash> {
    prop_oneof![
        2 => Just([0; 32]),
        2 => (1u8..=255).prop_map(|byte| [byte; 32]),
        2 => (1u8..=255).prop_map(|byte| {
            let mut small = [0; 32];
            small[31] = byte;
            small
        }),
        1 => any::<Hash>(),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(prop::collection::vec((key(), value()), 0..14), 1..8)
}

fn hashers() -> impl Strategy<Value = Hasher> {
    prop::sample::select(Hasher::NAMES.to_vec()).prop_map(|name| Hasher::named(name).unwrap())
}

fn packings() -> impl Strategy<Value = Packing> {
    (1u8..=8, any::<bool>()).prop_map(|(levels, inner_hashes)| Packing {
        levels,
        inner_hashes,
    })
}

fn updates(step: &Step) -> Vec<LeafUpdate> {
    let step: BTreeMap<_, _> = step.iter().cloned().collect();
    let update = |(key, value): (Vec<u8>, Hash)| LeafUpdate {
        key: Path::of_key(&key).unwrap(),
        value,
    };
    step.into_iter().map(update).collect()
}

fn change(contents: &mut Contents, updates: &[LeafUpdate]) {
    for LeafUpdate { key, value } in updates {
        match *value == [0; 32] {
            true => drop(contents.remove(key.packed())),
            false => drop(contents.insert(key.packed().to_vec(), *value)),
        }
    }
}

fn stored(records: &MemoryRecords) -> BTreeMap<Path, Vec<u8>> {
    let records = records.records().iter();
    records
        .map(|(path, record)| (*path, record.to_vec()))
        .collect()
}

fn built(hasher: Hasher, packing: Packing, contents: &Contents) -> (Hash, BTreeMap<Path, Vec<u8>>) {
    let mut records = BTreeMap::new();
    let mut sink = |path, record: std::sync::Arc<[u8]>| {
        assert_eq!(
            records.insert(path, record.to_vec()),
            None,
            "{path} comes twice"
        );
    };
    let mut builder = Builder::new(hasher, packing);
    for (key, value) in contents {
        builder
            .add(Path::of_key(key).unwrap(), *value, &mut sink)
            .unwrap();
    }
    (builder.finish(&mut sink).unwrap(), records)
}

/// A tree whose zones, the first bytes of keys, are built apart and joined.
fn by_zones(
    hasher: Hasher,
    packing: Packing,
    contents: &Contents,
) -> (Hash, BTreeMap<Path, Vec<u8>>) {
    let mut records = BTreeMap::new();
    let mut sink = |path, record: std::sync::Arc<[u8]>| {
        assert_eq!(
            records.insert(path, record.to_vec()),
            None,
            "{path} comes twice"
        );
    };
    let mut parts = Vec::new();
    for zone in [0, 1, 255] {
        let mut builder = Builder::part(hasher, packing, 8);
        for (key, value) in contents.iter().filter(|(key, _)| key[0] == zone) {
            builder
                .add(Path::of_key(key).unwrap(), *value, &mut sink)
                .unwrap();
        }
        parts.push(builder.finish_part(&mut sink).unwrap());
    }
    (join(hasher, packing, &parts, &mut sink).unwrap(), records)
}

/// Proofs of keys that are there and of some that are not, and of the same with a bit changed.
fn check_proofs(
    records: &MemoryRecords,
    (hasher, packing): (Hasher, Packing),
    contents: &Contents,
    keys: &[Path],
) {
    let (root, proofs) = prove(records, hasher, packing, keys).unwrap();
    let (same, multiproof) = prove_many(records, hasher, packing, keys).unwrap();
    assert_eq!((same, multiproof.root(hasher)), (root, root));
    let bytes = multiproof.encode();
    let read = Multiproof::decode(&bytes).unwrap();
    assert_eq!(read, multiproof);
    for key in keys {
        let expected = match contents.get(key.packed()) {
            Some(value) => Shown::Value(*value),
            None => Shown::Absent,
        };
        assert_eq!(read.show(key), Some(expected));
    }
    for at in 0..bytes.len() {
        // Cut or changed it is no proof, or one that leads elsewhere. No bytes are the proof of a
        // tree without leaves.
        assert!(at == 0 || Multiproof::decode(&bytes[..at]).is_err());
        let mut wrong = bytes.clone();
        wrong[at] ^= 1 << (at % 8);
        if let Ok(wrong) = Multiproof::decode(&wrong) {
            assert_ne!(wrong.root(hasher), root, "byte {at} of {bytes:?}");
        }
    }
    for (key, proof) in keys.iter().zip(&proofs) {
        let expected = match contents.get(key.packed()) {
            Some(value) => Shown::Value(*value),
            None => Shown::Absent,
        };
        let messages = Messages::new(hasher, proof.iter().map(Vec::as_slice));
        assert_eq!(messages.show(&root, key), Ok(expected), "{key}");
        assert_eq!(messages.shown(), proof.len());
        for (place, message) in proof.iter().enumerate() {
            let others = proof
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != place);
            let others = others.map(|(_, message)| message.as_slice());
            assert!(
                Messages::new(hasher, others.clone())
                    .show(&root, key)
                    .is_err()
            );
            for at in [0, message.len() / 2, message.len() - 1] {
                let mut wrong = message.clone();
                wrong[at] ^= 1;
                let mut with: Vec<&[u8]> = others.clone().collect();
                with.push(&wrong);
                assert!(Messages::new(hasher, with).show(&root, key).is_err());
            }
        }
    }
}

/// The root after updates, from the nodes of a witness alone, and the values of keys; each of its
/// nodes is needed.
fn check_witness(
    records: &MemoryRecords,
    (hasher, packing): (Hasher, Packing),
    updates: &[LeafUpdate],
    touched: &[Path],
    after: Hash,
) {
    let (before, nodes) = witness(records, hasher, packing, touched, updates).unwrap();
    let tree = |nodes: &[Vec<u8>]| witness_tree(hasher, before, nodes.iter().map(Vec::as_slice));
    let read = tree(&nodes);
    let keys: Vec<Path> = updates
        .iter()
        .map(|update| update.key)
        .chain(touched.iter().copied())
        .collect();
    let (_, proven) = prove_many(records, hasher, packing, &keys).unwrap();
    for key in &keys {
        let expected = match proven.show(key).unwrap() {
            Shown::Value(value) => Some(value),
            Shown::Absent => None,
        };
        assert_eq!(read.get(key).unwrap(), expected);
    }
    let mut applied = read;
    assert_eq!(applied.apply(updates).unwrap(), after);
    for place in 0..nodes.len() {
        let mut short = nodes.clone();
        short.remove(place);
        let mut short = tree(&short);
        let is_read = keys.iter().all(|key| short.get(key).is_ok());
        assert!(
            !is_read || short.apply(updates).is_err(),
            "node {place} of {nodes:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Roots against the definition; records against a tree built from the contents at once, so
    /// that they follow from the contents.
    #[test]
    fn equals_the_naive_tree_after_every_step(steps in steps(), hasher in hashers(), packing in packings(), other in key()) {
        let (mut records, mut contents) = (MemoryRecords::default(), Contents::new());
        for step in &steps {
            let updates = updates(step);
            let update = apply(&records, hasher, packing, &updates).unwrap();
            change(&mut contents, &updates);
            prop_assert_eq!(update.root, naive::root(hasher, &contents));
            check_witness(&records, (hasher, packing), &updates, &[Path::of_key(&other).unwrap()], update.root);
            for change in &update.nodes {
                let before = records.records().get(&change.path);
                prop_assert_ne!(before, change.record.as_ref(), "{} is written as it was", change.path);
            }
            records.change(update.nodes);
            let (built_root, built) = built(hasher, packing, &contents);
            prop_assert_eq!(built_root, update.root);
            prop_assert_eq!(stored(&records), built);
            prop_assert_eq!(by_zones(hasher, packing, &contents), (update.root, stored(&records)));
            // The record of the root says how the tree is packed, whatever the caller says.
            prop_assert_eq!(root(&records, hasher, Packing::default()).unwrap(), update.root);
            for (path, record) in records.records() {
                prop_assert_eq!(&rewrite(packing, path, record).unwrap()[..], &record[..]);
            }
            let mut keys: Vec<Path> = updates.iter().map(|update| update.key).collect();
            keys.push(Path::of_key(&other).unwrap());
            check_proofs(&records, (hasher, packing), &contents, &keys);
        }
    }

    /// What a damaged record says is an error, or else another record says something else: it is
    /// never taken for the one that it was, and never a panic.
    #[test]
    fn damaged_records_are_errors_or_other_records(
        steps in steps(), packing in packings(), which: prop::sample::Index, at: prop::sample::Index, bit in 0u8..8, cut: bool,
    ) {
        let hasher = Hasher::blake3();
        let mut records = MemoryRecords::default();
        for step in &steps {
            let update = apply(&records, hasher, packing, &updates(step)).unwrap();
            records.change(update.nodes);
        }
        let records = stored(&records);
        prop_assume!(!records.is_empty());
        let (path, record) = records.iter().nth(which.index(records.len())).unwrap();
        let mut wrong = record.clone();
        match cut {
            true => wrong.truncate(at.index(record.len())),
            false => wrong[at.index(record.len())] ^= 1 << bit,
        }
        match rewrite(packing, path, &wrong) {
            Ok(again) => prop_assert_eq!(again, wrong),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

/// The smallest tree in which a bulk build gives out records on the way: more leaves than it merges
/// together.
#[test]
fn a_tree_of_many_leaves_is_built_in_parts() {
    let (hasher, packing) = (Hasher::blake3(), Packing::default());
    let key = |number: u32| {
        let hash = hasher.hash(&number.to_be_bytes());
        [&[0][..], &hash, &[number as u8]].concat()
    };
    let contents: Contents = (0..150_000).map(|number| (key(number), [1; 32])).collect();
    let (built_root, built) = built(hasher, packing, &contents);
    let updates: Vec<LeafUpdate> = contents
        .iter()
        .map(|(key, value)| LeafUpdate {
            key: Path::of_key(key).unwrap(),
            value: *value,
        })
        .collect();
    let mut records = MemoryRecords::default();
    let update = apply(&records, hasher, packing, &updates).unwrap();
    records.change(update.nodes);
    assert_eq!(update.root, built_root);
    assert_eq!(stored(&records), built);
}

#[test]
fn keys_that_no_tree_can_have_are_refused() {
    let (hasher, packing) = (Hasher::blake3(), Packing::default());
    let update = |key: &[u8]| LeafUpdate {
        key: Path::of_key(key).unwrap(),
        value: [1; 32],
    };
    let mut records = MemoryRecords::default();
    let applied = apply(
        &records,
        hasher,
        packing,
        &[update(&[1, 2]), update(&[7; 34])],
    );
    records.change(applied.unwrap().nodes);
    let refused = |keys: &[&[u8]]| {
        let updates: Vec<LeafUpdate> = keys.iter().map(|key| update(key)).collect();
        apply(&records, hasher, packing, &updates).unwrap_err()
    };
    assert!(matches!(refused(&[&[2], &[1]]), TreeError::Order(_)));
    assert!(matches!(refused(&[&[2], &[2]]), TreeError::Order(_)));
    assert!(matches!(refused(&[&[]]), TreeError::NoKey(_)));
    assert!(matches!(refused(&[&[2], &[2, 1]]), TreeError::Prefix(_)));
    assert!(matches!(refused(&[&[1]]), TreeError::Prefix(_)));
    assert!(matches!(refused(&[&[1, 2, 3]]), TreeError::Prefix(_)));
    assert!(matches!(
        refused(&[&[1, 2], &[1, 2, 3]]),
        TreeError::Prefix(_)
    ));
    assert!(matches!(refused(&[&[7; 33]]), TreeError::Prefix(_)));
    let part = LeafUpdate {
        key: Path::of_bits(9, &[1, 128]).unwrap(),
        value: [1; 32],
    };
    let error = apply(&records, hasher, packing, &[part]).unwrap_err();
    assert!(matches!(error, TreeError::NoKey(_)));
}

/// The bytes of two records: a change of either is a change of the layout.
#[test]
fn stored_bytes_are_fixed() {
    let mut records = MemoryRecords::default();
    let packing = Packing::default();
    let leaf = |first: u8, last: u8, value: u8| {
        let mut key = vec![first; 34];
        key[33] = last;
        let mut small = [0; 32];
        small[31] = value;
        (key, small)
    };
    let step = vec![leaf(0, 0, 5), leaf(0, 1, 6), leaf(1, 0, 7)];
    let hasher = Hasher::blake3();
    let update = apply(&records, hasher, packing, &updates(&step)).unwrap();
    records.change(update.nodes);
    let records = stored(&records);
    let hexes: Vec<(String, String)> = records
        .iter()
        .map(|(path, record)| {
            let record: String = record.iter().map(|byte| format!("{byte:02x}")).collect();
            (path.to_string(), record)
        })
        .collect();
    let stem = "00".repeat(33);
    let path_of_root = Path::ROOT.to_string();
    assert_eq!(hexes.len(), 3, "{hexes:?}");
    assert_eq!(hexes[0].0, path_of_root);
    assert!(hexes[0].1.starts_with("0403000700"), "{hexes:?}");
    assert_eq!(hexes[1].0, "00/4");
    assert!(
        hexes[1].1.starts_with(&format!("0c0003010f{stem}")),
        "{hexes:?}"
    );
    assert!(
        hexes[1]
            .1
            .ends_with(&format!("06{}000107", "01".repeat(32))),
        "{hexes:?}"
    );
    assert_eq!(
        hexes[2],
        (format!("{stem}00/268"), "0c00060105060106".to_owned())
    );
}

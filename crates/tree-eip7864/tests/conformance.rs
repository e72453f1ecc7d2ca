//! The tree beside its definition, step by step, and proofs that pass one node for another.

#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeMap;

use arbor_tree_eip7864::{
    Builder, Hash, HashFunction, Hasher, LeafUpdate, MemoryRecords, Multiproof, MultiproofError,
    Packing, Path, Shown, Stem, WitnessTree, apply, join, key, naive, rewrite, root, select,
    select_for_updates,
};
use proptest::prelude::*;

type Contents = BTreeMap<[u8; 32], Hash>;
type Step = Vec<([u8; 32], Option<Hash>)>;

/// Keys whose stems share long prefixes, or are equal.
fn keys() -> impl Strategy<Value = [u8; 32]> {
    let at = prop::sample::select(vec![0usize, 1, 2, 16, 29, 30]);
    let byte = prop::sample::select(vec![1u8, 2, 128, 255]);
    let last = prop::sample::select(vec![0u8, 1, 2, 63, 64, 127, 128, 255]);
    (prop::collection::vec((at, byte), 0..4), last).prop_map(|(changes, last)| {
        let mut key = [0; 32];
        for (at, byte) in changes {
            key[at] = byte;
        }
        key[31] = last;
        key
    })
}

/// Zeros are a value, and the last of them a removal.
fn values() -> impl Strategy<Value = Option<Hash>> {
    prop_oneof![
        1 => Just(None),
        2 => Just(Some([0; 32])),
        2 => (1u8..=255).prop_map(|byte| {
            let mut small = [0; 32];
            small[31] = byte;
            Some(small)
        }),
        2 => any::<Hash>().prop_map(Some),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(prop::collection::vec((keys(), values()), 0..14), 1..8)
}

fn hashers() -> impl Strategy<Value = Hasher> {
    let names = HashFunction::NAMES.to_vec();
    prop::sample::select(names).prop_map(|name| Hasher::named(name).unwrap())
}

fn packings() -> impl Strategy<Value = Packing> {
    (1u8..=8, any::<bool>()).prop_map(|(levels, inner_hashes)| Packing {
        levels,
        inner_hashes,
    })
}

fn path(key: &[u8; 32]) -> Path {
    Path::of_key(key).unwrap()
}

fn updates(step: &Step) -> Vec<LeafUpdate> {
    let step: BTreeMap<_, _> = step.iter().copied().collect();
    let update = |(key, value): ([u8; 32], _)| LeafUpdate {
        key: path(&key),
        value,
    };
    step.into_iter().map(update).collect()
}

fn change(contents: &mut Contents, step: &Step) {
    let step: BTreeMap<_, _> = step.iter().copied().collect();
    for (key, value) in step {
        match value {
            None => drop(contents.remove(&key)),
            Some(value) => drop(contents.insert(key, value)),
        }
    }
}

fn stored(records: &MemoryRecords) -> BTreeMap<Path, Vec<u8>> {
    let records = records.records().iter();
    records
        .map(|(path, record)| (*path, record.to_vec()))
        .collect()
}

/// The tree built in parts, one for each first byte.
fn built(hasher: Hasher, packing: Packing, contents: &Contents) -> (Hash, BTreeMap<Path, Vec<u8>>) {
    let mut records = BTreeMap::new();
    let mut sink = |path, record: std::sync::Arc<[u8]>| {
        let before = records.insert(path, record.to_vec());
        assert_eq!(before, None, "{path} comes twice");
    };
    let mut parts = Vec::new();
    for first in 0..=255 {
        let mut builder = Builder::part(hasher, packing, 8);
        for (key, value) in contents.iter().filter(|(key, _)| key[0] == first) {
            builder.add(path(key), Some(*value), &mut sink).unwrap();
        }
        parts.push(builder.finish_part(&mut sink).unwrap());
    }
    (join(hasher, packing, &parts, &mut sink).unwrap(), records)
}

fn expected(contents: &Contents, key: &Path) -> Shown {
    let key: [u8; 32] = key.packed().try_into().unwrap();
    match contents.get(&key) {
        Some(value) => Shown::Value(*value),
        None => Shown::Absent,
    }
}

/// Proofs show what the tree has. Cut or changed, bytes are no proof, or lead to another root.
fn check_proof(
    records: &MemoryRecords,
    (hasher, packing): (Hasher, Packing),
    contents: &Contents,
    keys: &[Path],
) {
    let selection = select(records, hasher, packing, keys).unwrap();
    let (root, proof) = (selection.root(), selection.multiproof());
    assert_eq!(proof.root(hasher), root);
    let bytes = proof.encode();
    let read = Multiproof::decode(&bytes).unwrap();
    assert_eq!(read, proof);
    let tree = WitnessTree::of_proof(hasher, &read);
    assert_eq!(tree.root(), root);
    for key in keys {
        let expected = expected(contents, key);
        assert_eq!(read.show(key), Some(expected), "{key}");
        let found = tree.get(key).unwrap();
        assert_eq!(found.map_or(Shown::Absent, Shown::Value), expected, "{key}");
    }
    for at in 0..bytes.len() {
        assert!(at == 0 || Multiproof::decode(&bytes[..at]).is_err());
        let mut wrong = bytes.clone();
        wrong[at] ^= 1 << (at % 8);
        if let Ok(wrong) = Multiproof::decode(&wrong) {
            assert_ne!(wrong.root(hasher), root, "byte {at} of {bytes:?}");
        }
    }
}

/// The root after updates that remove nothing, from the nodes of a witness alone.
fn check_witness(
    records: &MemoryRecords,
    (hasher, packing): (Hasher, Packing),
    updates: &[LeafUpdate],
    touched: &[Path],
) {
    let updates: Vec<LeafUpdate> = updates
        .iter()
        .copied()
        .filter(|update| update.value.is_some())
        .collect();
    let after = apply(records, hasher, packing, &updates).unwrap().root;
    let selection = select_for_updates(records, hasher, packing, touched, &updates).unwrap();
    let bytes = selection.multiproof().encode();
    let proof = Multiproof::decode(&bytes).unwrap();
    let mut tree = WitnessTree::of_proof(hasher, &proof);
    assert_eq!(tree.root(), selection.root());
    for key in touched {
        assert!(tree.get(key).is_ok(), "{key}");
    }
    assert_eq!(tree.apply(&updates).unwrap(), after);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Roots against the definition; records against a tree built from the contents at once, so
    /// that they follow from the contents.
    #[test]
    fn equals_the_naive_tree_after_every_step(
        steps in steps(), hasher in hashers(), packing in packings(), other in keys(),
    ) {
        let (mut records, mut contents) = (MemoryRecords::default(), Contents::new());
        for step in &steps {
            let updates = updates(step);
            check_witness(&records, (hasher, packing), &updates, &[path(&other)]);
            let update = apply(&records, hasher, packing, &updates).unwrap();
            change(&mut contents, step);
            prop_assert_eq!(update.root, naive::root(hasher.0, &contents));
            records.change(update.nodes);
            prop_assert_eq!(built(hasher, packing, &contents), (update.root, stored(&records)));
            prop_assert_eq!(root(&records, hasher, Packing::default()).unwrap(), update.root);
            for (path, record) in records.records() {
                prop_assert_eq!(&rewrite(packing, path, record).unwrap()[..], &record[..]);
            }
            let mut keys: Vec<Path> = updates.iter().map(|update| update.key).collect();
            keys.push(path(&other));
            check_proof(&records, (hasher, packing), &contents, &keys);
        }
    }
}

/// A branch entry of a multiproof below a path of `known` bits: its own bits are those of a key.
fn branch(key: &Path, known: usize, to: usize) -> Vec<u8> {
    let mut entry = vec![1];
    entry.extend(((to - known) as u16).to_be_bytes());
    key.write_bits(known, to, &mut entry);
    entry
}

fn stub(hash: &Hash) -> Vec<u8> {
    [&[0][..], hash].concat()
}

/// A stem is 64 bytes like an internal node. If it could be shown as one, its subtree would be the
/// right child, and keys of the stem would be absent in that.
#[test]
fn a_stem_cannot_be_shown_as_an_internal_node() {
    let (hasher, packing) = (Hasher::default(), Packing::default());
    let stem: Stem = [0x81; 31];
    let mut records = MemoryRecords::default();
    let update = [0, 255].map(|suffix| LeafUpdate {
        key: key(&stem, suffix),
        value: Some([suffix; 32]),
    });
    let root = apply(&records, hasher, packing, &update).unwrap();
    records.change(root.nodes);
    let root = root.root;
    // The subtree has a value at each end, so its top has two children.
    let mut halves = [[0; 32]; 2];
    for (half, suffix) in halves.iter_mut().zip([0u8, 255]) {
        *half = hasher.hash(&[suffix; 32]);
        for level in 0..7 {
            let pair = match suffix >> level & 1 {
                0 => [*half, [0; 32]],
                _ => [[0; 32], *half],
            };
            *half = hasher.hash(&pair.concat());
        }
    }
    let mut left = [0; 32];
    left[..31].copy_from_slice(&stem);
    // An internal node at the root, its right child one more, of the halves.
    let one = Path::of_key(&[0x80; 32]).unwrap();
    let forged = [
        branch(&one, 0, 0),
        stub(&left),
        branch(&one, 1, 1),
        stub(&halves[0]),
        stub(&halves[1]),
    ]
    .concat();
    let message = [&left[..], &hasher.hash(&halves.concat())].concat();
    assert_eq!(hasher.hash(&message), root, "the forgery leads to the root");
    let error = Multiproof::decode(&forged).unwrap_err();
    assert_eq!(error, MultiproofError::Doubtful(Path::ROOT));
}

/// An internal node whose left child ends in a zero byte could be shown as a stem that is not the
/// one asked for.
#[test]
fn an_internal_node_cannot_be_shown_as_a_stem() {
    let hasher = Hasher::default();
    let (left, right) = ([[7; 31].as_slice(), &[0]].concat(), [9; 32]);
    let stem = Path::of_key(&[7; 32]).unwrap();
    // The right child as a subtree with two halves of which nothing is shown.
    let hidden = [branch(&stem, 0, 248), stub(&[1; 32]), stub(&right)].concat();
    let error = Multiproof::decode(&hidden).unwrap_err();
    let place = Path::of_key(&left[..31]).unwrap();
    assert_eq!(error, MultiproofError::Doubtful(place));
    // With a value it is a stem, whose root follows from the value.
    let mut leaf = vec![2, 32];
    leaf.extend([0, 1, 5]);
    let shown = [branch(&stem, 0, 248), leaf, stub(&right)].concat();
    let proof = Multiproof::decode(&shown).unwrap();
    let mut value = [0; 32];
    value[31] = 5;
    let mut half = hasher.hash(&value);
    for _ in 0..7 {
        half = hasher.hash(&[half, [0; 32]].concat());
    }
    let subtree = hasher.hash(&[half, right].concat());
    let message = [&left[..], &subtree].concat();
    assert_eq!(proof.root(hasher), hasher.hash(&message));
}

/// Proofs add what the two rules ask for: of these stems one in 256 makes an internal node at the
/// root doubtful, and keys of other stems end at stems with many values.
#[test]
fn proofs_show_what_rules_doubts_out() {
    let (hasher, packing) = (Hasher::default(), Packing::default());
    let mut doubtful = 0;
    for number in 0..3_000u16 {
        let stem = |name: &[u8]| -> Stem { *hasher.hash(name).first_chunk().unwrap() };
        let stems = [0u8, 1, 2].map(|of| stem(&[&number.to_be_bytes()[..], &[of]].concat()));
        let mut updates: Vec<LeafUpdate> = stems
            .iter()
            .flat_map(|stem| [0, 1, 64, 200].map(|suffix| (stem, suffix)))
            .map(|(stem, suffix)| LeafUpdate {
                key: key(stem, suffix),
                value: Some([suffix; 32]),
            })
            .collect();
        updates.sort_unstable_by_key(|update| update.key);
        let mut records = MemoryRecords::default();
        let update = apply(&records, hasher, packing, &updates).unwrap();
        records.change(update.nodes);
        let absent = key(&stem(&number.to_le_bytes()), 9);
        let selection = select(&records, hasher, packing, &[absent]).unwrap();
        let bytes = selection.multiproof().encode();
        let proof = Multiproof::decode(&bytes).unwrap();
        assert_eq!(proof.root(hasher), update.root);
        assert_eq!(proof.show(&absent), Some(Shown::Absent));
        // Below the last node on the way are two branches and a value of its stem. Whatever else is
        // there is the left child of a doubtful node.
        let mut way = 0;
        selection.way(&absent, |_| way += 1);
        doubtful += u32::from(selection.nodes().count() > way + 3);
    }
    assert!(doubtful > 0);
}

/// The bytes of records: a change of them is a change of the layout.
#[test]
fn stored_bytes_are_fixed() {
    let mut records = MemoryRecords::default();
    let (hasher, packing) = (Hasher::default(), Packing::default());
    let leaf = |first: u8, suffix: u8, value: u8| {
        let mut small = [0; 32];
        small[31] = value;
        LeafUpdate {
            key: key(&[first; 31], suffix),
            value: Some(small),
        }
    };
    let step = [leaf(0, 0, 5), leaf(0, 1, 0), leaf(1, 0, 7)];
    let update = apply(&records, hasher, packing, &step).unwrap();
    records.change(update.nodes);
    let hexes: Vec<(String, String)> = stored(&records)
        .iter()
        .map(|(path, record)| {
            let record: String = record.iter().map(|byte| format!("{byte:02x}")).collect();
            (path.to_string(), record)
        })
        .collect();
    let stem = "00".repeat(31);
    assert_eq!(hexes.len(), 3, "{hexes:?}");
    assert!(hexes[0].1.starts_with("0403000700"), "{hexes:?}");
    assert!(hexes[1].1.starts_with(&format!("0c000300ff{stem}")));
    assert!(
        hexes[1]
            .1
            .ends_with(&format!("0e{}000107", "01".repeat(30)))
    );
    assert_eq!(
        hexes[2],
        (format!("{stem}00/252"), "0c000e01050e00".to_owned())
    );
}

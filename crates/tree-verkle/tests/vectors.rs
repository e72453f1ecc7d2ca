//! Published roots. testdata/roots.json and the files of ../shared/vectors name their sources.

use crate::support::{COMMITTER, change, csv, unhex, vectors, word};
use arbor_tree_verkle::{LeafRecord, MemoryTree, Record, Settings};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

static ROOTS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../testdata/roots.json")).expect("JSON"));

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn list(value: &Value) -> &[Value] {
    let list = value.as_array().expect("a list");
    assert!(!list.is_empty());
    list
}

fn entries(object: &Value) -> Vec<([u8; 32], Option<[u8; 32]>)> {
    let entries = object.as_object().expect("an object").iter();
    entries
        .map(|(key, value)| (word(key), Some(word(text(value)))))
        .collect()
}

#[test]
fn published_roots_at_once_and_key_by_key() {
    for case in list(&ROOTS["cases"]) {
        let entries = entries(&case["entries"]);
        let (mut at_once, mut by_key) = (MemoryTree::new(), MemoryTree::new());
        let done = change(&mut at_once, &Settings::default(), &entries);
        for entry in &entries {
            change(&mut by_key, &Settings::default(), &[*entry]);
        }
        assert_eq!(at_once, by_key, "{}", case["name"]);
        assert_eq!(
            done.root_hash().to_vec(),
            unhex(text(&case["root_commitment"]))
        );
        let field = done.root.map_to_field().to_le_bytes();
        assert_eq!(field.to_vec(), unhex(text(&case["root_field_le"])));
    }
}

#[test]
fn a_stored_zero_is_not_absence() {
    let case = |name: &str| {
        let cases = list(&ROOTS["cases"]).iter();
        cases
            .clone()
            .find(|case| case["name"] == name)
            .expect("the case")
    };
    let (zero, value) = (case("insert_zero_value"), case("simple_insert"));
    let mut tree = MemoryTree::new();
    change(&mut tree, &Settings::default(), &entries(&zero["entries"]));
    let done = change(&mut tree, &Settings::default(), &entries(&value["entries"]));
    assert_eq!(
        done.root_hash().to_vec(),
        unhex(text(&value["root_commitment"]))
    );
    let detail = &ROOTS["extension_node_detail"];
    let (key, record) = tree
        .records()
        .iter()
        .find(|(key, _)| key.depth() == 1)
        .expect("a leaf");
    let leaf = Record::leaf(key, record).expect("decodes");
    let field = LeafRecord::commitments(&COMMITTER, &[leaf])[0][0]
        .map_to_field()
        .to_le_bytes();
    assert_eq!(field.to_vec(), unhex(text(&detail["C1_field_le"])));
}

#[test]
fn the_root_of_nothing() {
    let done = change(&mut MemoryTree::new(), &Settings::default(), &[]);
    assert_eq!(done.root_hash().to_vec(), unhex(text(&ROOTS["empty_root"])));
    assert!(done.nodes.is_empty());
}

#[test]
fn batches_of_pseudo_random_keys() {
    let vectors = &ROOTS["prng_batches"];
    let output = |i: u64| -> [u8; 32] {
        let hash = Sha256::new()
            .chain_update(i.to_le_bytes())
            .chain_update([0; 32]);
        hash.finalize().into()
    };
    for (i, expected) in list(&vectors["first_outputs"]).iter().enumerate() {
        assert_eq!(output(i as u64), word(text(expected)));
    }
    let mut tree = MemoryTree::new();
    for (batch, expected) in (0u64..).zip(list(&vectors["root_field_le_after_100_200_300"])) {
        let batch = 100 * batch..100 * (batch + 1);
        let changes: Vec<_> = batch.map(output).map(|key| (key, Some(key))).collect();
        let done = change(&mut tree, &Settings::default(), &changes);
        assert_eq!(done.root.map_to_field().to_le_bytes(), word(text(expected)));
    }
}

#[test]
fn a_sequence_of_inserts_and_updates() {
    let vectors = &ROOTS["mutations"];
    let mut tree = MemoryTree::new();
    let mut root = [0; 32];
    for mutation in list(&vectors["mutations"]) {
        let bytes = unhex(text(&mutation["value"]));
        let mut value = [0; 32];
        // The published numbers are padded at the end.
        value[..bytes.len()].copy_from_slice(&bytes);
        let key = word(text(&mutation["key"]));
        root = change(&mut tree, &Settings::default(), &[(key, Some(value))]).root_hash();
    }
    assert_eq!(root, word(text(&vectors["expectedRootHash"])));
}

#[test]
fn states_of_the_testnets() {
    let Some(folder) = vectors("states_of_the_testnets", "kaustinen7_besu") else {
        return;
    };
    let roots = ROOTS["csv_genesis_roots_commitment"]
        .as_object()
        .expect("roots");
    assert_eq!(roots.len(), 3);
    for (file, root) in roots {
        let mut tree = MemoryTree::new();
        let done = change(&mut tree, &Settings::default(), &csv(&folder.join(file)));
        assert_eq!(done.root_hash().to_vec(), unhex(text(root)), "{file}");
        if file != "gen-devnet-7.csv" {
            continue;
        }
        for (block, root) in (1..).zip(list(
            &ROOTS["devnet7_cumulative_roots_after_block_csv_1_to_4"],
        )) {
            let file = format!("devnet-7-block-{block}.csv");
            let done = change(&mut tree, &Settings::default(), &csv(&folder.join(&file)));
            assert_eq!(done.root_hash().to_vec(), unhex(text(root)), "{file}");
        }
    }
}

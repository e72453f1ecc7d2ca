//! What the tests share.
#![allow(unreachable_pub, reason = "each test file uses some of it")]

use arbor_ipa::Committer;
use arbor_tree_verkle::{
    Half, LeafRecord, MemoryTree, NodeKey, Record, Settings, Stem, StemUpdate, TreeUpdate, Value,
    ValueChange, apply,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Small tables, to be quick; what they compute does not depend on their sizes.
pub static COMMITTER: LazyLock<Committer> = LazyLock::new(|| Committer::within(6_000_000));

pub fn key(bytes: [u8; 32]) -> (Stem, u8) {
    let mut stem = [0; 31];
    stem.copy_from_slice(&bytes[..31]);
    (stem, bytes[31])
}

pub fn join(stem: &Stem, suffix: u8) -> [u8; 32] {
    let mut key = [suffix; 32];
    key[..31].copy_from_slice(stem);
    key
}

/// Updates that write these values (later ones win), or remove where there is none, with the old values that the tree has.
pub fn updates(tree: &MemoryTree, changes: &[([u8; 32], Option<Value>)]) -> Vec<StemUpdate> {
    let changes: BTreeMap<(Stem, u8), Option<Value>> = changes
        .iter()
        .map(|(bytes, value)| (key(*bytes), *value))
        .collect();
    let mut updates: Vec<StemUpdate> = Vec::new();
    for ((stem, suffix), new) in changes {
        let old = tree.value(&stem, suffix);
        let change = ValueChange { suffix, old, new };
        match updates.last_mut() {
            Some(last) if last.stem == stem => last.changes.push(change),
            _ => updates.push(StemUpdate {
                stem,
                changes: vec![change],
            }),
        }
    }
    updates
}

/// Applies changes to a tree in memory.
pub fn change(
    tree: &mut MemoryTree,
    settings: &Settings,
    changes: &[([u8; 32], Option<Value>)],
) -> TreeUpdate {
    let updates = updates(tree, changes);
    let done = apply(tree, &COMMITTER, &updates, settings).expect("applies");
    store(tree, &updates, &done);
    done
}

/// Makes an update's result the tree's state.
pub fn store(tree: &mut MemoryTree, updates: &[StemUpdate], done: &TreeUpdate) {
    tree.change_nodes(&done.nodes);
    for update in updates {
        for change in &update.changes {
            tree.set_value(update.stem, change.suffix, change.new);
        }
    }
}

/// All records by place.
pub fn records(tree: &MemoryTree) -> BTreeMap<NodeKey, Vec<u8>> {
    let records = tree.records().iter();
    records
        .map(|(key, record)| (*key, record.to_vec()))
        .collect()
}

/// What records say, whichever leaves have values in place of points: that depends on what was known when they were written.
pub fn said(records: BTreeMap<NodeKey, Vec<u8>>) -> BTreeMap<NodeKey, Record> {
    let said = |key: &NodeKey, record: &[u8]| {
        let mut record = Record::decode(key, record).expect("a record");
        if let Record::Leaf(leaf) = &mut record {
            let points = LeafRecord::commitments(&COMMITTER, &[*leaf]);
            leaf.halves = points[0].map(Half::Point);
        }
        record
    };
    let records = records.into_iter();
    records
        .map(|(key, record)| (key, said(&key, &record)))
        .collect()
}

/// A file or folder of the vectors; none, after recording that the test is skipped, if it is not there.
pub fn vectors(test: &str, name: &str) -> Option<PathBuf> {
    arbor_testdata::find(test, &format!("vectors/{name}"))
}

pub fn unhex(text: &str) -> Vec<u8> {
    hex::decode(text.trim_start_matches("0x")).expect("hexadecimal")
}

pub fn word(text: &str) -> [u8; 32] {
    unhex(text).try_into().expect("32 bytes")
}

/// Keys and values, one pair a line.
pub fn csv(path: &Path) -> Vec<([u8; 32], Option<[u8; 32]>)> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let pair = |line: &str| {
        let mut fields = line.split(',').map(|field| word(field.trim()));
        (
            fields.next().expect("a key"),
            Some(fields.next().expect("a value")),
        )
    };
    lines.map(pair).collect()
}

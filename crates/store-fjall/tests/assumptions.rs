//! What this crate assumes of fjall and lsm-tree: the list in ASSUMPTIONS.md, which every failure prints.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use arbor_store::{Store, Table, Write};
use arbor_store_fjall::{FjallStore, Options};

const LIST: &str = include_str!("../ASSUMPTIONS.md");

/// The versions whose source was read for the list.
const READ: [(&str, &str); 3] = [
    ("fjall", "3.1.13"),
    ("lsm-tree", "3.1.10"),
    ("sfa", "1.0.0"),
];

/// All kinds of files in a database, with `N` in place of numbers.
const FILES: [&str; 7] = [
    "N.jnl",
    "arbor.lock",
    "keyspaces/N/current",
    "keyspaces/N/tables/N",
    "keyspaces/N/vN",
    "lock",
    "version",
];

/// The versions of a package in the workspace's lock file.
fn locked(package: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    let lock = fs::read_to_string(path).expect("the lock file");
    let name = format!("name = \"{package}\"\nversion = \"");
    let versions = lock.match_indices(&name).map(|(begin, _)| {
        let rest = &lock[begin + name.len()..];
        rest.split('"').next().unwrap_or_default().to_owned()
    });
    versions.collect()
}

#[test]
fn versions_are_those_whose_source_was_read() {
    for (package, read) in READ {
        assert_eq!(
            locked(package),
            [read],
            "another version of {package}: check each assumption in its source, then raise the version here.\n\n{LIST}"
        );
    }
}

fn add_files(folder: &Path, below: &str, kinds: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("a name in ASCII");
        let mut kind = String::new();
        for letter in name.chars() {
            match letter.is_ascii_digit() {
                true if kind.ends_with('N') => {}
                true => kind.push('N'),
                false => kind.push(letter),
            }
        }
        let kind = format!("{below}{kind}");
        match entry.path().is_dir() {
            true => add_files(&entry.path(), &format!("{kind}/"), kinds),
            false => drop(kinds.insert(kind)),
        }
    }
}

#[test]
fn a_database_has_no_other_kinds_of_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        memtable_bytes: 64 << 10,
        ..Options::default()
    };
    let mut kinds = BTreeSet::new();
    for round in 0..3u32 {
        let store = FjallStore::open(folder.path(), &options).expect("opened");
        let key = |number: u32| (number + round * 500).to_be_bytes();
        let mut many = (0..2_000u32).map(|number| Write::put(Table(1), &key(number), &[7; 100]));
        store.ingest(&mut many).expect("ingested");
        for number in 0..2_000u32 {
            let write = Write::put(Table(2), &key(number), &[8; 100]);
            store.write(&[write], number % 500 == 0).expect("written");
        }
        store.compact().expect("merged");
        add_files(folder.path(), "", &mut kinds);
        drop(store);
        add_files(folder.path(), "", &mut kinds);
    }
    let known: BTreeSet<String> = FILES.iter().map(ToString::to_string).collect();
    let new: Vec<_> = kinds.difference(&known).collect();
    assert!(
        new.is_empty(),
        "new kinds of files: {new:?}: readers and checks of contents do not know them.\n\n{LIST}"
    );
    // A list that names what is never there would not notice a change.
    for kind in [
        "N.jnl",
        "keyspaces/N/current",
        "keyspaces/N/tables/N",
        "keyspaces/N/vN",
        "version",
    ] {
        assert!(kinds.contains(kind), "no {kind} in {kinds:?}\n\n{LIST}");
    }
}

#[test]
fn every_assumption_has_a_test() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut sources = String::new();
    for entry in fs::read_dir(tests).expect("a folder") {
        sources += &fs::read_to_string(entry.expect("an entry").path()).expect("a test");
    }
    let rows = LIST.lines().filter(|line| line.starts_with("| "));
    let mut count = 0;
    for row in rows.skip(1) {
        let cells: Vec<&str> = row.split('|').collect();
        let tests: Vec<&str> = cells[3].split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "no test: {row}");
        for test in tests {
            let wanted = format!("fn {test}()");
            assert!(sources.contains(&wanted), "no test {test}\n\n{LIST}");
        }
        count += 1;
    }
    assert!(count >= 10, "{count} rows");
}

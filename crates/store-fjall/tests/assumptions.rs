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

/// fjall itself, with one tree of ours.
fn raw(folder: &Path, workers: usize) -> (fjall::Database, fjall::Keyspace) {
    let database = fjall::Database::builder(folder);
    let database = database.worker_threads_unchecked(workers).open();
    let database = database.expect("opened");
    let tree = database.keyspace("tables", Default::default);
    (database, tree.expect("made"))
}

/// Opens a copy of tree 0, with one more file among its tables, by lsm-tree alone.
fn opened_copy_of_tree_0(database: &Path) -> (tempfile::TempDir, lsm_tree::AnyTree) {
    let copy = tempfile::tempdir().expect("a folder");
    let tables = copy.path().join("tables");
    fs::create_dir(&tables).expect("made");
    let names = database.join("keyspaces/0");
    for (from, to) in [
        (names.clone(), copy.path()),
        (names.join("tables"), &*tables),
    ] {
        for entry in fs::read_dir(from).expect("a folder") {
            let entry = entry.expect("an entry").path();
            if entry.is_file() {
                let name = entry.file_name().expect("a name");
                fs::copy(&entry, to.join(name)).expect("copied");
            }
        }
    }
    fs::write(tables.join("99"), b"nobody names it").expect("written");
    let numbers = lsm_tree::SequenceNumberCounter::default;
    let config = lsm_tree::Config::new(copy.path(), numbers(), numbers());
    let tree = config
        .open()
        .unwrap_or_else(|error| panic!("{error}\n\n{LIST}"));
    (copy, tree)
}

#[test]
fn tree_0_names_the_others_by_number_and_lsm_tree_deletes_what_is_not_named() {
    use lsm_tree::{AbstractTree, Guard};
    let folder = tempfile::tempdir().expect("a folder");
    drop(FjallStore::open(folder.path(), &Options::default()).expect("made"));
    let (copy, tree) = opened_copy_of_tree_0(folder.path());
    let keys = tree.prefix("n", lsm_tree::SeqNo::MAX, None);
    let keys: Vec<Vec<u8>> = keys.map(|key| key.key().expect("read").to_vec()).collect();
    let wanted = [1u64, 2].map(|number| [b"n", &number.to_be_bytes()[..]].concat());
    assert_eq!(keys, wanted, "{LIST}");
    let left = copy.path().join("tables/99").exists();
    assert!(!left, "a file that no version names is left\n\n{LIST}");
}

#[test]
fn a_mark_has_four_bytes_and_a_journal_begins_above_zero() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = FjallStore::open(folder.path(), &Options::default()).expect("made");
    let mark = fs::read(folder.path().join("version")).expect("the mark");
    assert_eq!(mark.len(), 4, "{mark:?}\n\n{LIST}");
    assert!(mark.iter().any(|byte| *byte != 0), "{mark:?}\n\n{LIST}");
    let write = Write::put(Table(1), b"key", b"value");
    store.write(&[write], true).expect("written");
    drop(store);
    let journal = fs::read(folder.path().join("0.jnl")).expect("the journal");
    assert!(journal[0] > 0, "{LIST}");
}

#[cfg(unix)]
#[test]
fn an_ingestion_makes_current_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let mode = || {
        let current = folder.path().join("keyspaces/1/current");
        let found = fs::metadata(current).expect("there").permissions();
        found.mode() & 0o777
    };
    let (database, tree) = raw(folder.path(), 1);
    let mut ingestion = tree.start_ingestion().expect("begun");
    ingestion.write("key", "value").expect("written");
    ingestion.finish().expect("ended");
    assert_eq!(mode(), 0o600, "{LIST}");
    drop((database, tree));
    // The store gives it the others' mode.
    drop(FjallStore::open(folder.path(), &Options::default()).expect("opened"));
    let like = fs::metadata(folder.path().join("version")).expect("there");
    assert_eq!(mode(), like.permissions().mode() & 0o777);
}

/// Writes stop at 30 runs in level 0.
#[test]
fn ingestions_do_not_wait_for_merges() {
    let folder = tempfile::tempdir().expect("a folder");
    // Without workers nothing is merged.
    let (_database, tree) = raw(folder.path(), 0);
    for _ in 0..32 {
        let mut ingestion = tree.start_ingestion().expect("begun");
        ingestion.write("key", "value").expect("written");
        ingestion.finish().expect("ended");
    }
    assert_eq!(tree.l0_table_count(), 32, "{LIST}");
}

/// The writes of a batch are not ordered: of several to one key any may stay, so that the store keeps only the last.
#[test]
fn a_batch_has_one_sequence_number() {
    let folder = tempfile::tempdir().expect("a folder");
    let (database, tree) = raw(folder.path(), 1);
    let before = database.seqno();
    let mut batch = database.batch();
    for key in ["a", "b", "c"] {
        batch.insert(&tree, key, "value");
    }
    batch.commit().expect("committed");
    assert_eq!(database.seqno(), before + 1, "{LIST}");
}

/// With debug assertions fjall stops at a record that a full disk cut within its lengths; without them it cuts it off.
#[test]
fn fjall_has_no_debug_assertions_in_any_profile() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let manifest = fs::read_to_string(manifest).expect("the manifest");
    let section = "[profile.dev.package.fjall]\ndebug-assertions = false\n";
    assert!(manifest.contains(section), "{LIST}");
}

#[test]
fn every_assumption_has_a_test() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut sources = String::new();
    for entry in fs::read_dir(tests).expect("a folder") {
        sources += &fs::read_to_string(entry.expect("an entry").path()).expect("a test");
    }
    // What these test is not public: a hook between two steps, and the number of tables.
    sources += include_str!("../src/reader_copy.rs");
    sources += include_str!("../src/store.rs");
    let rows = LIST.lines().filter(|line| line.starts_with("| "));
    let mut count = 0;
    for row in rows.skip(1) {
        let cells: Vec<&str> = row.split('|').collect();
        let tests: Vec<&str> = cells[3].split('`').skip(1).step_by(2).collect();
        let is_excused = cells[3].trim().starts_with("none: ");
        assert!(is_excused || !tests.is_empty(), "no test: {row}");
        for test in tests {
            let wanted = format!("fn {test}()");
            assert!(sources.contains(&wanted), "no test {test}\n\n{LIST}");
        }
        count += 1;
    }
    assert!(count >= 10, "{count} rows");
}

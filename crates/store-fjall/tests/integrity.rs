//! Files that are lost, cut, or do not belong there: refused with their names, before fjall deletes or asserts anything.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use arbor_store::{Reader, Store, StoreError, Table, Write};
use arbor_store_fjall::{FjallStore, Options};

const TABLE: Table = Table(1);

fn open(path: &Path) -> Result<FjallStore, StoreError> {
    FjallStore::open(path, &Options::default())
}

/// A database with values in tables, or in the journal alone.
fn database(in_tables: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path()).expect("open");
    if in_tables {
        let mut writes = (0..2_000u32).map(|n| Write::put(TABLE, &n.to_be_bytes(), &[7; 50]));
        store.ingest(&mut writes).expect("ingest");
    }
    let write = Write::put(TABLE, b"last", b"written");
    store.write(&[write], true).expect("write");
    drop(store);
    folder
}

/// Every file and folder below a folder, but for the lock that is taken first; a journal by its length, since it is long.
fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.append(&mut files(&path));
            found.insert(path, Vec::new());
        } else if path.extension().is_some_and(|kind| kind == "jnl") {
            let length = fs::metadata(&path).expect("a file").len();
            found.insert(path, length.to_be_bytes().to_vec());
        } else if !path.ends_with("arbor.lock") {
            let bytes = fs::read(&path).expect("read");
            found.insert(path, bytes);
        }
    }
    found
}

/// Does something to a database; then it must neither be opened nor read, with an error that has the words, and nothing in it
/// may change.
fn refused(in_tables: bool, harm: impl FnOnce(&Path), words: &[&str]) {
    let folder = database(in_tables);
    let path = folder.path();
    harm(path);
    let before = files(path);
    let errors = [
        open(path).err(),
        FjallStore::open_to_read(path, &Options::default()).err(),
    ];
    for error in errors {
        let error = error.unwrap_or_else(|| panic!("{words:?}: opened"));
        let text = error.to_string();
        for word in words.iter().chain([&path.to_str().expect("a name")]) {
            assert!(text.contains(word), "'{word}' is not in: {text}");
        }
    }
    assert!(files(path) == before, "{words:?}: the files changed");
}

fn remove(name: &str) -> impl FnOnce(&Path) {
    move |path| {
        let path = path.join(name);
        let removed = match path.is_dir() {
            true => fs::remove_dir_all(path),
            false => fs::remove_file(path),
        };
        removed.expect("removed");
    }
}

/// A table of the values' tree.
fn table(path: &Path) -> PathBuf {
    let tables = fs::read_dir(path.join("keyspaces/1/tables")).expect("tables");
    let tables = tables.map(|table| table.expect("a table").path());
    tables.min().expect("one")
}

/// fjall takes a tree without `current` for one that was being made, and deleted it with all its tables.
#[test]
fn a_tree_that_lost_its_current_is_not_deleted() {
    for in_tables in [true, false] {
        for tree in ["0", "1", "2"] {
            let current = format!("keyspaces/{tree}/current");
            let words = [&format!("keyspaces/{tree} "), "current is not there"];
            refused(in_tables, remove(&current), &words);
        }
        for tree in ["0", "1", "2"] {
            let tree = format!("keyspaces/{tree}");
            let words = [&format!("{tree} "), "this folder", "is not there"];
            refused(in_tables, remove(&tree), &words);
        }
        let words = ["version", "is not there", "keyspaces has data"];
        refused(in_tables, remove("version"), &words);
    }
}

/// fjall deletes trees that tree 0 does not name.
#[test]
fn a_tree_with_data_that_is_not_named_is_not_deleted() {
    let forget = |path: &Path| {
        // Tree 2 is empty: with its files tree 0 names nothing.
        for file in ["current", "v0"] {
            let trees = path.join("keyspaces");
            fs::copy(trees.join("2").join(file), trees.join("0").join(file)).expect("copied");
        }
    };
    let words = ["keyspaces/1 ", "has tables", "keyspaces/0 does not name it"];
    refused(true, forget, &words);
    let words = ["keyspaces/0 ", "names no other folder", "0.jnl has writes"];
    refused(false, forget, &words);
    let empty = |path: &Path| {
        remove("keyspaces")(path);
        fs::create_dir(path.join("keyspaces")).expect("made");
    };
    refused(false, empty, &["keyspaces/0 ", "0.jnl has writes"]);
}

/// Without its journal fjall begins to count at 0 again: a get found what a snapshot and a scan of the same database did not, and new writes
/// lay below old ones.
#[test]
fn a_lost_journal_is_missed() {
    for in_tables in [true, false] {
        refused(in_tables, remove("0.jnl"), &["journal", "is not there"]);
    }
}

#[test]
fn what_a_kill_at_creation_leaves_is_passed_over() {
    let made = tempfile::tempdir().expect("a folder");
    drop(fjall::Database::builder(made.path()).open().expect("made"));
    let zero = made.path().join("keyspaces/0");
    for (kept, next) in [
        (&[][..], None),
        (&["v0"], None),
        (&["v0", "current"], None),
        (&["v0", "current"], Some(&[][..])),
        (&["v0", "current"], Some(&["v0"][..])),
        (&["v0", "current"], Some(&["v0", "current"][..])),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        for file in ["0.jnl", "lock", "version"] {
            fs::copy(made.path().join(file), folder.path().join(file)).expect("copied");
        }
        for (tree, files) in [("0", Some(kept)), ("1", next)] {
            let tree = folder.path().join("keyspaces").join(tree);
            for file in files.unwrap_or(&[]) {
                fs::create_dir_all(tree.join("tables")).expect("made");
                fs::copy(zero.join(file), tree.join(file)).expect("copied");
            }
            if files.is_some() {
                fs::create_dir_all(&tree).expect("made");
            }
        }
        let error = FjallStore::open_to_read(folder.path(), &Options::default()).err();
        assert!(
            matches!(error, Some(StoreError::NotFound { .. })),
            "{error:?}"
        );
        for round in 0..2u8 {
            let store =
                open(folder.path()).unwrap_or_else(|error| panic!("{kept:?} {next:?}: {error}"));
            let there = store.get(TABLE, b"a").expect("get").is_some();
            assert_eq!(there, round > 0);
            let write = Write::put(TABLE, b"a", b"b");
            store.write(&[write], true).expect("write");
        }
    }
}

#[test]
fn what_does_not_belong_there_is_named() {
    let make =
        |name: &'static str| move |path: &Path| fs::create_dir(path.join(name)).expect("made");
    let write =
        |name: &'static str| move |path: &Path| fs::write(path.join(name), b"").expect("written");
    for name in [
        "keyspaces/lost+found",
        "keyspaces/07",
        "keyspaces/0/tables/lost+found",
        "keyspaces/1/tables/99",
        "9.jnl",
    ] {
        refused(true, make(name), &[name, "does not belong there"]);
    }
    for name in [
        "keyspaces/1/tables/foo",
        "keyspaces/1/tables/007",
        "old.jnl",
        "1.JNL",
    ] {
        refused(true, write(name), &[name, "does not belong there"]);
    }
    let in_place_of_a_table = |path: &Path| {
        let table = table(path);
        fs::remove_file(&table).expect("removed");
        fs::create_dir(table).expect("made");
    };
    refused(
        true,
        in_place_of_a_table,
        &["keyspaces/1/tables/", "does not belong there"],
    );
    let in_place_of_tables = |path: &Path| {
        remove("keyspaces/1/tables")(path);
        fs::write(path.join("keyspaces/1/tables"), b"").expect("written");
    };
    refused(
        true,
        in_place_of_tables,
        &["keyspaces/1/tables ", "does not belong there"],
    );
    let in_place_of_a_file = |path: &Path| {
        remove("keyspaces/1/current")(path);
        fs::create_dir(path.join("keyspaces/1/current")).expect("made");
    };
    refused(true, in_place_of_a_file, &["keyspaces/1/current"]);
}

#[test]
fn what_fjall_passes_over_is_left_there() {
    let folder = database(true);
    let path = folder.path();
    let others = [
        ".DS_Store",
        "notes.txt",
        "keyspaces/.DS_Store",
        "keyspaces/1/notes.txt",
        "keyspaces/1/tables/.DS_Store",
        "keyspaces/1/tables/._0",
    ];
    for other in others {
        fs::write(path.join(other), b"").expect("written");
    }
    fs::create_dir(path.join("lost+found")).expect("made");
    drop(open(path).expect("open"));
    drop(FjallStore::open_to_read(path, &Options::default()).expect("read"));
    for other in others.iter().chain(&["lost+found"]) {
        assert!(path.join(other).exists(), "{other}");
    }
}

/// fjall said which it was neither in its error nor in what it logged.
#[test]
fn a_table_that_is_lost_empty_or_cut_is_named() {
    let cut = |length: fn(u64) -> u64| {
        move |path: &Path| {
            let file = fs::File::options()
                .write(true)
                .open(table(path))
                .expect("opened");
            let whole = file.metadata().expect("a file").len();
            file.set_len(length(whole)).expect("cut");
        }
    };
    let name = "keyspaces/1/tables/0 ";
    refused(
        true,
        |path| fs::remove_file(table(path)).expect("removed"),
        &[name, "is not there"],
    );
    refused(true, cut(|_| 0), &[name, "is empty"]);
    for length in [
        |_| 10,
        |whole| whole / 2,
        |whole| whole - 1,
        |whole: u64| whole + 1,
    ] {
        refused(
            true,
            cut(length),
            &[name, "cut short, or its end is damaged"],
        );
    }
}

#[test]
fn a_lost_lock_file_is_made_anew() {
    let folder = database(true);
    fs::remove_file(folder.path().join("lock")).expect("removed");
    let store = open(folder.path()).expect("open");
    assert!(store.get(TABLE, b"last").expect("get").is_some());
    assert!(folder.path().join("lock").exists());
}

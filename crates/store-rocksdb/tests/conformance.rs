//! The RocksDB store against the suite that all stores pass, and its opening.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arbor_store::conformance::{Files, Subject, run};
use arbor_store::{Reader, Store, StoreError, Table, Write};
use arbor_store_rocksdb::{Options, RocksStore};

fn open(path: &Path) -> Result<RocksStore, StoreError> {
    RocksStore::open(path, &Options::default())
}

#[test]
fn conforms() {
    let folder = tempfile::tempdir().expect("a folder");
    run(&Subject {
        open: &|name| Arc::new(open(&folder.path().join(name)).expect("open")),
        files: Files::Kept,
    });
}

#[test]
fn a_second_handle_is_refused_until_the_first_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path()).expect("open");
    let error = open(folder.path()).err().expect("locked");
    assert!(matches!(error, StoreError::AlreadyOpen { .. }), "{error}");
    drop(store);
    open(folder.path()).expect("free again");
}

#[test]
fn a_reader_beside_a_writer_stays_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let read = || RocksStore::open_to_read(folder.path(), &Options::default());
    assert!(matches!(read().err(), Some(StoreError::NotFound { .. })));
    let store = open(folder.path()).expect("open");
    let fill = |value: u8| {
        let mut writes =
            (0..9_000u32).map(|n| Write::put(Table(1), &n.to_be_bytes(), &[value; 50]));
        store.ingest(&mut writes).expect("ingest");
        let writes = [
            Write::put(Table(2), b"a", &[value]),
            Write::put(Table(2), &[value], b""),
        ];
        store.write(&writes, true).expect("write");
    };
    fill(7);
    let reader = read().expect("open beside the writer");
    fill(8);
    store.compact().expect("compact");
    drop(store);
    let second = read().expect("open without a writer");
    for (reader, value) in [(reader, 7), (second, 8)] {
        let found = reader.get(Table(2), b"a").expect("get");
        assert_eq!(found.as_deref(), Some(&[value][..]));
        let scan = reader.scan(Table(1), b"", b"").expect("scan");
        let values: Vec<_> = scan.map(|item| item.expect("goes on").1).collect();
        assert_eq!(values.len(), 9_000);
        assert!(values.iter().all(|found| **found == [value; 50]));
        assert_eq!(
            reader.get(Table(2), &[8]).expect("get").is_some(),
            value == 8
        );
    }
}

/// The database that a process of this test is to read, and wait.
const READER: &str = "ARBOR_ROCKSDB_READER";

/// A reader that was killed left its folder in the temporary directory for good.
#[test]
fn what_a_killed_reader_leaves_is_removed_by_the_next() {
    const NAME: &str = "what_a_killed_reader_leaves_is_removed_by_the_next";
    if let Ok(path) = std::env::var(READER) {
        let _reader =
            RocksStore::open_to_read(Path::new(&path), &Options::default()).expect("open");
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (path, temporary) = (folder.path().join("db"), folder.path().join("tmp"));
    drop(open(&path).expect("open"));
    fs::create_dir(&temporary).expect("made");
    let start = || {
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command.args(["--exact", NAME]).stdout(Stdio::null());
        command.env(READER, &path).env("TMPDIR", &temporary);
        command.spawn().expect("a process")
    };
    // Those in which RocksDB has begun its log, which is after they were locked.
    let left = || {
        let folders = fs::read_dir(&temporary).expect("a folder");
        let folders = folders.map(|entry| entry.expect("an entry").path().join("files"));
        let mut folders: Vec<_> = folders
            .filter(|folder| folder.join("LOG").exists())
            .collect();
        folders.sort();
        folders
    };
    let wait_for = |is_so: &dyn Fn(&[PathBuf]) -> bool| {
        let begin = Instant::now();
        while !is_so(&left()) {
            assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", left());
            std::thread::sleep(Duration::from_millis(5));
        }
        left()
    };
    let mut killed = start();
    let of_killed = wait_for(&|left| left.len() == 1);
    let mut living = start();
    let both = wait_for(&|left| left.len() == 2);
    killed.kill().and_then(|()| killed.wait()).expect("killed");
    assert_eq!(left(), both, "what a killed reader leaves");
    let mut next = start();
    let now = wait_for(&|left| left.len() == 2 && left != both);
    assert!(!now.contains(&of_killed[0]), "{now:?}");
    assert_eq!(
        now.iter().filter(|folder| both.contains(folder)).count(),
        1,
        "{now:?}"
    );
    for reader in [&mut living, &mut next] {
        reader.kill().and_then(|()| reader.wait()).expect("killed");
    }
}

#[test]
fn nothing_is_created_unless_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("absent");
    let options = Options {
        create: false,
        ..Options::default()
    };
    let error = RocksStore::open(&path, &options).err().expect("absent");
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    assert!(!path.exists());
    drop(open(&path).expect("create"));
    RocksStore::open(&path, &options).expect("there now");
}

#[test]
fn files_of_an_interrupted_ingestion_are_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = Table(1);
    open(folder.path())
        .expect("open")
        .ingest(&mut std::iter::once(Write::put(table, b"a", b"1")))
        .expect("ingest");
    let left = folder.path().join("ingest/0.sst");
    std::fs::write(&left, b"half a file").expect("write");
    let store = open(folder.path()).expect("open");
    assert!(!left.exists());
    assert_eq!(
        store.get(table, b"a").expect("get").as_deref(),
        Some(&b"1"[..])
    );
}

#[test]
fn a_damaged_table_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path()).expect("open");
    let mut writes = (0..20_000u32).map(|n| Write::put(Table(1), &n.to_be_bytes(), &[7; 50]));
    store.ingest(&mut writes).expect("ingest");
    drop(store);
    let table = std::fs::read_dir(folder.path())
        .expect("list")
        .map(|entry| entry.expect("entry").path())
        .find(|path| path.extension().is_some_and(|extension| extension == "sst"))
        .expect("a table");
    let mut bytes = std::fs::read(&table).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&table, bytes).expect("write");
    let store = open(folder.path()).expect("open");
    let error = store
        .scan(Table(1), b"", b"")
        .expect("scan")
        .find_map(Result::err)
        .expect("the damage is found");
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

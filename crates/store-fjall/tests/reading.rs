//! Reading a database that another process writes, or that this one may not write.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use arbor_store::{Reader, Store, StoreError, Table, Write};
use arbor_store_fjall::{FjallStore, Options};

/// Merges come often, and the memtable is flushed often.
fn options() -> Options {
    Options {
        level0_files: 2,
        memtable_bytes: 64 << 10,
        ..Options::default()
    }
}

fn open_to_read(path: &Path) -> Result<Box<dyn Reader>, StoreError> {
    FjallStore::open_to_read(path, &options())
}

/// Every file below a folder with its length and the time of its last change.
fn files(path: &Path) -> BTreeMap<PathBuf, (u64, SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path).expect("a folder") {
        let entry = entry.expect("an entry");
        let meta = entry.metadata().expect("metadata");
        if meta.is_dir() {
            found.append(&mut files(&entry.path()));
        }
        let changed = meta.modified().expect("a time");
        found.insert(entry.path(), (meta.len(), changed));
    }
    found
}

#[test]
fn a_reader_sees_what_was_written_and_touches_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("db");
    let store = FjallStore::open(&path, &options()).expect("open");
    let mut writes = (0..9_000u32).map(|n| Write::put(Table(1), &n.to_be_bytes(), &[7; 50]));
    store.ingest(&mut writes).expect("ingest");
    let journaled = [
        Write::put(Table(2), b"a", b"1"),
        Write::delete(Table(1), &[0; 4]),
    ];
    store.write(&journaled, true).expect("write");

    // A writer's thread may still be tidying up, so what readers leave untouched is seen without one.
    drop(store);
    let before = files(&path);
    for _ in 0..2 {
        drop(open_to_read(&path).expect("open alone"));
    }
    assert_eq!(files(&path), before);

    let store = FjallStore::open(&path, &options()).expect("open again");
    let reader = open_to_read(&path).expect("open beside the writer");
    let second = open_to_read(&path).expect("open beside the reader");
    store
        .write(&[Write::put(Table(2), b"b", b"2")], true)
        .expect("write");
    let mut writes = (0..9_000u32).map(|n| Write::put(Table(1), &n.to_be_bytes(), &[8; 50]));
    store.ingest(&mut writes).expect("ingest");
    store.compact().expect("compact");
    drop(store);
    for reader in [reader, second] {
        assert_eq!(
            reader.get(Table(2), b"a").expect("get").as_deref(),
            Some(&b"1"[..])
        );
        assert_eq!(reader.get(Table(2), b"b").expect("get"), None);
        assert_eq!(reader.get(Table(1), &[0; 4]).expect("get"), None);
        let scan = reader.scan(Table(1), b"", b"").expect("scan");
        let values: Vec<_> = scan.map(|item| item.expect("goes on").1).collect();
        assert_eq!(values.len(), 8_999);
        assert!(values.iter().all(|value| **value == [7; 50]));
    }
    let closed = open_to_read(&path).expect("open without a writer");
    assert_eq!(
        closed.get(Table(2), b"b").expect("get").as_deref(),
        Some(&b"2"[..])
    );
}

#[test]
fn what_is_no_database_is_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    for path in [folder.path().join("absent"), folder.path().to_path_buf()] {
        let error = open_to_read(&path).err().expect("absent");
        assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    }
    // A creation that was cut short.
    fs::write(folder.path().join("version"), b"").expect("write");
    let error = open_to_read(folder.path()).err().expect("absent");
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
}

#[test]
fn a_missing_table_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = FjallStore::open(folder.path(), &options()).expect("open");
    let mut writes = (0..9_000u32).map(|n| Write::put(Table(1), &n.to_be_bytes(), &[7; 50]));
    store.ingest(&mut writes).expect("ingest");
    drop(store);
    let tables = folder.path().join("keyspaces/1/tables");
    let table = fs::read_dir(&tables).expect("tables").next().expect("one");
    fs::remove_file(table.expect("an entry").path()).expect("remove");
    let error = open_to_read(folder.path()).err().expect("damaged");
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

/// Where the test process runs itself again as a writer, it finds the folder here.
const WRITER: &str = "ARBOR_TEST_WRITER_BESIDE";

/// The values of a round: some from an ingestion, some from a write through the journal.
fn write_for_ever(path: &Path) -> ! {
    let store = FjallStore::open(path, &options()).expect("open");
    for round in 1..=u32::MAX {
        let content = round.to_be_bytes();
        let mut writes = (0..2_000u32).map(|n| Write::put(Table(1), &n.to_be_bytes(), &content));
        store.ingest(&mut writes).expect("ingest");
        let writes: Vec<_> = (0..100u32)
            .map(|n| Write::put(Table(2), &n.to_be_bytes(), &content))
            .collect();
        store.write(&writes, false).expect("write");
    }
    unreachable!("the parent kills this process")
}

/// A process that is killed however the test ends.
struct Writer(Child);

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The one value that a table holds everywhere, and how many keys have it.
fn the_round(reader: &dyn Reader, table: Table) -> (u32, usize) {
    let scan = reader.scan(table, b"", b"").expect("scan");
    let values: Vec<_> = scan.map(|item| item.expect("goes on").1).collect();
    let Some(first) = values.first() else {
        return (0, 0);
    };
    assert!(values.iter().all(|value| value == first), "torn");
    (
        u32::from_be_bytes(first[..].try_into().expect("4 bytes")),
        values.len(),
    )
}

/// Beside a writer that ingests, writes, flushes and merges without pause, every reader sees a prefix of its
/// calls: each call whole, none without those before it. A reader held on through all that stays as it was.
#[test]
fn readers_beside_a_busy_writer_see_whole_calls() {
    if let Ok(path) = std::env::var(WRITER) {
        write_for_ever(Path::new(&path));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("db");
    let child = Command::new(std::env::current_exe().expect("this test"))
        .args([
            "--exact",
            "reading::readers_beside_a_busy_writer_see_whole_calls",
        ])
        .env(WRITER, &path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _writer = Writer(child.expect("a second process"));
    let start = Instant::now();
    let mut rounds = vec![0];
    let mut held: Option<(u32, Box<dyn Reader>)> = None;
    while rounds.len() < 40 || rounds[rounds.len() - 1] < 30 {
        assert!(start.elapsed() < Duration::from_secs(60), "{rounds:?}");
        let reader = match open_to_read(&path) {
            Ok(reader) => reader,
            Err(StoreError::NotFound { .. }) if rounds.len() == 1 => continue,
            Err(error) => panic!("{error}"),
        };
        let (ingested, keys) = the_round(&*reader, Table(1));
        assert!(keys == 2_000 || ingested == 0, "{keys} keys");
        let (written, keys) = the_round(&*reader, Table(2));
        assert!(keys == 100 || written == 0, "{keys} keys");
        assert!(
            written == ingested || written + 1 == ingested,
            "{written} {ingested}"
        );
        assert!(rounds.last() <= Some(&ingested), "{rounds:?} {ingested}");
        rounds.push(ingested);
        let (round, old) = held.get_or_insert((ingested, reader));
        assert_eq!(the_round(&**old, Table(1)).0, *round);
    }
}

/// Where the test process runs itself again as a reader, it finds the folder here.
const READER: &str = "ARBOR_TEST_READER";
/// Where such a reader waits, opened, until this file is there.
const GO_ON: &str = "ARBOR_TEST_GO_ON";

fn read_once(path: &Path) {
    let reader = open_to_read(path).expect("open");
    if let Ok(go_on) = std::env::var(GO_ON) {
        let begin = Instant::now();
        while !Path::new(&go_on).exists() && begin.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let scan = reader.scan(Table(1), b"", b"").expect("scan");
    let read: Vec<_> = scan.map(|item| item.expect("goes on")).collect();
    assert_eq!(read.len(), 9_000);
}

/// A reader that was killed left its folder, tens of megabytes, in the temporary directory for good.
#[test]
fn what_a_killed_reader_leaves_is_removed_by_the_next() {
    if let Ok(path) = std::env::var(READER) {
        return read_once(Path::new(&path));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (path, temporary) = (folder.path().join("db"), folder.path().join("tmp"));
    let go_on = folder.path().join("go on");
    let store = FjallStore::open(&path, &options()).expect("open");
    let mut writes = (0..9_000u32).map(|n| Write::put(Table(1), &n.to_be_bytes(), &[7; 50]));
    store.ingest(&mut writes).expect("ingest");
    drop(store);
    fs::create_dir_all(&temporary).expect("made");
    let start = |waits: bool| {
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command
            .args([
                "--exact",
                "reading::what_a_killed_reader_leaves_is_removed_by_the_next",
            ])
            .env(READER, &path)
            .env("TMPDIR", &temporary)
            .stdout(Stdio::null());
        if waits {
            command.env(GO_ON, &go_on);
        }
        Writer(command.spawn().expect("a process"))
    };
    let left = || {
        let entries = fs::read_dir(&temporary).expect("a folder");
        entries
            .map(|entry| entry.expect("an entry").path())
            .collect::<Vec<_>>()
    };
    // The last thing that is taken before the copy is opened.
    let taken = |folders: &[PathBuf]| {
        folders
            .iter()
            .filter(|folder| folder.join("files/keyspaces/2/current").exists())
            .count()
    };
    let wait_for = |readers: usize| {
        let begin = Instant::now();
        while taken(&left()) < readers {
            assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", left());
            std::thread::sleep(Duration::from_millis(1));
        }
        left()
    };
    let mut living = start(true);
    let before = wait_for(1);
    let mut killed = start(true);
    assert_eq!(wait_for(2).len(), 2);
    killed.0.kill().expect("killed");
    killed.0.wait().expect("ended");
    assert_eq!(left().len(), 2, "what a killed reader leaves");
    #[cfg(unix)]
    for folder in left() {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&folder).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "others may read {}", folder.display());
    }
    // One that was killed before its folder had its lasting name.
    fs::create_dir(temporary.join("arbor-making-killed")).expect("made");
    // A folder without the mark is nobody's of arbor.
    let other = temporary.join("arbor-reading-ournot");
    fs::create_dir(&other).expect("made");
    fs::write(other.join("0.jnl"), b"").expect("written");
    let mut next = start(false);
    assert!(next.0.wait().expect("ended").success());
    let mut kept = before;
    kept.push(other.clone());
    kept.sort();
    let mut now = left();
    now.sort();
    assert_eq!(now, kept);
    fs::write(&go_on, b"").expect("written");
    assert!(
        living.0.wait().expect("ended").success(),
        "the living reader reads on"
    );
    assert_eq!(left(), [other]);
}

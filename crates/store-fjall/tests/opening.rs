//! Opening: locks, absent and damaged databases, crashes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use arbor_store::{Reader, Store, StoreError, Table, Write};
use arbor_store_fjall::{FjallStore, Options};

const TABLE: Table = Table(1);

fn open(path: &Path) -> Result<FjallStore, StoreError> {
    FjallStore::open(path, &Options::default())
}

/// As [`open`], while tests beside this one start processes, which hold a copy of the lock until they are on their way.
fn open_alone(path: &Path) -> Result<FjallStore, StoreError> {
    let begin = Instant::now();
    loop {
        match open(path) {
            Err(StoreError::AlreadyOpen { .. }) if begin.elapsed() < Duration::from_secs(5) => {
                thread::sleep(Duration::from_millis(1));
            }
            opened => return opened,
        }
    }
}

fn fill(store: &FjallStore) {
    let mut writes = (0..20_000u32).map(|n| Write::put(TABLE, &n.to_be_bytes(), &[7; 50]));
    store.ingest(&mut writes).expect("ingest");
}

#[test]
fn a_second_handle_is_refused_until_the_first_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path()).expect("open");
    let error = open(folder.path()).err().expect("locked");
    assert!(matches!(error, StoreError::AlreadyOpen { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains(&folder.path().display().to_string())
    );
    let snapshot = store.snapshot().expect("snapshot");
    drop(store);
    let error = open(folder.path()).err().expect("locked by the snapshot");
    assert!(matches!(error, StoreError::AlreadyOpen { .. }), "{error}");
    drop(snapshot);
    open(folder.path()).expect("free again");
}

#[test]
fn nothing_is_created_unless_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("absent");
    let options = Options {
        create: false,
        ..Options::default()
    };
    let error = FjallStore::open(&path, &options).err().expect("absent");
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    assert!(!path.exists());
    drop(open(&path).expect("create"));
    FjallStore::open(&path, &options).expect("there now");
}

#[test]
fn a_file_in_the_way_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    fs::write(&path, b"not a folder").expect("write");
    let error = open(&path).err().expect("not a folder");
    assert!(error.to_string().contains("file"), "{error}");
}

/// A creation that a full disk has stopped leaves a journal, and perhaps an empty mark; fjall
/// refuses both, and the folder could never be used again.
#[test]
fn an_interrupted_creation_can_be_repeated() {
    for marker in [None, Some("version")] {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("0.jnl"), b"").expect("write");
        if let Some(name) = marker {
            fs::write(folder.path().join(name), b"").expect("write");
        }
        fill(&open(folder.path()).expect("open"));
        let store = open(folder.path()).expect("open");
        assert!(store.get(TABLE, &[0; 4]).expect("get").is_some());
    }
}

/// The mark's bytes may be lost while its length, and the trees that were made after it, are there.
#[test]
fn a_creation_that_lost_its_mark_in_a_power_loss_can_be_repeated() {
    for mark in [None, Some(&[][..]), Some(&[0; 3]), Some(&[0; 4])] {
        let folder = tempfile::tempdir().expect("a folder");
        drop(open(folder.path()).expect("open"));
        set_mark(folder.path(), mark);
        fill(&open(folder.path()).expect("made anew"));
        let store = open(folder.path()).expect("open");
        assert!(store.get(TABLE, &[0; 4]).expect("get").is_some());
    }
}

/// The mark may be kept by a power loss that takes names of trees.
#[test]
fn a_creation_that_lost_trees_in_a_power_loss_can_be_repeated() {
    for lost in [
        "keyspaces",
        "keyspaces/0",
        "keyspaces/1",
        "keyspaces/1/current",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        drop(open(folder.path()).expect("open"));
        let place = folder.path().join(lost);
        match place.is_dir() {
            true => fs::remove_dir_all(place).expect("removed"),
            false => fs::remove_file(place).expect("removed"),
        }
        fill(&open(folder.path()).expect("made anew"));
        let store = open(folder.path()).expect("open");
        assert!(store.get(TABLE, &[0; 4]).expect("get").is_some());
    }
}

#[test]
fn what_lost_its_mark_and_has_data_is_refused_and_kept() {
    type Fill = fn(&FjallStore);
    let in_the_journal: Fill = |store| {
        let write = Write::put(TABLE, &[1], &[2]);
        store.write(&[write], true).expect("written");
    };
    for fill in [fill as Fill, in_the_journal] {
        let folder = tempfile::tempdir().expect("a folder");
        fill(&open(folder.path()).expect("open"));
        let mark = fs::read(folder.path().join("version")).expect("read");
        set_mark(folder.path(), Some(&[0; 4]));
        for _ in 0..2 {
            let error = open(folder.path()).err().expect("refused");
            assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
        }
        set_mark(folder.path(), Some(&mark));
        let store = open(folder.path()).expect("all is there");
        let mut all = store.scan(TABLE, b"", b"").expect("scan");
        assert!(all.next().is_some());
    }
}

fn set_mark(database: &Path, mark: Option<&[u8]>) {
    let path = database.join("version");
    match mark {
        Some(bytes) => fs::write(path, bytes).expect("written"),
        None => fs::remove_file(path).expect("removed"),
    }
}

fn largest_file(path: &Path) -> PathBuf {
    fs::read_dir(path)
        .expect("tables")
        .map(|entry| entry.expect("entry").path())
        .max_by_key(|path| fs::metadata(path).expect("metadata").len())
        .expect("a table")
}

#[test]
fn a_damaged_table_is_an_error_on_reading() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(&open(folder.path()).expect("open"));
    // Keyspace 0 is fjall's own; ours, the first made, is 1.
    let table = largest_file(&folder.path().join("keyspaces/1/tables"));
    let mut bytes = fs::read(&table).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&table, bytes).expect("write");
    let store = open(folder.path()).expect("open");
    let name = table.strip_prefix(folder.path()).expect("in the database");
    let error = store
        .scan(TABLE, b"", b"")
        .expect("scan")
        .find_map(Result::err)
        .expect("the damage is found");
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    let words = format!("a block of its file {} ", name.display());
    assert!(error.to_string().contains(&words), "{error}");
}

#[test]
fn damaged_files_are_errors_on_opening() {
    for (file, content) in [
        ("version", &b"not fjall's"[..]),
        ("keyspaces/1/current", b"short"),
        ("keyspaces/1/current", b""),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        fill(&open(folder.path()).expect("open"));
        fs::write(folder.path().join(file), content).expect("write");
        let error = open(folder.path()).err().expect("damaged");
        assert!(
            error
                .to_string()
                .contains(&folder.path().display().to_string()),
            "{file}: {error}"
        );
    }
}

/// lsm-tree asserts some of what it reads there, and fjall ended the process on that; it believed the rest.
#[test]
fn a_version_file_with_a_damaged_byte_is_an_error_on_opening() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(&open(folder.path()).expect("open"));
    for tree in [0, 1] {
        let tree = folder.path().join(format!("keyspaces/{tree}"));
        let current = fs::read(tree.join("current")).expect("read");
        let version = u64::from_le_bytes(*current.first_chunk().expect("a number"));
        for file in [tree.join("current"), tree.join(format!("v{version}"))] {
            let whole = fs::read(&file).expect("read");
            for place in 0..whole.len() {
                let mut bytes = whole.clone();
                bytes[place] ^= 1 << (place % 8);
                fs::write(&file, bytes).expect("write");
                let mut openings = vec![open_alone(folder.path()).err()];
                // A reader copies the journal's 64 MiB first.
                if place == 0 {
                    let options = Options::default();
                    openings.push(FjallStore::open_to_read(folder.path(), &options).err());
                }
                for error in openings {
                    let error = error.expect("damaged");
                    assert!(
                        matches!(&error, StoreError::Corrupt { path, .. } if *path == tree),
                        "byte {place} of {}: {error}",
                        file.display()
                    );
                }
            }
            fs::write(&file, whole).expect("write");
        }
    }
    drop(open_alone(folder.path()).expect("whole again"));
}

#[test]
fn a_missing_table_is_an_error_on_opening() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(&open(folder.path()).expect("open"));
    fs::remove_file(largest_file(&folder.path().join("keyspaces/1/tables"))).expect("remove");
    let error = open(folder.path()).err().expect("a table is missing");
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

/// Where the test process runs itself again as a writer, it finds the folder here.
const WRITER: &str = "ARBOR_TEST_WRITER";

/// The writer makes this file once it has opened the database.
fn started(path: &Path) -> PathBuf {
    path.with_extension("started")
}

/// Ingests and writes one round after another until it is killed.
fn write_for_ever(path: &Path) -> ! {
    let store = open(path).expect("open");
    fs::write(started(path), b"").expect("tell the parent");
    for round in number(&store, Table(8), b"a") + 1..=u32::MAX {
        let content = round.to_be_bytes();
        let mut writes =
            (0..3_000u32).map(|n| Write::put(Table((n / 1_000) as u8), &n.to_be_bytes(), &content));
        store.ingest(&mut writes).expect("ingest");
        let writes = [
            Write::put(Table(8), b"a", &content),
            Write::put(Table(9), b"b", &content),
        ];
        store.write(&writes, round % 4 == 0).expect("write");
    }
    unreachable!("the parent kills this process")
}

fn start_writer(path: &Path, test: &str) -> Child {
    Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", test])
        .env(WRITER, path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a second process")
}

fn number(store: &FjallStore, table: Table, key: &[u8]) -> u32 {
    let value = store.get(table, key).expect("get");
    value.map_or(0, |value| {
        u32::from_be_bytes(value[..].try_into().expect("4 bytes"))
    })
}

#[test]
fn a_killed_writer_leaves_whole_calls() {
    if let Ok(path) = std::env::var(WRITER) {
        write_for_ever(Path::new(&path));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("db");
    // Three times and, on a machine that others keep busy, until the writers got something done.
    for (kills, milliseconds) in (1..).zip([150, 400, 230].into_iter().cycle()) {
        let mut writer = start_writer(&path, "opening::a_killed_writer_leaves_whole_calls");
        let deadline = Instant::now() + Duration::from_secs(20);
        while !started(&path).exists() {
            assert!(Instant::now() < deadline, "the writer does not start");
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(milliseconds));
        writer.kill().expect("kill");
        writer.wait().expect("wait");
        fs::remove_file(started(&path)).expect("remove");

        let store = open(&path).expect("open after a kill");
        let ingested = number(&store, Table(0), &0u32.to_be_bytes());
        for n in 0..3_000u32 {
            let table = Table((n / 1_000) as u8);
            assert_eq!(number(&store, table, &n.to_be_bytes()), ingested, "key {n}");
        }
        let written = number(&store, Table(8), b"a");
        assert_eq!(number(&store, Table(9), b"b"), written);
        assert!(
            written == ingested || written + 1 == ingested,
            "{written} {ingested}"
        );
        if kills >= 3 && written > 3 {
            break;
        }
        assert!(
            kills < 60,
            "{kills} writers got through {written} rounds only"
        );
    }
}

/// Writes much through the journal, so that memtables are sealed all the time, until it is killed.
fn rotate_for_ever(path: &Path) -> ! {
    let store = FjallStore::open(path, &small()).expect("open");
    fs::write(started(path), b"").expect("tell the parent");
    for round in 0..u32::MAX {
        let key = (round % 4_096).to_be_bytes();
        let writes = [Write::put(TABLE, &key, &[round as u8; 16 << 10])];
        store.write(&writes, round % 64 == 0).expect("write");
    }
    unreachable!("the parent kills this process")
}

fn small() -> Options {
    Options {
        memtable_bytes: 64 << 10,
        level0_files: 4,
        ..Options::default()
    }
}

/// fjall's report 257: after a kill amid sealed memtables, writes to the reopened database wait for ever. `ARBOR_KILLS`
/// says how often to try.
#[test]
fn writes_go_on_after_a_kill_amid_rotations() {
    if let Ok(path) = std::env::var(WRITER) {
        rotate_for_ever(Path::new(&path));
    }
    let kills = std::env::var("ARBOR_KILLS").map_or(4, |kills| kills.parse().expect("a number"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("db");
    for kill in 0..kills {
        let mut writer = start_writer(&path, "opening::writes_go_on_after_a_kill_amid_rotations");
        let deadline = Instant::now() + Duration::from_secs(60);
        while !started(&path).exists() {
            assert!(Instant::now() < deadline, "the writer does not start");
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(100 + 37 * (kill % 17)));
        writer.kill().expect("kill");
        writer.wait().expect("wait");
        fs::remove_file(started(&path)).expect("remove");

        let (done, finished) = std::sync::mpsc::channel();
        let reopened = path.clone();
        thread::spawn(move || {
            let store = FjallStore::open(&reopened, &small()).expect("open after a kill");
            for round in 0..64u32 {
                let writes = [Write::put(TABLE, &round.to_be_bytes(), &[1; 16 << 10])];
                store.write(&writes, round % 8 == 0).expect("write");
            }
            let mut writes = (0..64u32).map(|n| Write::put(TABLE, &n.to_be_bytes(), &[2; 50]));
            store.ingest(&mut writes).expect("ingest");
            drop(store);
            done.send(()).expect("the test waits");
        });
        let finished = finished.recv_timeout(Duration::from_secs(60));
        assert!(finished.is_ok(), "writes are stuck after kill {kill}");
    }
}

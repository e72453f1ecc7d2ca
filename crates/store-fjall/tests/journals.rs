//! The space of the journal comes back with a merge, and nothing is lost with it.

use std::path::Path;

use arbor_store::{Reader, Store, Table, Write};
use arbor_store_fjall::{FjallStore, Options};

const TABLE: Table = Table(1);

fn open(path: &Path) -> FjallStore {
    FjallStore::open(path, &Options::default()).expect("open")
}

fn write(store: &FjallStore, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let write = Write::put(TABLE, &number.to_be_bytes(), &[number as u8; 5_000]);
        store.write(&[write], true).expect("write");
    }
}

fn numbers(store: &dyn Reader) -> Vec<u32> {
    let entries = store.scan(TABLE, b"", b"").expect("scan");
    let numbers = entries.map(|entry| {
        let (key, value) = entry.expect("an entry");
        let number = u32::from_be_bytes((*key).try_into().expect("4 bytes"));
        assert_eq!(*value, [number as u8; 5_000]);
        number
    });
    numbers.collect()
}

fn size(path: &Path) -> u64 {
    arbor_store::occupied_bytes(path).expect("sizes")
}

#[test]
fn a_merge_gives_the_space_of_the_journal_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let store = open(path);
    write(&store, 0..400);
    drop(store);
    let before = size(path);
    let store = open(path);
    store.compact().expect("compact");
    drop(store);
    let after = size(path);
    // The journal had as much as the table has.
    assert!(
        after < 400 * 5_000 * 5 / 4,
        "{after} bytes, {before} before"
    );
    let store = open(path);
    assert_eq!(numbers(&store), (0..400).collect::<Vec<_>>());
    // Later writes lie above those in tables, and come back from the emptied journal.
    write(&store, 399..500);
    let newest = Write::put(TABLE, &7u32.to_be_bytes(), &[7; 5_000]);
    store.write(&[newest], true).expect("write");
    store
        .write(
            &[Write {
                table: TABLE,
                key: 3u32.to_be_bytes()[..].into(),
                value: None,
            }],
            true,
        )
        .expect("write");
    drop(store);
    let store = open(path);
    let wanted: Vec<u32> = (0..500).filter(|number| *number != 3).collect();
    assert_eq!(numbers(&store), wanted);
    drop(store);
    let reader = FjallStore::open_to_read(path, &Options::default()).expect("a reader");
    assert_eq!(numbers(&*reader), wanted);
}

#[test]
fn what_is_written_after_a_merge_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let store = open(path);
    write(&store, 0..50);
    store.compact().expect("compact");
    write(&store, 50..60);
    drop(store);
    let store = open(path);
    assert_eq!(numbers(&store), (0..60).collect::<Vec<_>>());
    store.compact().expect("compact");
    // A snapshot that outlives the store reads on.
    let snapshot = store.snapshot().expect("a snapshot");
    drop(store);
    assert_eq!(numbers(&*snapshot).len(), 60);
    drop(snapshot);
    assert_eq!(numbers(&open(path)).len(), 60);
}

/// Batches of other threads that come while a merge runs are in the journal alone.
#[test]
fn writes_beside_a_merge_stay() {
    for round in 0..5 {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let store = open(path);
        std::thread::scope(|scope| {
            scope.spawn(|| write(&store, 0..200));
            scope.spawn(|| {
                for _ in 0..5 {
                    store.compact().expect("compact");
                }
            });
        });
        drop(store);
        assert_eq!(numbers(&open(path)).len(), 200, "{round}");
    }
}

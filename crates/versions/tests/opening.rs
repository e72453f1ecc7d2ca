//! Opening: identity, the HEAD file, crashes between two writes, and what must not open.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::support::{
    self, ACCOUNTS, account, change, faulty, identity, meta, options, tables, value,
};
use arbor_store::faulty::{Failure, FaultyStore};
use arbor_store::{MemoryStore, Reader, Store, Table, Value, Write};
use arbor_versions::{
    DirLock, DirReader, Identity, Options, Snapshot, TableKind, TableSpec, Version, Versions,
    VersionsError, read_head_file, stored_identity,
};

fn create(store: &Arc<FaultyStore>, dir: &Path) -> Versions {
    let lock = DirLock::acquire(dir).expect("free");
    Versions::create(store.clone(), Some(lock), &identity(), &tables(), quiet()).expect("created")
}

fn open(store: &Arc<FaultyStore>, dir: &Path) -> Result<Versions, VersionsError> {
    let lock = DirLock::acquire(dir).expect("free");
    Versions::open(store.clone(), Some(lock), &identity(), &tables(), quiet())
}

/// No flush but those that are asked for.
fn quiet() -> Options {
    Options {
        dirty_bytes: usize::MAX,
        ..options()
    }
}

/// Applies version `number`, which sets key `k` to the number's digits.
fn apply(versions: &mut Versions, number: u64) {
    let (old, new) = (number.wrapping_sub(1).to_string(), number.to_string());
    let changes = change("k", (number > 0).then_some(&*old), Some(&new));
    versions.apply(meta(number), changes).expect("applies");
}

fn roll_back(versions: &mut Versions, to: u64) -> Result<(), VersionsError> {
    let undo = versions.view().undo_since(Version(to))?;
    versions.rollback(Version(to), undo, Vec::new()).map(drop)
}

/// Everything a store holds.
fn contents(store: &dyn Reader) -> Vec<Write> {
    let mut all = Vec::new();
    for table in (0..=u8::MAX).map(Table) {
        for entry in store.scan(table, b"", b"").expect("scans") {
            let (key, value) = entry.expect("reads");
            let value = Some(value);
            all.push(Write { table, key, value });
        }
    }
    all
}

/// Puts a store back to what it once held.
fn restore(store: &FaultyStore, contents: &[Write]) {
    for table in (0..=u8::MAX).map(Table) {
        store.delete_prefix(table, b"").expect("deletes");
    }
    store.write(contents, true).expect("writes");
}

fn head(versions: &Versions) -> Option<u64> {
    versions.head().map(|meta| meta.version.0)
}

#[test]
fn another_identity_is_refused_by_field() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    assert_eq!(stored_identity(&*store).expect("reads"), None);
    let opened = Versions::open(store.clone(), None, &identity(), &tables(), options());
    assert!(matches!(opened.err(), Some(VersionsError::NotCreated)));
    Versions::create(store.clone(), None, &identity(), &tables(), options()).expect("created");
    assert_eq!(stored_identity(&*store).expect("reads"), Some(identity()));

    type Alter = fn(&mut Identity);
    let changed: [(&str, Alter); 5] = [
        ("tree", |i| i.tree = "verkle".into()),
        ("revision", |i| i.revision = "2".into()),
        ("hash", |i| i.hash = "blake3".into()),
        ("chain id", |i| i.chain_id = 5),
        ("genesis", |i| i.genesis[0] ^= 1),
    ];
    for (name, alter) in changed {
        let mut other = identity();
        alter(&mut other);
        let opened = Versions::open(store.clone(), None, &other, &tables(), options());
        match opened.err() {
            Some(VersionsError::Identity { field, .. }) => assert_eq!(field, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    let other = Identity {
        layout: 2,
        ..identity()
    };
    let opened = Versions::open(store.clone(), None, &other, &tables(), options());
    let message = opened.err().expect("refused").to_string();
    assert!(
        message.contains("has layout 1 of the tree") && message.contains("make it anew"),
        "{message}"
    );
    let fewer = &tables()[1..];
    let opened = Versions::open(store.clone(), None, &identity(), fewer, options());
    let message = opened.err().expect("refused").to_string();
    assert!(message.contains("0x01 accounts (flat)"), "{message}");

    let again = Versions::create(store.clone(), None, &identity(), &tables(), options());
    assert!(matches!(
        again.err(),
        Some(VersionsError::AlreadyCreated { .. })
    ));
    Versions::open(store, None, &identity(), &tables(), options()).expect("opens");
}

#[test]
fn a_database_gets_tables_that_it_lacked() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let fewer = &tables()[..tables().len() - 1];
    let made = Versions::create(store.clone(), None, &identity(), fewer, options());
    let mut versions = made.expect("created");
    apply(&mut versions, 0);
    versions.flush().expect("flushes");
    drop(versions);
    // A reader takes the table for empty and writes nothing.
    let before = contents(&*store);
    let frozen: Arc<dyn Reader> = store.snapshot().expect("frozen").into();
    let frozen = Snapshot::open(frozen, None, &identity(), &tables());
    let new = tables()[tables().len() - 1].table;
    let mut found = frozen
        .as_ref()
        .expect("opens")
        .view()
        .scan(new, b"", b"")
        .expect("scans");
    assert!(found.next().is_none());
    assert_eq!(contents(&*store), before);
    // A writer adds it, and from then on it is not left out.
    let opened = Versions::open(store.clone(), None, &identity(), &tables(), options());
    let mut versions = opened.expect("opens");
    apply(&mut versions, 1);
    versions.flush().expect("flushes");
    drop(versions);
    let opened = Versions::open(store.clone(), None, &identity(), fewer, options());
    assert!(matches!(
        opened.err(),
        Some(VersionsError::Identity {
            field: "tables",
            ..
        })
    ));
    let opened = Versions::open(store, None, &identity(), &tables(), options());
    assert_eq!(head(&opened.expect("opens")), Some(1));
}

#[test]
fn tables_are_checked() {
    let spec = |table| TableSpec {
        table: Table(table),
        name: "t",
        kind: TableKind::Flat,
    };
    for specs in [vec![spec(0xf0)], vec![spec(3), spec(3)]] {
        let store = Arc::new(MemoryStore::default());
        let made = Versions::create(store, None, &identity(), &specs, options());
        assert!(matches!(made.err(), Some(VersionsError::Table { .. })));
    }
}

#[test]
fn versions_come_in_order_and_change_a_key_once() {
    let store = Arc::new(MemoryStore::default());
    let made = Versions::create(store, None, &identity(), &tables(), options());
    let mut versions = made.expect("created");
    let refused = versions.apply(meta(1), change("k", None, Some("1")));
    assert!(matches!(refused, Err(VersionsError::OutOfOrder { .. })));
    apply(&mut versions, 0);
    let mut twice = change("k", Some("0"), Some("1"));
    twice.put_flat(account("k", Some("0"), Some("1")));
    let refused = versions.apply(meta(1), twice);
    assert!(matches!(
        refused,
        Err(VersionsError::DuplicateChange {
            table: "accounts",
            ..
        })
    ));
    let mut wrong = arbor_versions::Changes::default();
    wrong.put_flat(arbor_versions::Change {
        table: support::NODES,
        ..account("k", Some("0"), Some("1"))
    });
    let refused = versions.apply(meta(1), wrong);
    assert!(matches!(
        refused,
        Err(VersionsError::Table { table: 3, .. })
    ));
    let mut wrong = arbor_versions::Changes::default();
    wrong.put_node(support::ACCOUNTS, b"k", None);
    let refused = versions.apply(meta(1), wrong);
    assert!(matches!(
        refused,
        Err(VersionsError::Table { table: 1, .. })
    ));
    assert_eq!(head(&versions), Some(0));
    apply(&mut versions, 1);
    assert_eq!(head(&versions), Some(1));
}

#[test]
fn the_head_file_follows_every_flush() {
    let (store, dir) = (faulty(), tempfile::tempdir().expect("a directory"));
    let mut versions = create(&store, dir.path());
    assert_eq!(read_head_file(dir.path()).expect("reads").head, None);
    (0..3).for_each(|number| apply(&mut versions, number));
    assert_eq!(read_head_file(dir.path()).expect("reads").head, None);
    versions.flush().expect("flushes");
    // Readable while the database is open for writing.
    let file = read_head_file(dir.path()).expect("reads");
    assert_eq!(file.identity, identity());
    let found = file.head.expect("a head");
    assert_eq!((found.version, found.floor, found.block_number), (2, 2, 2));
    assert_eq!(
        (found.block_hash, found.root),
        (meta(2).block_hash, meta(2).root)
    );
    roll_back(&mut versions, 0).expect("rolls back");
    let found = read_head_file(dir.path())
        .expect("reads")
        .head
        .expect("a head");
    assert_eq!((found.version, found.floor), (0, 0));
}

#[test]
fn an_older_store_is_noticed() {
    let (store, dir) = (faulty(), tempfile::tempdir().expect("a directory"));
    let mut versions = create(&store, dir.path());
    let empty = contents(&*store);
    apply(&mut versions, 0);
    versions.flush().expect("flushes");
    let older = contents(&*store);
    apply(&mut versions, 1);
    versions.flush().expect("flushes");
    drop(versions);
    let newer = contents(&*store);

    restore(&store, &older);
    let error = open(&store, dir.path()).err();
    let lags = |store, head| VersionsError::StoreOlder { store, head }.to_string();
    assert_eq!(error.map(|e| e.to_string()), Some(lags(Some(0), 1)));
    restore(&store, &empty);
    let error = open(&store, dir.path()).err();
    assert_eq!(error.map(|e| e.to_string()), Some(lags(None, 1)));

    restore(&store, &newer);
    assert_eq!(head(&open(&store, dir.path()).expect("opens")), Some(1));
}

#[test]
fn a_head_file_of_another_history_is_noticed() {
    let (store, dir) = (faulty(), tempfile::tempdir().expect("a directory"));
    let mut versions = create(&store, dir.path());
    apply(&mut versions, 0);
    versions.flush().expect("flushes");
    drop(versions);
    let other_store = faulty();
    let other_dir = tempfile::tempdir().expect("a directory");
    let mut other = create(&other_store, other_dir.path());
    let mut different = meta(0);
    different.root = [0; 32];
    other
        .apply(different, change("k", None, Some("z")))
        .expect("applies");
    other.flush().expect("flushes");
    drop(other);
    let error = open(&other_store, dir.path()).err();
    assert!(
        matches!(
            error,
            Some(VersionsError::HeadDiffers { field: "root", .. })
        ),
        "{error:?}"
    );
    fs::remove_file(dir.path().join("HEAD")).expect("removes");
    let error = open(&store, dir.path()).err();
    assert!(
        matches!(error, Some(VersionsError::HeadFile { .. })),
        "{error:?}"
    );
}

/// Root and hash were compared, so that `arbor status` told a block number that no block has.
#[test]
fn a_head_file_with_another_block_number_is_noticed() {
    let (store, dir) = (faulty(), tempfile::tempdir().expect("a directory"));
    let mut versions = create(&store, dir.path());
    apply(&mut versions, 0);
    versions.flush().expect("flushes");
    drop(versions);
    let other_dir = tempfile::tempdir().expect("a directory");
    let other_store = faulty();
    let mut other = create(&other_store, other_dir.path());
    let renumbered = arbor_versions::Meta {
        block_number: 7,
        ..meta(0)
    };
    let added = change("k", None, Some("0"));
    other.apply(renumbered, added).expect("applies");
    other.flush().expect("flushes");
    drop(other);
    let error = open(&store, other_dir.path()).err().expect("refused");
    assert_eq!(
        error.to_string(),
        "store and HEAD file differ in the block number of version 0: 0 and 7"
    );
}

/// A crash after the store's write and before HEAD's leaves HEAD behind; opening brings it up.
#[test]
fn a_head_file_that_lags_is_brought_up_to_date() {
    let (store, dir) = (faulty(), tempfile::tempdir().expect("a directory"));
    let mut versions = create(&store, dir.path());
    for number in 0..2 {
        let before = fs::read(dir.path().join("HEAD")).expect("reads");
        apply(&mut versions, number);
        versions.flush().expect("flushes");
        drop(versions);
        fs::write(dir.path().join("HEAD"), before).expect("writes");
        versions = open(&store, dir.path()).expect("opens");
        assert_eq!(head(&versions), Some(number));
        let file = read_head_file(dir.path()).expect("reads");
        assert_eq!(file.head.map(|head| head.version), Some(number));
    }
}

/// Whichever write a crash prevents, the database opens at a version that was flushed, whole.
#[test]
fn a_crash_at_any_write_opens_at_a_flushed_version() {
    let mut crashes = 0;
    let failures = [Failure::Refused, Failure::Landed, Failure::Unsynced];
    for (count, failure) in (0..20).flat_map(|count| failures.map(|failure| (count, failure))) {
        let (store, dir) = (faulty(), tempfile::tempdir().expect("a directory"));
        let mut versions = create(&store, dir.path());
        store.fail_after(count, failure);
        let mut durable = None;
        let result = work(&mut versions, &mut durable);
        drop(versions);
        store.reopen();
        let mut versions = open(&store, dir.path()).expect("opens");
        let found = head(&versions);
        if result.is_ok() {
            assert_eq!(found, durable);
            continue;
        }
        crashes += 1;
        // A rollback that was on its way takes back two versions.
        let at_least = durable.map(|version| version - version.min(2));
        assert!(found >= at_least, "{found:?} {durable:?}");
        let mut faults = Vec::new();
        let snapshot = versions.snapshot().expect("frozen");
        snapshot
            .verify_records(&mut |_| Ok(()), &mut |fault| faults.push(fault))
            .expect("reads");
        assert!(faults.is_empty(), "{count} {failure:?}: {faults:?}");
        let view = versions.view();
        let wanted = found.map(|version| value(version.to_string()));
        assert_eq!(view.get(ACCOUNTS, b"k").expect("reads"), wanted);
        for version in view.oldest().map_or(0, |oldest| oldest.0)..=found.unwrap_or(0) {
            if found.is_some() {
                let old = view
                    .get_at(Version(version), ACCOUNTS, b"k")
                    .expect("reads");
                assert_eq!(old, Some(value(version.to_string())), "{count} {failure:?}");
            }
        }
    }
    assert!(crashes > 45, "the faults hit: {crashes}");
}

/// Applies, flushes, rolls back and prunes across several index epochs; `durable` follows what
/// must survive.
fn work(versions: &mut Versions, durable: &mut Option<u64>) -> Result<(), VersionsError> {
    let mut next = 0;
    for round in 0..6u64 {
        for _ in 0..3 {
            apply(versions, next);
            next += 1;
        }
        versions.flush()?;
        *durable = Some(next - 1);
        if round % 2 == 1 {
            roll_back(versions, next - 3)?;
            next -= 2;
            *durable = Some(next - 1);
        }
        if round == 4 {
            versions.prune_before(Version(5))?;
        }
    }
    Ok(())
}

#[test]
fn damaged_records_are_errors() {
    let store = faulty();
    let made = Versions::create(store.clone(), None, &identity(), &tables(), quiet());
    let mut versions = made.expect("created");
    (0..10).for_each(|number| apply(&mut versions, number));
    versions.flush().expect("flushes");
    drop(versions);
    let whole = contents(&*store);
    let mut refused = 0;
    for place in 0..whole.len() {
        if whole[place].table == ACCOUNTS {
            continue;
        }
        for damage in [None, Some(Value::from(*b"\x01\x02"))] {
            let mut damaged = whole.clone();
            damaged[place].value = damage;
            restore(&store, &damaged);
            let opened = Versions::open(store.clone(), None, &identity(), &tables(), quiet());
            let read = opened.and_then(|versions| {
                let view = versions.view();
                for version in 0..10 {
                    view.get_at(Version(version), ACCOUNTS, b"k")?;
                    view.meta(Version(version))?;
                    view.version_of_block(version)?;
                }
                view.undo_since(Version(0))
            });
            refused += usize::from(read.is_err());
        }
    }
    assert!(refused > 20, "{refused} of {}", 2 * whole.len());
}

/// A database lost its store's files (a journal deleted, a folder emptied), and the next replay made a
/// new one in its place, from genesis, without a word.
#[test]
fn a_store_that_lost_everything_is_not_created_anew() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = faulty();
    let mut versions = create(&store, dir.path());
    apply(&mut versions, 0);
    versions.flush().expect("flushes");
    drop(versions);
    let head = read_head_file(dir.path()).expect("reads");
    restore(&store, &[]);
    let lock = DirLock::acquire(dir.path()).expect("free");
    let again = Versions::create(store.clone(), Some(lock), &identity(), &tables(), quiet());
    let error = again.err().expect("refused");
    assert_eq!(
        error.to_string(),
        "the store is older than its HEAD file: store without any version, HEAD at version 0"
    );
    assert_eq!(read_head_file(dir.path()).expect("reads"), head);
}

/// Opens what a store holds at this moment for reading alone.
fn read(store: &Arc<FaultyStore>, dir: DirReader) -> Result<Snapshot, VersionsError> {
    let beside = Arc::new(MemoryStore::default());
    beside.write(&contents(&**store), true).expect("copies");
    Snapshot::open(beside, Some(dir), &identity(), &tables())
}

#[test]
fn a_reader_has_the_last_flushed_version_and_its_history() {
    let dir = tempfile::tempdir().expect("a directory");
    let look = || DirReader::new(dir.path());
    assert!(matches!(look().err(), Some(VersionsError::HeadFile { .. })));
    let store = faulty();
    let mut versions = create(&store, dir.path());
    let empty = read(&store, look().expect("looks")).expect("opens");
    assert!(empty.view().head().is_none());

    (0..5).for_each(|number| apply(&mut versions, number));
    versions.flush().expect("flushes");
    apply(&mut versions, 5);
    let reader = read(&store, look().expect("looks")).expect("opens beside the writer");
    versions.flush().expect("flushes");
    let head = reader.view().head().expect("a head");
    assert_eq!((head.version, head.root), (Version(4), meta(4).root));
    for version in 0..5 {
        let found = reader.view().get_at(Version(version), ACCOUNTS, b"k");
        assert_eq!(found.expect("reads"), Some(value(version.to_string())));
    }
    assert!(reader.view().retained(Version(5)).is_err());
    let mut other = identity();
    other.chain_id += 1;
    let look = look().expect("looks");
    let refused = Snapshot::open(store, Some(look), &other, &tables());
    assert!(matches!(
        refused.err(),
        Some(VersionsError::Identity { .. })
    ));
}

/// The writer may flush and roll back between a reader's look at HEAD and its opening of the store, and between
/// that and its second look. A store that is older than both looks allow is still an error.
#[test]
fn a_reader_tells_a_writer_that_goes_on_from_an_older_store() {
    let dir = tempfile::tempdir().expect("a directory");
    let look = || DirReader::new(dir.path()).expect("looks");
    let store = faulty();
    let mut versions = create(&store, dir.path());
    (0..5).for_each(|number| apply(&mut versions, number));
    versions.flush().expect("flushes");
    let four = contents(&*store);
    let before = look();
    (5..8).for_each(|number| apply(&mut versions, number));
    versions.flush().expect("flushes");
    let seven = contents(&*store);
    let at = |snapshot: Snapshot| snapshot.view().head().map(|head| head.version.0);
    let reader = read(&store, before).expect("the store is newer than the first look");
    assert_eq!(at(reader), Some(7));
    let before = look();
    roll_back(&mut versions, 2).expect("rolls back");
    let reader = read(&store, before).expect("the second look allows it");
    assert_eq!(at(reader), Some(2));

    (3..8).for_each(|number| apply(&mut versions, number));
    versions.flush().expect("flushes");
    restore(&store, &four);
    let error = read(&store, look()).err().expect("older");
    assert!(
        matches!(
            error,
            VersionsError::StoreOlder {
                store: Some(4),
                head: 7
            }
        ),
        "{error}"
    );
    restore(&store, &[]);
    assert!(matches!(
        read(&store, look()).err(),
        Some(VersionsError::NotCreated)
    ));
    let mut damaged = seven;
    let (seventh, record) = (7u64.to_be_bytes(), Table(0xf0));
    for write in &mut damaged {
        if write.table == record && *write.key == seventh {
            let mut bytes = write.value.as_ref().expect("a meta").to_vec();
            bytes[45] ^= 1;
            write.value = Some(bytes.into());
        }
    }
    restore(&store, &damaged);
    let error = read(&store, look()).err().expect("another root");
    assert!(
        matches!(error, VersionsError::HeadDiffers { field: "root", .. }),
        "{error}"
    );
}

/// Engines merge what overlaps, and a mark written anew beside each part overlapped all that lies between.
#[test]
fn a_state_loaded_in_parts_is_marked_once() {
    let (dir, store) = (tempfile::tempdir().expect("a folder"), faulty());
    let mut versions = create(&store, dir.path());
    let parts = ["a", "b", "c"];
    // The mark and the parts; what follows would fail.
    store.fail_after(1 + parts.len() as u64, Failure::Refused);
    for key in parts {
        let part = Write {
            table: ACCOUNTS,
            key: key.as_bytes().into(),
            value: Some(value(key)),
        };
        let loaded = versions.load(&mut [part].into_iter());
        loaded.expect("a part is one call");
    }
    store.heal();
    versions
        .apply(meta(0), Default::default())
        .expect("applies");
    versions.flush().expect("flushes");
    drop(versions);
    let versions = open(&store, dir.path()).expect("a database");
    for key in parts {
        let found = versions.view().get(ACCOUNTS, key.as_bytes());
        assert_eq!(found.expect("reads"), Some(value(key)));
    }
}

fn keeping() -> Options {
    Options {
        keep_nodes: true,
        ..quiet()
    }
}

/// `replay --history-proofs` without a new block did not remember what was asked for.
#[test]
fn nodes_are_kept_from_an_opening_on_that_asks_for_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let store = FaultyStore::new(Arc::new(MemoryStore::default()));
    let mut versions = create(&store, dir.path());
    (0..3).for_each(|number| apply(&mut versions, number));
    versions.flush().expect("flushes");
    drop(versions);
    let lock = DirLock::acquire(dir.path()).expect("free");
    let asked = Versions::open(store.clone(), Some(lock), &identity(), &tables(), keeping());
    let asked = asked.expect("opens");
    assert_eq!(asked.keeps_nodes_since(), Some(Version(2)));
    drop(asked);
    store.reopen();
    let versions = open(&store, dir.path()).expect("opens");
    assert_eq!(versions.keeps_nodes_since(), Some(Version(2)));
}

/// After a killed `history-proofs --drop`, `status` was silent about what is left on the disk.
#[test]
fn nodes_that_a_kill_left_are_seen_and_go() {
    let dir = tempfile::tempdir().expect("a folder");
    let store = FaultyStore::new(Arc::new(MemoryStore::default()));
    let lock = DirLock::acquire(dir.path()).expect("free");
    let made = Versions::create(store.clone(), Some(lock), &identity(), &tables(), keeping());
    let mut versions = made.expect("created");
    for number in 0..4 {
        let mut changes = arbor_versions::Changes::default();
        changes.put_node(support::NODES, b"k", Some(&[number as u8; 8]));
        versions.apply(meta(number), changes).expect("applies");
    }
    versions.flush().expect("flushes");
    let has_dropped = |versions: &Versions| versions.view().has_dropped_nodes();
    assert!(!has_dropped(&versions).expect("reads"));
    // The mark goes, and what it stands for does not.
    store.fail_after(1, Failure::Refused);
    versions.forget_nodes().expect_err("refused");
    store.heal();
    drop(versions);
    let reader = Snapshot::open(store.clone(), None, &identity(), &tables());
    let reader = reader.expect("opens");
    assert_eq!(reader.view().keeps_nodes_since(), None);
    assert!(reader.view().has_dropped_nodes().expect("reads"));
    drop(reader);
    let versions = open(&store, dir.path()).expect("opens");
    assert!(!has_dropped(&versions).expect("reads"));
}

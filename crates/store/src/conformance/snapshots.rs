//! Readers that do not change.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::{Subject, TABLE, scanned, value};
use crate::{Store, Table, Write};

fn put(store: &dyn Store, key: &[u8], content: &[u8]) {
    store
        .write(&[Write::put(TABLE, key, content)], false)
        .expect("write");
}

pub(super) fn frozen(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    let empty = store.snapshot().expect("snapshot");
    put(&*store, b"a", b"1");
    put(&*store, b"b", b"1");
    store
        .ingest(&mut std::iter::once(Write::put(TABLE, b"c", b"1")))
        .expect("ingest");
    let first = store.snapshot().expect("snapshot");
    let state = scanned(&*first, TABLE, b"", b"");

    put(&*store, b"a", b"2");
    store
        .write(&[Write::delete(TABLE, b"b")], true)
        .expect("write");
    let second = store.snapshot().expect("snapshot");
    store
        .ingest(&mut [Write::put(TABLE, b"a", b"3"), Write::delete(TABLE, b"c")].into_iter())
        .expect("ingest");
    store.delete_prefix(TABLE, b"").expect("delete_prefix");
    for n in 0..20u8 {
        store
            .ingest(&mut std::iter::once(Write::put(TABLE, b"a", &[n])))
            .expect("ingest");
    }
    store.compact().expect("compact");

    assert_eq!(scanned(&*empty, TABLE, b"", b""), []);
    assert_eq!(state.len(), 3);
    assert_eq!(scanned(&*first, TABLE, b"", b""), state);
    assert_eq!(value(&*first, TABLE, b"b"), Some(b"1".to_vec()));
    assert_eq!(value(&*first, TABLE, b"c"), Some(b"1".to_vec()));
    assert_eq!(value(&*second, TABLE, b"a"), Some(b"2".to_vec()));
    assert_eq!(value(&*second, TABLE, b"b"), None);
    assert_eq!(value(&*second, TABLE, b"c"), Some(b"1".to_vec()));
    assert_eq!(
        scanned(&*store, TABLE, b"", b""),
        [(b"a".to_vec(), vec![19])]
    );
}

pub(super) fn outlives_the_store(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    put(&*store, b"a", b"1");
    let snapshot = store.snapshot().expect("snapshot");
    drop(store);
    assert_eq!(value(&*snapshot, TABLE, b"a"), Some(b"1".to_vec()));
}

pub(super) fn scan_is_frozen(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    for key in [b"a", b"c", b"e"] {
        put(&*store, key, b"1");
    }
    let mut scan = store.scan(TABLE, b"", b"").expect("scan");
    assert!(scan.next().is_some());
    put(&*store, b"b", b"2");
    store
        .write(&[Write::delete(TABLE, b"e")], false)
        .expect("write");
    let rest: Vec<_> = scan
        .map(|item| item.expect("scan goes on").0.into_vec())
        .collect();
    assert_eq!(rest, [b"c", b"e"]);
}

/// Readers on other threads see, in any one snapshot, the state after one ingestion.
pub(super) fn readers_beside_a_writer(subject: &Subject<'_>, name: &str) {
    const KEYS: u32 = 200;
    let store = (subject.open)(name);
    let fill = |round: u32| {
        let mut writes = (0..KEYS)
            .map(|n| Write::put(Table((n % 7) as u8), &n.to_be_bytes(), &round.to_be_bytes()));
        let mut sorted: Vec<_> = writes.by_ref().collect();
        sorted.sort_by(|a, b| (a.table, &a.key).cmp(&(b.table, &b.key)));
        store.ingest(&mut sorted.into_iter()).expect("ingest");
    };
    fill(0);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let snapshot = store.snapshot().expect("snapshot");
                    let first = value(&*snapshot, Table(0), &0u32.to_be_bytes());
                    for n in 0..KEYS {
                        let seen = value(&*snapshot, Table((n % 7) as u8), &n.to_be_bytes());
                        assert_eq!(seen, first, "key {n}: an ingestion seen in part");
                    }
                }
            });
        }
        for round in 1..40 {
            fill(round);
        }
        done.store(true, Ordering::Relaxed);
    });
}

//! Sorted ingestion.

use super::{Subject, TABLE, scanned, scanned_keys, value};
use crate::{OWNER_BYTES, Store, StoreError, Table, Write};

fn numbered(range: std::ops::Range<u32>, content: &'static [u8]) -> impl Iterator<Item = Write> {
    range.map(move |n| Write::put(TABLE, &n.to_be_bytes(), content))
}

pub(super) fn ingest(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    let mut writes = numbered(0..5_000, b"one").chain([Write::put(Table(9), b"", b"other")]);
    store.ingest(&mut writes).expect("ingest");
    for n in [0u32, 1, 2_500, 4_999] {
        assert_eq!(
            value(&*store, TABLE, &n.to_be_bytes()),
            Some(b"one".to_vec())
        );
    }
    assert_eq!(value(&*store, TABLE, &5_000u32.to_be_bytes()), None);
    assert_eq!(value(&*store, Table(9), b""), Some(b"other".to_vec()));
    assert_eq!(scanned(&*store, TABLE, b"", b"").len(), 5_000);
}

pub(super) fn nothing(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    store
        .write(&[Write::put(TABLE, b"a", b"1")], false)
        .expect("write");
    store
        .ingest(&mut std::iter::empty())
        .expect("ingest of nothing");
    store
        .ingest(&mut [Write::delete(TABLE, b"absent")].into_iter())
        .expect("ingest of a delete");
    assert_eq!(scanned_keys(&*store, TABLE, b"", b""), [b"a"]);
}

pub(super) fn unsorted(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    store
        .write(&[Write::put(TABLE, b"before", b"1")], false)
        .expect("write");
    let put = |table: u8, key: &[u8]| Write::put(Table(table), key, b"2");
    let cases = [
        (vec![put(3, b"b"), put(3, b"a")], 1),
        (vec![put(3, b"a"), put(3, b"b"), put(3, b"b")], 2),
        (vec![put(3, b"b"), Write::delete(Table(3), b"b")], 1),
        (vec![put(4, b"a"), put(3, b"b")], 1),
        (vec![put(3, b"ab"), put(3, b"a")], 1),
        (vec![put(3, b""), put(3, b"")], 1),
        // By owner first, whatever the table; and between 0x7f and 0x83.
        (vec![put(0x80, &[2; 32]), put(0x81, &[1; 33])], 1),
        (vec![put(0x81, &[1; 32]), put(0x80, &[1; 33])], 1),
        (
            vec![
                put(0x80, &[1; 32]),
                put(0x81, &[1; 32]),
                put(0x80, &[2; 32]),
                put(0x7f, b""),
            ],
            3,
        ),
        (vec![put(0x83, b""), put(0x80, &[2; 32])], 1),
    ];
    for (writes, at) in cases {
        let (table, key) = (writes[at].table, writes[at].key.clone());
        let error = store
            .ingest(&mut writes.into_iter())
            .expect_err("out of order");
        match error {
            StoreError::Unsorted {
                index,
                table: told,
                key: told_key,
                ..
            } => {
                assert_eq!((index, told, told_key), (at as u64, table, key));
            }
            other => panic!("expected Unsorted, got {other}"),
        }
        assert_eq!(scanned_keys(&*store, TABLE, b"", b""), [b"before"]);
        assert_eq!(scanned_keys(&*store, Table(4), b"", b"").len(), 0);
    }
    store
        .ingest(&mut numbered(0..3, b"3"))
        .expect("the store still works");
    assert_eq!(scanned(&*store, TABLE, b"", b"").len(), 4);
}

pub(super) fn over_existing(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    store
        .ingest(&mut numbered(0..1_000, b"old"))
        .expect("ingest");
    let writes: Vec<_> = numbered(1_000..1_100, b"old").collect();
    store.write(&writes, false).expect("write");
    let change = (0..1_100u32).filter(|n| n % 3 != 0).map(|n| {
        let key = n.to_be_bytes();
        if n % 3 == 1 {
            Write::put(TABLE, &key, b"new")
        } else {
            Write::delete(TABLE, &key)
        }
    });
    store.ingest(&mut { change }).expect("ingest");
    let expected = |n: u32| match n % 3 {
        0 => Some(b"old".to_vec()),
        1 => Some(b"new".to_vec()),
        _ => None,
    };
    for compacted in [false, true] {
        for n in 0..1_100u32 {
            assert_eq!(
                value(&*store, TABLE, &n.to_be_bytes()),
                expected(n),
                "{n}, compacted: {compacted}"
            );
        }
        assert_eq!(scanned(&*store, TABLE, b"", b"").len(), 734);
        store.compact().expect("compact");
    }
}

/// What belongs to an owner is found whole by its table, and every table is found whole.
pub(super) fn by_owner(subject: &Subject<'_>, name: &str) {
    const OWNERS: u8 = 200;
    let store = (subject.open)(name);
    let key = |owner: u8, rest: &[u8]| [&[owner; OWNER_BYTES], rest].concat();
    // Of one owner in ten there is much in the middle table.
    let rests = |owner: u8| 0..if owner.is_multiple_of(10) { 700u32 } else { 2 };
    let of_owner = |owner: u8| {
        let first = Write::put(Table(0x80), &key(owner, b""), b"first");
        let middle = rests(owner)
            .map(move |n| Write::put(Table(0x81), &key(owner, &n.to_be_bytes()), b"middle"));
        let last = Write::put(Table(0x82), &key(owner, b"x"), b"last");
        [first].into_iter().chain(middle).chain([last])
    };
    store
        .ingest(&mut (0..OWNERS).flat_map(of_owner))
        .expect("ingest");
    for (table, rest) in [(0x80, &b""[..]), (0x82, b"x")] {
        let all: Vec<_> = (0..OWNERS).map(|owner| key(owner, rest)).collect();
        assert_eq!(scanned_keys(&*store, Table(table), b"", b""), all);
        let from = key(77, b"w");
        let above = &all[77 + usize::from(rest.is_empty())..];
        assert_eq!(scanned_keys(&*store, Table(table), b"", &from), above);
        assert_eq!(
            scanned_keys(&*store, Table(table), &[9, 9], b""),
            [&key(9, rest)[..]]
        );
    }
    let middle: usize = (0..OWNERS).map(|owner| rests(owner).len()).sum();
    assert_eq!(scanned(&*store, Table(0x81), b"", b"").len(), middle);
    assert_eq!(scanned(&*store, Table(0x81), &[10; 32], b"").len(), 700);
    assert_eq!(scanned(&*store, Table(0x83), b"", b"").len(), 0);
    store
        .delete_prefix(Table(0x81), &[10; 5])
        .expect("delete_prefix");
    assert_eq!(scanned(&*store, Table(0x81), b"", b"").len(), middle - 700);
    assert_eq!(
        value(&*store, Table(0x82), &key(10, b"x")),
        Some(b"last".to_vec())
    );
}

/// Ingestions and writes count in the order of their calls, whichever path they take.
pub(super) fn between_writes(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    let ingest = |content: &[u8]| {
        let mut one = std::iter::once(Write::put(TABLE, b"key", content));
        store.ingest(&mut one).expect("ingest");
    };
    let write = |content: &[u8]| {
        store
            .write(&[Write::put(TABLE, b"key", content)], false)
            .expect("write");
    };
    let holds = |content: &[u8]| {
        assert_eq!(value(&*store, TABLE, b"key").as_deref(), Some(content));
        assert_eq!(scanned(&*store, TABLE, b"", b"").len(), 1);
    };
    ingest(b"1");
    write(b"2");
    holds(b"2");
    ingest(b"3");
    holds(b"3");
    write(b"4");
    store
        .write(&[Write::delete(TABLE, b"key")], false)
        .expect("write");
    assert_eq!(value(&*store, TABLE, b"key"), None);
    ingest(b"5");
    holds(b"5");
    ingest(b"6");
    holds(b"6");
    write(b"7");
    store
        .ingest(&mut std::iter::once(Write::delete(TABLE, b"key")))
        .expect("ingest");
    assert_eq!(value(&*store, TABLE, b"key"), None);
}

/// More ingestions than an engine leaves unmerged, so that merging runs beside them.
pub(super) fn many(subject: &Subject<'_>, name: &str) {
    const KEYS: u32 = 300;
    let store = (subject.open)(name);
    for round in 0..45u32 {
        ingest_round(&*store, round, KEYS);
    }
    for n in 0..KEYS {
        // The last round that touched the key.
        let round = (0..45).rev().find(|round| (n + round).is_multiple_of(3));
        let expected = round
            .filter(|round| round % 5 != 0)
            .map(|round| round.to_be_bytes().to_vec());
        assert_eq!(value(&*store, TABLE, &n.to_be_bytes()), expected, "key {n}");
    }
}

fn ingest_round(store: &dyn Store, round: u32, keys: u32) {
    let mut writes = (0..keys)
        .filter(|n| (n + round).is_multiple_of(3))
        .map(|n| {
            let key = n.to_be_bytes();
            if round.is_multiple_of(5) {
                Write::delete(TABLE, &key)
            } else {
                Write::put(TABLE, &key, &round.to_be_bytes())
            }
        });
    store.ingest(&mut writes).expect("ingest");
}

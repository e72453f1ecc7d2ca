//! Batches and deletion.

use std::thread;

use super::{Subject, TABLE, scanned_keys, value};
use crate::{MAX_KEY_BYTES, OWNER_BYTES, StoreError, Table, Write};

pub(super) fn overwrite_and_delete(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    for round in 0..3u8 {
        store
            .write(
                &[
                    Write::put(TABLE, b"a", &[round]),
                    Write::put(TABLE, b"b", &[round]),
                ],
                round == 1,
            )
            .expect("write");
        assert_eq!(value(&*store, TABLE, b"a"), Some(vec![round]));
        store
            .write(
                &[Write::delete(TABLE, b"b"), Write::delete(TABLE, b"absent")],
                round == 2,
            )
            .expect("write");
        assert_eq!(value(&*store, TABLE, b"b"), None);
        assert_eq!(scanned_keys(&*store, TABLE, b"", b""), [b"a"]);
    }
    store.write(&[], false).expect("no writes");
    store.write(&[], true).expect("no writes, durable");
}

pub(super) fn last_write_counts(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    store
        .write(
            &[
                Write::put(TABLE, b"kept", b"1"),
                Write::delete(TABLE, b"kept"),
                Write::put(TABLE, b"kept", b"2"),
                Write::put(TABLE, b"gone", b"1"),
                Write::delete(TABLE, b"gone"),
            ],
            false,
        )
        .expect("write");
    assert_eq!(value(&*store, TABLE, b"kept"), Some(b"2".to_vec()));
    assert_eq!(value(&*store, TABLE, b"gone"), None);
}

/// A snapshot taken while batches are written sees whole batches: all keys carry one round.
pub(super) fn write_is_atomic(subject: &Subject<'_>, name: &str) {
    const ROUNDS: u32 = 200;
    let store = (subject.open)(name);
    let batch = |round: u32| -> Vec<Write> {
        (0..20u8)
            .map(|n| Write::put(Table(n), &[n], &round.to_be_bytes()))
            .collect()
    };
    store.write(&batch(0), false).expect("write");
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                store.write(&batch(round), false).expect("write");
            }
        });
        loop {
            let snapshot = store.snapshot().expect("snapshot");
            let first = value(&*snapshot, Table(0), &[0]);
            for n in 1..20u8 {
                assert_eq!(
                    value(&*snapshot, Table(n), &[n]),
                    first,
                    "a batch seen in part"
                );
            }
            if first == Some(ROUNDS.to_be_bytes().to_vec()) {
                break;
            }
        }
    });
}

pub(super) fn long_key(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    let key = vec![1; MAX_KEY_BYTES + 1];
    let writes = [
        Write::put(TABLE, b"short", b"1"),
        Write::put(TABLE, &key, b"2"),
    ];
    let length = MAX_KEY_BYTES + 1;
    let error = store
        .write(&writes, false)
        .expect_err("the key is too long");
    assert!(matches!(error, StoreError::KeyTooLong { length: told } if told == length));
    let (short, long) = (writes[0].clone(), writes[1].clone());
    let error = store
        .ingest(&mut [long, short].into_iter())
        .expect_err("the key is too long");
    assert!(matches!(error, StoreError::KeyTooLong { length: told } if told == length));
    assert_eq!(scanned_keys(&*store, TABLE, b"", b"").len(), 0);
}

pub(super) fn no_owner(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    for length in [0, OWNER_BYTES - 1] {
        let writes = [
            Write::put(Table(0x7f), b"", b"1"),
            Write::put(Table(0x80), &vec![1; length], b"2"),
        ];
        let written = store.write(&writes, false);
        let ingested = store.ingest(&mut writes.clone().into_iter());
        for error in [written, ingested] {
            let error = error.expect_err("the key has no owner");
            assert!(
                matches!(error, StoreError::NoOwner { table: Table(0x80), key } if key == writes[1].key)
            );
        }
        assert_eq!(value(&*store, Table(0x80), &writes[1].key), None);
    }
    assert_eq!(scanned_keys(&*store, Table(0x7f), b"", b"").len(), 0);
}

pub(super) fn delete_prefix(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    let keys: [&[u8]; 6] = [b"a", b"ab", b"abc", b"ac", b"\xff", b"\xff\xff"];
    let others = Table(TABLE.0 + 1);
    let fill = || {
        store
            .ingest(&mut keys.iter().map(|key| Write::put(TABLE, key, b"1")))
            .expect("ingest");
        let writes: Vec<_> = keys[..3]
            .iter()
            .map(|key| Write::put(TABLE, key, b"2"))
            .collect();
        store.write(&writes, false).expect("write");
        store
            .write(&[Write::put(others, b"ab", b"1")], false)
            .expect("write");
    };
    for prefix in [&b"ab"[..], b"a", b"", b"\xff", b"x", b"abc"] {
        fill();
        store.delete_prefix(TABLE, prefix).expect("delete_prefix");
        let left: Vec<_> = keys
            .into_iter()
            .filter(|key| !key.starts_with(prefix))
            .collect();
        assert_eq!(
            scanned_keys(&*store, TABLE, b"", b""),
            left,
            "prefix {prefix:?}"
        );
        assert_eq!(scanned_keys(&*store, others, b"", b""), [b"ab"]);
        assert!(
            keys.iter()
                .all(|key| value(&*store, TABLE, key).is_some() != key.starts_with(prefix))
        );
    }
}

//! Point reads and scans.

use super::random::Random;
use super::{Subject, TABLE, scanned, scanned_keys, value};
use crate::{Table, Write};

pub(super) fn points(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    assert_eq!(value(&*store, TABLE, b"absent"), None);
    store
        .write(&[Write::put(TABLE, b"key", b"value")], false)
        .expect("write");
    assert_eq!(value(&*store, TABLE, b"key"), Some(b"value".to_vec()));
    assert_eq!(value(&*store, TABLE, b"ke"), None);
    assert_eq!(value(&*store, TABLE, b"key0"), None);
}

pub(super) fn multi_get_order(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    let writes: Vec<_> = (0..50u8)
        .map(|n| Write::put(TABLE, &[n], &[n, n]))
        .collect();
    store.write(&writes, false).expect("write");
    let keys: [&[u8]; 5] = [&[40], &[3], &[99], &[3], &[0]];
    let values = store.multi_get(TABLE, &keys).expect("multi_get");
    let values: Vec<_> = values.iter().map(|value| value.as_deref()).collect();
    let expected: [Option<&[u8]>; 5] = [
        Some(&[40, 40]),
        Some(&[3, 3]),
        None,
        Some(&[3, 3]),
        Some(&[0, 0]),
    ];
    assert_eq!(values, expected);
    assert!(store.multi_get(TABLE, &[]).expect("multi_get").is_empty());
}

pub(super) fn odd_keys(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    let long = vec![0xff; crate::MAX_KEY_BYTES];
    let keys: [&[u8]; 7] = [b"", &[0], &[0, 0], &[0x80], &[0xff], &[0xff, 0xff], &long];
    for table in [Table(0), TABLE, Table(0xff)] {
        let writes: Vec<_> = keys
            .iter()
            .map(|key| Write::put(table, key, &[key.len() as u8]))
            .collect();
        store.write(&writes, false).expect("write");
    }
    for table in [Table(0), TABLE, Table(0xff)] {
        for key in keys {
            assert_eq!(
                value(&*store, table, key),
                Some(vec![key.len() as u8]),
                "key {key:?}"
            );
        }
        assert_eq!(scanned_keys(&*store, table, b"", b""), keys);
        assert_eq!(scanned_keys(&*store, table, &[0xff], b""), keys[4..]);
    }
}

pub(super) fn tables_apart(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    let (low, high) = (Table(3), Table(4));
    store
        .write(
            &[
                Write::put(low, &[0xff], b"low"),
                Write::put(high, b"", b"high"),
                Write::put(high, &[0xff], b"high too"),
            ],
            false,
        )
        .expect("write");
    assert_eq!(value(&*store, low, &[0xff]), Some(b"low".to_vec()));
    assert_eq!(value(&*store, low, b""), None);
    assert_eq!(
        scanned(&*store, low, b"", b""),
        [(vec![0xff], b"low".to_vec())]
    );
    assert_eq!(
        scanned(&*store, high, b"", &[1]),
        [(vec![0xff], b"high too".to_vec())]
    );
    store
        .write(&[Write::delete(low, &[0xff])], false)
        .expect("write");
    assert_eq!(value(&*store, high, &[0xff]), Some(b"high too".to_vec()));
}

pub(super) fn scans(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    let keys: [&[u8]; 8] = [
        b"a", b"ab", b"ab\x00", b"aba", b"ab\xff", b"ac", b"b", b"\xff",
    ];
    // Some of them by ingestion, so that a scan merges what lies in files and in memory.
    let (even, odd): (Vec<_>, Vec<_>) = keys.iter().enumerate().partition(|(n, _)| n % 2 == 0);
    store
        .ingest(&mut even.iter().map(|(_, key)| Write::put(TABLE, key, key)))
        .expect("ingest");
    let writes: Vec<_> = odd
        .iter()
        .map(|(_, key)| Write::put(TABLE, key, key))
        .collect();
    store.write(&writes, false).expect("write");

    let check = |prefix: &[u8], from: &[u8]| {
        let expected: Vec<_> = keys
            .iter()
            .filter(|key| key.starts_with(prefix) && **key >= from)
            .map(|key| (key.to_vec(), key.to_vec()))
            .collect();
        assert_eq!(
            scanned(&*store, TABLE, prefix, from),
            expected,
            "prefix {prefix:?} from {from:?}"
        );
    };
    for prefix in [
        &b""[..],
        b"a",
        b"ab",
        b"ab\xff",
        b"abc",
        b"b",
        b"\xff",
        b"\xff\xff",
    ] {
        for from in [
            &b""[..],
            b"\x00",
            b"a",
            b"ab",
            b"ab\x00",
            b"ab\x01",
            b"ac",
            b"c",
            b"\xff",
        ] {
            check(prefix, from);
        }
    }
    let one = store.scan(TABLE, b"", b"").expect("scan").next();
    assert!(one.is_some(), "a scan may be dropped before its end");
}

pub(super) fn sizes_of_values(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    let large = Random(1).bytes(1 << 20);
    let writes = [
        Write::put(TABLE, b"empty", b""),
        Write::put(TABLE, b"large", &large),
        Write::put(TABLE, b"zero", &[0]),
    ];
    let check = || {
        assert_eq!(value(&*store, TABLE, b"empty"), Some(vec![]));
        assert!(value(&*store, TABLE, b"large").as_ref() == Some(&large));
        assert_eq!(value(&*store, TABLE, b"zero"), Some(vec![0]));
        assert_eq!(scanned(&*store, TABLE, b"", b"").len(), 3);
    };
    store.write(&writes, true).expect("write");
    check();
    store.ingest(&mut writes.iter().cloned()).expect("ingest");
    check();
    store.compact().expect("compact");
    check();
}

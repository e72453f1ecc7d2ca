//! What stays after closing, and what compaction gives back.

use super::random::Random;
use super::{Files, Subject, TABLE, scanned, value};
use crate::{Table, Write};

pub(super) fn compact(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    store.compact().expect("compaction of nothing");
    let mut random = Random(2);
    let content = random.bytes(2_000_000);
    let fill = || {
        let mut writes = (0..1_000u32).map(|n| {
            let from = n as usize * 1_999;
            Write::put(TABLE, &n.to_be_bytes(), &content[from..from + 1_999])
        });
        store.ingest(&mut writes).expect("ingest");
    };
    fill();
    store.compact().expect("compact");
    let once = store.disk_bytes().expect("disk_bytes");
    for _ in 0..4 {
        fill();
    }
    store.compact().expect("compact");
    let full = scanned(&*store, TABLE, b"", b"");
    assert_eq!(full.len(), 1_000);
    if let (Some(once), Some(again)) = (once, store.disk_bytes().expect("disk_bytes")) {
        assert!(
            again < once + once / 2,
            "{again} bytes after overwriting, {once} before"
        );
    }
    store.delete_prefix(TABLE, b"").expect("delete_prefix");
    store.compact().expect("compact");
    assert_eq!(scanned(&*store, TABLE, b"", b"").len(), 0);
    if let (Some(once), Some(end)) = (once, store.disk_bytes().expect("disk_bytes")) {
        assert!(
            end < once / 2,
            "{end} bytes after deleting everything, {once} before"
        );
    }
}

pub(super) fn reopen(subject: &Subject<'_>, name: &str) {
    if subject.files == Files::None {
        return;
    }
    for round in 0..4u8 {
        let store = (subject.open)(name);
        for earlier in 0..round {
            assert_eq!(
                value(&*store, TABLE, &[earlier]),
                Some(vec![earlier; 3]),
                "round {round}"
            );
        }
        assert_eq!(value(&*store, TABLE, b"deleted"), None);
        store
            .write(&[Write::put(TABLE, b"deleted", b"1")], true)
            .expect("write");
        store
            .write(
                &[
                    Write::put(TABLE, &[round], &[round; 3]),
                    Write::delete(TABLE, b"deleted"),
                ],
                false,
            )
            .expect("write");
        store.write(&[], true).expect("durable");
    }
}

pub(super) fn reopen_after_ingest(subject: &Subject<'_>, name: &str) {
    if subject.files == Files::None {
        return;
    }
    let written = |round: u32| Write::put(Table(1), &round.to_be_bytes(), b"written");
    for round in 0..6u32 {
        let store = (subject.open)(name);
        if round > 0 {
            assert_eq!(
                scanned(&*store, TABLE, b"", b"").len(),
                100 + round as usize - 1
            );
            assert_eq!(
                value(&*store, TABLE, &(round - 1).to_be_bytes()),
                Some(round.to_be_bytes().to_vec())
            );
            assert_eq!(
                scanned(&*store, Table(1), b"", b"").len(),
                2 * round as usize
            );
            assert_eq!(
                value(&*store, Table(1), &(round - 1).to_be_bytes()),
                Some(b"ingested".to_vec())
            );
        }
        // A write before the ingestion that overwrites one of its keys, and a write after it.
        store
            .write(&[written(round), written(1_000 + round)], false)
            .expect("write");
        let mut writes = std::iter::once(Write::put(Table(1), &round.to_be_bytes(), b"ingested"))
            .chain((round..round + 100).map(|n| Write::put(TABLE, &n.to_be_bytes(), &[0])));
        store.ingest(&mut writes).expect("ingest");
        let after = Write::put(TABLE, &round.to_be_bytes(), &(round + 1).to_be_bytes());
        store.write(&[after], true).expect("write");
        if round == 3 {
            store.compact().expect("compact");
        }
    }
}

pub(super) fn disk_bytes(subject: &Subject<'_>, name: &str) {
    let store = (subject.open)(name);
    let content = Random(3).bytes(1 << 20);
    store
        .ingest(&mut std::iter::once(Write::put(TABLE, b"a", &content)))
        .expect("ingest");
    match (subject.files, store.disk_bytes().expect("disk_bytes")) {
        (Files::None, bytes) => assert_eq!(bytes, None),
        (Files::Kept, bytes) => {
            let bytes = bytes.expect("a store with files tells their size");
            assert!(
                (1 << 20..4 << 20).contains(&bytes),
                "1 MB stored, {bytes} told"
            );
        }
    }
}

//! Tables by owner are written in their order, between those before and behind them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{identity, meta, options};
use arbor_store::{MemoryStore, OWNER_BYTES, Reader, Table};
use arbor_versions::{Change, Changes, Options, TableKind, TableSpec, Versions, VersionsError};

const TABLES: [(u8, TableKind); 6] = [
    (1, TableKind::Flat),
    (0x7f, TableKind::Nodes),
    (0x80, TableKind::Flat),
    (0x81, TableKind::Flat),
    (0x82, TableKind::Nodes),
    (0x83, TableKind::Nodes),
];

fn create(store: &Arc<MemoryStore>, ingest_above: usize) -> Versions {
    let specs = TABLES.map(|(table, kind)| TableSpec {
        table: Table(table),
        name: "t",
        kind,
    });
    let settings = Options {
        ingest_above,
        dirty_bytes: usize::MAX,
        ..options()
    };
    let store = store.clone();
    Versions::create(store, None, &identity(), &specs, settings).expect("created")
}

/// Keys of few owners in every table, some of them anew in the second round and some deleted.
fn round(number: u8) -> Changes {
    let mut changes = Changes::default();
    for (place, (table, kind)) in TABLES.into_iter().enumerate() {
        for owner in 0..40u8 {
            let of = |round: u8| {
                (!(owner + place as u8 + round).is_multiple_of(3)).then_some([round; 9])
            };
            for rest in [&b""[..], b"\x80", b"\x82x"] {
                let key = [&[owner % 7; OWNER_BYTES - 1], &[owner][..], rest].concat();
                let old = number.checked_sub(1).and_then(of);
                let (old, new) = (old.as_ref(), of(number));
                let new = new.as_ref().map(|new| &new[..]);
                match kind {
                    TableKind::Flat => changes.put_flat(Change {
                        table: Table(table),
                        key: &key,
                        old: old.map(|old| &old[..]),
                        new,
                    }),
                    _ => changes.put_node(Table(table), &key, new),
                }
            }
        }
    }
    changes
}

#[test]
fn a_flush_writes_every_table_whichever_way_it_goes() {
    let mut found = Vec::new();
    for ingest_above in [0, usize::MAX] {
        let store = Arc::new(MemoryStore::default());
        let mut versions = create(&store, ingest_above);
        for number in 0..2u8 {
            let applied = versions.apply(meta(number.into()), round(number));
            applied.expect("applies");
            versions.flush().expect("flushes");
        }
        let tables = TABLES.map(|(table, _)| {
            let scan = store.scan(Table(table), b"", b"").expect("scans");
            let entries: BTreeMap<_, _> = scan.map(|entry| entry.expect("reads")).collect();
            entries
        });
        for ((_, kind), entries) in TABLES.iter().zip(&tables) {
            let rounds: Vec<u8> = entries.values().map(|value| value[0]).collect();
            assert!(rounds.contains(&1), "{kind:?}");
            assert!(
                !rounds.contains(&0),
                "what the second round has not is deleted"
            );
        }
        found.push(tables);
    }
    assert_eq!(found[0], found[1]);
}

#[test]
fn a_key_without_an_owner_is_refused_before_anything_is_applied() {
    let store = Arc::new(MemoryStore::default());
    let mut versions = create(&store, 0);
    let mut short = Changes::default();
    short.put_node(Table(0x82), b"short", Some(b"node"));
    let refused = versions.apply(meta(0), short);
    let Err(VersionsError::Store { source, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(source.to_string().contains("owner"), "{source}");
    assert_eq!(versions.head(), None);
    versions.apply(meta(0), round(0)).expect("applies");
    versions.flush().expect("flushes");
}

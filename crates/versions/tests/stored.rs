//! What lies in the store: the exact records of a small database, and how many of them a read of
//! the past touches.

use std::sync::Arc;

use crate::support::{
    self, ACCOUNTS, account, change, faulty, identity, meta, options, tables, value,
};
use arbor_store::faulty::FaultyStore;
use arbor_store::{MemoryStore, Reader, Table};
use arbor_versions::{Options, Retain, Version, Versions};

/// Every record as `table key value`, in hex, the JSON of the identity as text.
fn records(store: &dyn Reader) -> Vec<String> {
    let mut lines = Vec::new();
    for table in (0..=u8::MAX).map(Table) {
        for entry in store.scan(table, b"", b"").expect("scans") {
            let (key, value) = entry.expect("reads");
            let value = match &*key {
                b"fixed" => String::from_utf8(value.to_vec()).expect("text"),
                _ => hex::encode(value),
            };
            lines.push(format!("{:02x} {} {value}", table.0, hex::encode(key)));
        }
    }
    lines
}

/// `docs/design/storage-format.md` describes these bytes: change both together, and raise the
/// layout number of the identity.
#[test]
fn stored_bytes_of_a_database() {
    let store = Arc::new(MemoryStore::default());
    let options = Options {
        epoch: 2,
        dirty_bytes: usize::MAX,
        undo_chunk: 1 << 20,
        ..options()
    };
    let made = Versions::create(store.clone(), None, &identity(), &tables(), options);
    let mut versions = made.expect("created");
    for (number, old, new) in [
        (0, None, Some("a")),
        (1, Some("a"), Some("b")),
        (2, Some("b"), None),
    ] {
        let changes = change("key", old, new);
        versions.apply(meta(number), changes).expect("applies");
    }
    versions.flush().expect("flushes");
    let found = records(&*store);
    let metas: Vec<String> = [(0, 0), (1, 1), (2, 1)]
        .into_iter()
        .map(|(version, chunks)| {
            let (hash, root) = (hex::encode([version; 32]), hex::encode([!version; 32]));
            let number = format!("{version:016x}");
            let extra = format!("{version:02x}00000000000000");
            format!("f0 {number} 01{chunks:08x}{number}{hash}{root}{extra}")
        })
        .collect();
    let genesis = "07".repeat(32);
    let wanted = [
        &metas[0],
        &metas[1],
        &metas[2],
        "f1 0000000000000000 0000000000000000",
        "f1 0000000000000001 0000000000000001",
        "f1 0000000000000002 0000000000000002",
        "f2 000000000000000100000000 010000000100000001000401 6b6579 0261",
        "f2 000000000000000200000000 010000000100000001000401 6b6579 0262",
        "f3 000000000000000001 6b6579 00010000",
        &format!(
            "f4 6669786564 {{\"identity\":{{\"tree\":\"mpt\",\"revision\":\"1\",\"hash\":\"keccak256\",\
             \"layout\":1,\"chain_id\":1,\"genesis\":\"0x{genesis}\"}},\"tables\":[\
             {{\"table\":1,\"name\":\"accounts\",\"kind\":\"flat\"}},\
             {{\"table\":2,\"name\":\"slots\",\"kind\":\"flat\"}},\
             {{\"table\":3,\"name\":\"nodes\",\"kind\":\"nodes\"}},\
             {{\"table\":4,\"name\":\"code\",\"kind\":\"blobs\"}}],\"epoch\":2}}"
        ),
        "f4 68656164 01000000000000000200000000000000000000000000000000",
        "f4 696e64657865642f0000000000000000 ",
    ];
    let squeezed = |line: &str| line.replace(' ', "");
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    for (found, wanted) in found.iter().zip(wanted) {
        assert_eq!(squeezed(found), squeezed(wanted));
    }
}

/// The node `k` at versions 0 to 4: absent, all sevens, two bytes others, one more, absent again. The second node comes with the last version, of another length each time.
#[test]
fn stored_bytes_of_old_nodes() {
    let store = Arc::new(MemoryStore::default());
    let options = Options {
        epoch: 2,
        dirty_bytes: usize::MAX,
        keep_nodes: true,
        ..options()
    };
    let made = Versions::create(store.clone(), None, &identity(), &tables(), options);
    let mut versions = made.expect("created");
    let sevens = [7; 24];
    let (mut two, mut three) = (sevens, sevens);
    (two[1], two[20]) = (1, 2);
    (three[1], three[20], three[21]) = (1, 2, 3);
    let nodes: [(Option<&[u8]>, &[u8]); 5] = [
        (None, b"12345678"),
        (Some(&sevens), b"12345678"),
        (Some(&two), b"1234567"),
        (Some(&three), b"1234567"),
        (None, b"12345678"),
    ];
    for (number, (node, other)) in (0..).zip(nodes) {
        let mut changes = arbor_versions::Changes::default();
        changes.put_node(support::NODES, b"k", node);
        changes.put_node(support::NODES, b"other", Some(other));
        versions.apply(meta(number), changes).expect("applies");
    }
    versions.flush().expect("flushes");
    let found: Vec<String> = records(&*store)
        .into_iter()
        .filter(|line| ["ee", "ef"].contains(&&line[..2]) || line.starts_with("f4 6b65707420"))
        .collect();
    let three = hex::encode(three);
    let wanted = [
        // One entry of table 03: `k` was absent.
        "ee 000000000000000100000000 010000000100000001 0002036b 00".to_owned(),
        // `k` as two runs over what it is now; `other` whole, since it had another length.
        "ee 000000000000000200000000 010000000100000002 0002036b 08 01 010107 120107".to_owned()
            + " 01056f74686572 0a 00 3132333435363738",
        "ee 000000000000000300000000 010000000100000001 0002036b 05 01 150107".to_owned(),
        // Gone: what it was is whole.
        format!("ee 000000000000000400000000 010000000100000002 0002036b 1a 00 {three}")
            + " 01056f74686572 09 00 31323334353637",
        // Epoch, table and key, to versions within the epoch and chunks.
        "ef 0000000000000000 03 6b 00010000".to_owned(),
        "ef 0000000000000001 03 6b 00000000 00010000".to_owned(),
        "ef 0000000000000001 03 6f74686572 00000000".to_owned(),
        "f4 6b657074206e6f646573 0000000000000000".to_owned(),
    ];
    let squeezed = |line: &str| line.replace(' ', "");
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    for (found, wanted) in found.iter().zip(&wanted) {
        assert_eq!(squeezed(found), squeezed(wanted));
    }
    let view = versions.view();
    assert_eq!(view.keeps_nodes_since(), Some(Version(0)));
    let bytes = wanted[..4]
        .iter()
        .map(|line| squeezed(line).len() as u64 / 2 - 1);
    assert_eq!(
        view.old_node_bytes().expect("reads"),
        Some(bytes.sum::<u64>())
    );
}

fn long_history(retain: Retain) -> (Arc<FaultyStore>, Versions) {
    let store = faulty();
    let options = Options {
        epoch: 64,
        dirty_bytes: 20_000,
        retain,
        metas_below: 20,
        ..options()
    };
    let made = Versions::create(store.clone(), None, &identity(), &tables(), options);
    let mut versions = made.expect("created");
    for number in 0..640u64 {
        let (old, new) = (number.wrapping_sub(1).to_string(), number.to_string());
        let mut changes = change("often", (number > 0).then_some(&*old), Some(&new));
        if number == 0 {
            changes.put_flat(account("once", None, Some("x")));
        }
        versions.apply(meta(number), changes).expect("applies");
    }
    versions.flush().expect("flushes");
    (store, versions)
}

#[test]
fn a_deep_read_costs_one_seek_an_epoch() {
    let (store, versions) = long_history(Retain::All);
    let read = |version, key: &[u8]| {
        let before = store.gets();
        let view = versions.view();
        let found = view.get_at(Version(version), ACCOUNTS, key).expect("reads");
        (found, store.gets() - before)
    };
    // Ten epochs' indexes; the value at the head is in the clean cache.
    assert_eq!(read(0, b"once"), (Some(value("x")), 10));
    // An index and an undo record.
    assert_eq!(read(5, b"often"), (Some(value("5")), 2));
    assert_eq!(read(63, b"often"), (Some(value("63")), 2));
    assert_eq!(read(600, b"absent").0, None);
}

#[test]
fn short_retention_keeps_no_index_and_little_else() {
    let (store, mut versions) = long_history(Retain::Last(10));
    let count = |table| {
        let scan = store.scan(Table(table), b"", b"").expect("scans");
        scan.count()
    };
    assert_eq!(versions.view().oldest(), Some(Version(629)));
    assert_eq!((count(0xf2), count(0xf3)), (10, 0));
    // The metas of all readable versions stay, and of 20 before them. They once were kept for the head alone, so that after a
    // rollback the chain could not be executed on.
    assert_eq!((count(0xf0), count(0xf1)), (31, 31));
    let meta = |version| versions.view().meta(Version(version)).expect("reads");
    assert!(meta(629 - 20).is_some());
    assert!(meta(629 - 21).is_none());

    let read = |version| versions.view().get_at(Version(version), ACCOUNTS, b"once");
    assert_eq!(read(630).expect("reads"), Some(value("x")));
    let before = store.gets();
    assert_eq!(read(629).expect("reads"), Some(value("x")));
    assert_eq!(
        store.gets() - before,
        1,
        "only version 630 was not looked at yet"
    );
    versions.prune(Retain::None).expect("prunes");
    assert_eq!(count(0xf2), 0);
    assert_eq!((count(0xf0), count(0xf1)), (21, 21));
}

#[test]
fn pruning_removes_whole_indexes() {
    let (store, mut versions) = long_history(Retain::All);
    let epochs = |store: &FaultyStore| {
        let scan = store.scan(Table(0xf3), b"", b"").expect("scans");
        let mut epochs: Vec<_> = scan.map(|entry| entry.expect("reads").0[7]).collect();
        epochs.dedup();
        epochs
    };
    assert_eq!(epochs(&store), (0..10).collect::<Vec<_>>());
    let pruned = versions.prune_before(Version(200)).expect("prunes");
    assert_eq!((pruned.versions, pruned.epochs), (200, 3));
    assert_eq!(epochs(&store), (3..10).collect::<Vec<_>>());
    let view = versions.view();
    let old = view
        .get_at(Version(200), ACCOUNTS, b"often")
        .expect("reads");
    assert_eq!(old, Some(value("200")));
    assert!(view.get_at(Version(199), ACCOUNTS, b"often").is_err());
}

/// It was the difference of how many indexes there were before and after, and its flush had built one.
#[test]
fn a_prune_whose_flush_builds_an_index_counts_those_that_it_removes() {
    let options = Options {
        epoch: 4,
        dirty_bytes: usize::MAX,
        ..options()
    };
    let store = Arc::new(MemoryStore::default());
    let made = Versions::create(store, None, &identity(), &tables(), options);
    let mut versions = made.expect("created");
    for number in 0..12 {
        if number == 8 {
            versions.flush().expect("flushes");
        }
        let nothing = Default::default();
        versions.apply(meta(number), nothing).expect("applies");
    }
    let pruned = versions.prune_before(Version(4)).expect("prunes");
    assert_eq!((pruned.versions, pruned.epochs), (4, 1));
}

/// What is not read any more takes no memory until the next flush.
#[test]
fn undo_of_unflushed_versions_is_dropped_at_once() {
    let pending = |retain| {
        let options = Options {
            dirty_bytes: usize::MAX,
            retain,
            ..options()
        };
        let store = Arc::new(MemoryStore::default());
        let made = Versions::create(store, None, &identity(), &tables(), options);
        let mut versions = made.expect("created");
        let after = |version: u64| {
            let (old, new) = (version.wrapping_sub(1).to_string(), version.to_string());
            let changes = change("key", (version > 0).then_some(&*old), Some(&new));
            versions.apply(meta(version), changes).expect("applies");
            versions.stats().pending_undo_bytes
        };
        (0..9).map(after).collect::<Vec<_>>()
    };
    let (all, some) = (pending(Retain::All), pending(Retain::Last(3)));
    assert!(all.is_sorted_by(|before, after| before < after), "{all:?}");
    assert_eq!(some[..4], all[..4]);
    assert!(some[3..].iter().all(|bytes| *bytes == some[3]), "{some:?}");
    assert_eq!(pending(Retain::None), [0; 9]);
}

/// What comes and goes between two flushes, or ends as it began, costs no write.
#[test]
fn a_flush_writes_only_differences() {
    let store = Arc::new(MemoryStore::default());
    let options = Options {
        dirty_bytes: usize::MAX,
        cache_bytes: 1 << 20,
        retain: Retain::None,
        ..options()
    };
    let made = Versions::create(store, None, &identity(), &tables(), options);
    let mut versions = made.expect("created");
    let mut next = 0;
    let mut apply = |versions: &mut Versions, key: &str, old, new| {
        let mut changes = change(key, old, new);
        changes.put_node(support::NODES, key.as_bytes(), new.map(str::as_bytes));
        versions.apply(meta(next), changes).expect("applies");
        next += 1;
    };
    apply(&mut versions, "stays", None, Some("1"));
    assert_eq!(versions.flush().expect("flushes").keys, 2);
    apply(&mut versions, "passes", None, Some("1"));
    apply(&mut versions, "passes", Some("1"), None);
    apply(&mut versions, "stays", Some("1"), Some("2"));
    apply(&mut versions, "stays", Some("2"), Some("1"));
    let flush = versions.flush().expect("flushes");
    assert_eq!((flush.keys, flush.bytes.flat, flush.bytes.nodes), (0, 0, 0));
    // The passing node, the staying account and the staying node; the passing account left no trace.
    assert_eq!(flush.skipped, 3);
}

/// Very many changes are put by two threads where a flush may have one of its own.
#[test]
fn two_threads_put_what_one_does() {
    let filled = |background: bool| {
        let options = Options {
            dirty_bytes: usize::MAX,
            background,
            ..options()
        };
        let store = Arc::new(MemoryStore::default());
        let made = Versions::create(store.clone(), None, &identity(), &tables(), options);
        let mut versions = made.expect("created");
        for version in 0..2u64 {
            let mut changes = arbor_versions::Changes::default();
            for number in 0..10_000u64 {
                let key = (number * (1 + version)).to_be_bytes();
                let before = version == 1 && 2 * number < 10_000;
                changes.put_flat(arbor_versions::Change {
                    table: ACCOUNTS,
                    key: &key,
                    old: before.then_some(b"0"),
                    new: Some([b"0", b"1"][version as usize]),
                });
                changes.put_node(support::NODES, &key, Some(&key));
            }
            versions.apply(meta(version), changes).expect("applies");
        }
        let bytes = versions.stats().dirty_bytes;
        let undo = versions.view().undo_since(Version(0)).expect("retained");
        let flushed = versions.flush().expect("flushes").keys;
        let records = |table| {
            let records = store.scan(table, b"", b"").expect("scans");
            records
                .map(|record| record.expect("reads"))
                .collect::<Vec<_>>()
        };
        (
            bytes,
            undo,
            flushed,
            records(ACCOUNTS),
            records(support::NODES),
        )
    };
    let (one, two) = (filled(false), filled(true));
    assert_eq!(one.3.len(), 15_000);
    assert!(one == two);
}

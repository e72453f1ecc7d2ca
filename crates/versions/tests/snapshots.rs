//! Snapshots read on in other threads while the writer applies, flushes, prunes and rolls back.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use crate::support::{ACCOUNTS, NODES, identity, meta, options, tables, value};
use arbor_store::{MemoryStore, Write};
use arbor_versions::{Change, Changes, Options, Retain, Snapshot, Version, Versions};

const KEYS: u64 = 50;

/// In version `v` every key holds the number of the last version that changed it.
fn changed_last(key: u64, version: u64) -> u64 {
    version - (version + key) % 7
}

fn key(number: u64) -> Box<[u8]> {
    Box::new(number.to_be_bytes())
}

fn changes(version: u64) -> Changes {
    let mut changes = Changes::default();
    for number in 0..KEYS {
        let old = version
            .checked_sub(1)
            .map(|before| changed_last(number, before.max(7)));
        let new = changed_last(number, version.max(7));
        let (before, after) = (old.map(|old| old.to_string()), new.to_string());
        if old != Some(new) {
            changes.put_flat(Change {
                table: ACCOUNTS,
                key: &key(number),
                old: before.as_deref().map(str::as_bytes),
                new: Some(after.as_bytes()),
            });
            changes.put_node(NODES, &key(number), Some(after.as_bytes()));
        }
    }
    changes
}

fn check(snapshot: &Snapshot) {
    let view = snapshot.view();
    let head = view.head().expect("a head").version.0;
    let oldest = view.oldest().expect("an oldest").0;
    for number in 0..KEYS {
        let wanted = |version: u64| value(changed_last(number, version.max(7)).to_string());
        for table in [ACCOUNTS, NODES] {
            let read = view.get(table, &key(number)).expect("reads");
            assert_eq!(read, Some(wanted(head)));
        }
        for version in [oldest, oldest.midpoint(head), head] {
            let read = view
                .get_at(Version(version), ACCOUNTS, &key(number))
                .expect("reads");
            assert_eq!(
                read,
                Some(wanted(version)),
                "version {version} of {oldest} to {head}"
            );
        }
    }
    assert_eq!(
        view.scan(ACCOUNTS, b"", b"").expect("scans").count() as u64,
        KEYS
    );
}

#[test]
fn snapshots_stay_as_they_were() {
    for background in [false, true] {
        let options = Options {
            dirty_bytes: 20_000,
            retain: Retain::Last(20),
            background,
            ..options()
        };
        let store = Arc::new(MemoryStore::default());
        let made = Versions::create(store, None, &identity(), &tables(), options);
        let mut versions = made.expect("created");
        let (to_readers, snapshots) = mpsc::channel::<Snapshot>();
        let reader = thread::spawn(move || {
            let mut held: Vec<Snapshot> = Vec::new();
            let mut count = 0;
            for snapshot in snapshots {
                held.push(snapshot);
                held.iter().for_each(check);
                count += held.len();
                if held.len() == 8 {
                    held.drain(..7);
                }
            }
            count
        });
        let mut version = 0;
        for step in 0..400 {
            versions
                .apply(meta(version), changes(version))
                .expect("applies");
            version += 1;
            if step % 3 == 0 {
                let snapshot = versions.snapshot().expect("a snapshot");
                to_readers.send(snapshot).expect("a reader");
            }
            if step % 50 == 49 {
                versions.prune(Retain::Last(10)).expect("prunes");
                let to = Version(version - 4);
                let undo = versions.view().undo_since(to).expect("retained");
                let nodes = undo.iter().map(|write| Write {
                    table: NODES,
                    ..write.clone()
                });
                let nodes = nodes.collect();
                versions.rollback(to, undo, nodes).expect("rolls back");
                version -= 3;
            }
        }
        assert!(versions.stats().flush.flushes > 10);
        drop(to_readers);
        assert!(reader.join().expect("every check held") > 130);
    }
}

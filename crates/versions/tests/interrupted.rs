//! Flushes that end amid their work, by an error or a panic of the store: nothing of them is believed, and the next one brings all.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use crate::support::*;
use arbor_store::{MemoryStore, Reader, Scan, Store, StoreError, Table, Value, Write};
use arbor_versions::{Change, Changes, Options, Version, Versions};

const KEYS: u64 = 3_000;
/// The second version deletes the nodes from here on.
const KEPT: u64 = 2_000;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    None,
    /// After so many writes.
    IngestFails(usize),
    IngestPanics(usize),
    /// Of the callers' tables.
    GetFails,
    GetPanics,
}

struct Unreliable {
    inner: MemoryStore,
    fault: Mutex<Fault>,
}

impl Unreliable {
    fn fault(&self) -> Fault {
        *self.fault.lock().expect("not poisoned")
    }

    fn set(&self, fault: Fault) {
        *self.fault.lock().expect("not poisoned") = fault;
    }

    fn error() -> StoreError {
        StoreError::Engine {
            operation: "test",
            cause: "asked for".into(),
        }
    }

    fn values(&self, table: Table) -> Vec<Value> {
        let scan = self.inner.scan(table, b"", b"").expect("scans");
        scan.map(|entry| entry.expect("reads").1).collect()
    }
}

impl Reader for Unreliable {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StoreError> {
        let asked = table == NODES;
        match self.fault() {
            Fault::GetFails if asked => Err(Self::error()),
            Fault::GetPanics if asked => panic!("asked for"),
            _ => self.inner.get(table, key),
        }
    }

    fn scan<'a>(
        &'a self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Scan<'a>, StoreError> {
        self.inner.scan(table, prefix, from)
    }
}

impl Store for Unreliable {
    fn write(&self, writes: &[Write], durable: bool) -> Result<(), StoreError> {
        self.inner.write(writes, durable)
    }

    fn ingest(&self, sorted: &mut dyn Iterator<Item = Write>) -> Result<(), StoreError> {
        match self.fault() {
            Fault::IngestFails(after) => {
                sorted.take(after).for_each(drop);
                Err(Self::error())
            }
            Fault::IngestPanics(after) => {
                sorted.take(after).for_each(drop);
                panic!("asked for")
            }
            _ => self.inner.ingest(sorted),
        }
    }

    fn delete_prefix(&self, table: Table, prefix: &[u8]) -> Result<(), StoreError> {
        self.inner.delete_prefix(table, prefix)
    }

    fn snapshot(&self) -> Result<Box<dyn Reader>, StoreError> {
        self.inner.snapshot()
    }

    fn compact(&self) -> Result<(), StoreError> {
        self.inner.compact()
    }

    fn disk_bytes(&self) -> Result<Option<u64>, StoreError> {
        self.inner.disk_bytes()
    }
}

/// All keys set to a text, but that nodes from `kept` on are deleted.
fn changes(old: Option<&str>, new: &str, kept: u64) -> Changes {
    let mut changes = Changes::default();
    for key in 0..KEYS {
        let record = (key < kept).then_some(new.as_bytes());
        let key = key.to_be_bytes();
        changes.put_flat(Change {
            table: ACCOUNTS,
            key: &key,
            old: old.map(str::as_bytes),
            new: Some(new.as_bytes()),
        });
        changes.put_node(NODES, &key, record);
    }
    changes
}

fn check(fault: Fault, background: bool, cache_bytes: u64) {
    let store = Arc::new(Unreliable {
        inner: MemoryStore::default(),
        fault: Mutex::new(Fault::None),
    });
    let options = Options {
        dirty_bytes: usize::MAX,
        ingest_above: 0,
        background,
        cache_bytes,
        ..options()
    };
    let created = Versions::create(store.clone(), None, &identity(), &tables(), options);
    let mut versions = created.expect("created");
    let first = changes(None, "a", KEYS);
    versions.apply(meta(0), first).expect("applied");
    versions.flush().expect("flushed");
    let second = changes(Some("a"), "b", KEPT);
    versions.apply(meta(1), second).expect("applied");

    store.set(fault);
    let flushed = catch_unwind(AssertUnwindSafe(|| versions.flush()));
    // What is deleted is looked for in the store only where the cache does not know it.
    let reads = matches!(fault, Fault::GetFails | Fault::GetPanics);
    assert!(
        flushed.is_err() || flushed.is_ok_and(|flushed| flushed.is_err() || reads),
        "{fault:?}"
    );
    if !reads {
        let values = store.values(ACCOUNTS);
        assert!(values.iter().all(|found| *found == value("a")), "{fault:?}");
    }
    store.set(Fault::None);
    versions.flush().expect("flushed");
    assert_eq!(versions.flushed(), Some(Version(1)));
    for (table, count) in [(ACCOUNTS, KEYS), (NODES, KEPT)] {
        let values = store.values(table);
        let context = format!("{fault:?}, background {background}, cache {cache_bytes}");
        assert_eq!(values.len() as u64, count, "{context}");
        assert!(values.iter().all(|found| *found == value("b")), "{context}");
    }
}

#[test]
fn what_a_failed_flush_left_out_the_next_one_writes() {
    let ends = [1, 511, 513, 2_999, 4_500, usize::MAX];
    let of_ingestions = |end| [Fault::IngestFails(end), Fault::IngestPanics(end)];
    let faults = ends.into_iter().flat_map(of_ingestions);
    for fault in faults.chain([Fault::GetFails, Fault::GetPanics]) {
        for cache_bytes in [0, 4_096, 64 << 20] {
            check(fault, false, cache_bytes);
            check(fault, true, cache_bytes);
        }
    }
}

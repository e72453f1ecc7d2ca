//! Tables, settings and a failing store for the tests of this crate.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arbor_store::{MemoryStore, Reader, Scan, Store, StoreError, Table, Value, Write};
use arbor_versions::{
    Change, Changes, Identity, Meta, Options, Retain, TableKind, TableSpec, Version,
};

pub(crate) const ACCOUNTS: Table = Table(1);
pub(crate) const SLOTS: Table = Table(2);
pub(crate) const NODES: Table = Table(3);
pub(crate) const CODE: Table = Table(4);

pub(crate) fn tables() -> Vec<TableSpec> {
    [
        (ACCOUNTS, "accounts", TableKind::Flat),
        (SLOTS, "slots", TableKind::Flat),
        (NODES, "nodes", TableKind::Nodes),
        (CODE, "code", TableKind::Blobs),
    ]
    .map(|(table, name, kind)| TableSpec { table, name, kind })
    .to_vec()
}

pub(crate) fn identity() -> Identity {
    Identity {
        tree: "mpt".into(),
        revision: "1".into(),
        hash: "keccak256".into(),
        layout: 1,
        chain_id: 1,
        genesis: [7; 32],
    }
}

/// Everything small, so that a short history meets every case.
pub(crate) fn options() -> Options {
    Options {
        cache_bytes: 4096,
        dirty_bytes: 2000,
        retain: Retain::All,
        durable_each: false,
        background: false,
        ingest_above: 200,
        undo_chunk: 64,
        epoch: 4,
    }
}

pub(crate) fn meta(version: u64) -> Meta {
    Meta {
        version: Version(version),
        block_number: version,
        block_hash: [version as u8; 32],
        root: [!(version as u8); 32],
        extra: version.to_le_bytes().to_vec(),
    }
}

pub(crate) fn value(bytes: impl AsRef<[u8]>) -> Value {
    Value::from(bytes.as_ref())
}

/// A change of one account.
pub(crate) fn change(key: &str, old: Option<&str>, new: Option<&str>) -> Changes {
    Changes {
        flat: vec![Change {
            table: ACCOUNTS,
            key: key.as_bytes().into(),
            old: old.map(value),
            new: new.map(value),
        }],
        ..Changes::default()
    }
}

/// A memory store whose writes fail once a countdown has run out.
#[derive(Default)]
pub(crate) struct FaultyStore {
    inner: MemoryStore,
    /// Writes that still succeed; negative: all.
    left: AtomicI64,
    /// Whether a failing write takes effect before it fails.
    lands: AtomicI64,
    gets: AtomicI64,
}

impl FaultyStore {
    pub(crate) fn new() -> Arc<Self> {
        let store = Self::default();
        store.heal();
        Arc::new(store)
    }

    pub(crate) fn heal(&self) {
        self.left.store(-1, Ordering::SeqCst);
    }

    /// Lets `writes` more writes succeed and all later ones fail.
    pub(crate) fn fail_after(&self, writes: i64, lands: bool) {
        self.lands.store(lands.into(), Ordering::SeqCst);
        self.left.store(writes, Ordering::SeqCst);
    }

    /// Returns how many point reads there have been.
    pub(crate) fn gets(&self) -> i64 {
        self.gets.load(Ordering::SeqCst)
    }

    fn attempt(&self, write: impl FnOnce() -> Result<(), StoreError>) -> Result<(), StoreError> {
        match self.left.load(Ordering::SeqCst) {
            0 => {
                if self.lands.load(Ordering::SeqCst) != 0 {
                    write()?;
                }
                Err(StoreError::Engine {
                    operation: "write",
                    cause: "a fault was asked for".into(),
                })
            }
            left => {
                self.left.store(left - 1, Ordering::SeqCst);
                write()
            }
        }
    }
}

impl Reader for FaultyStore {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StoreError> {
        self.gets.fetch_add(1, Ordering::SeqCst);
        self.inner.get(table, key)
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

impl Store for FaultyStore {
    fn write(&self, writes: &[Write], durable: bool) -> Result<(), StoreError> {
        self.attempt(|| self.inner.write(writes, durable))
    }

    fn ingest(&self, sorted: &mut dyn Iterator<Item = Write>) -> Result<(), StoreError> {
        self.attempt(|| self.inner.ingest(sorted))
    }

    fn delete_prefix(&self, table: Table, prefix: &[u8]) -> Result<(), StoreError> {
        self.attempt(|| self.inner.delete_prefix(table, prefix))
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

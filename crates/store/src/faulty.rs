//! A store that fails as disks do, around one that does not.
//!
//! What an engine itself must withstand, a write cut short within its files, is tried on those files. Here it is the
//! caller that is tried: a call that fails with nothing done, one that fails though all is done, one whose sync failed so
//! that it is seen until the next crash and gone thereafter, and records that come back other than they were stored.
//!
//! ```
//! use std::sync::Arc;
//! use arbor_store::faulty::{Failure, FaultyStore};
//! use arbor_store::{MemoryStore, Reader, Store, Table, Write};
//!
//! let store = FaultyStore::new(Arc::new(MemoryStore::default()));
//! store.fail_after(1, Failure::Unsynced);
//! store.write(&[Write::put(Table(1), b"a", b"1")], true)?;
//! assert!(store.write(&[Write::put(Table(1), b"b", b"2")], true).is_err());
//! assert!(store.get(Table(1), b"b")?.is_some());
//! store.reopen();
//! assert!(store.get(Table(1), b"b")?.is_none());
//!
//! store.flip(Table(1), b"a", 0);
//! assert_eq!(store.get(Table(1), b"a")?.as_deref(), Some(&b"0"[..]));
//! # Ok::<(), arbor_store::StoreError>(())
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Reader, Scan, Store, StoreError, Table, Value, Write};

/// What a failing call has done when it fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// Nothing.
    Refused,
    /// Everything, durably: only the answer was lost.
    Landed,
    /// Everything, until [`FaultyStore::reopen`]: the sync failed.
    Unsynced,
}

/// A store whose changing calls fail once a countdown has run out, and whose records can be damaged.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    plan: Mutex<Plan>,
    gets: AtomicU64,
}

#[derive(Default)]
struct Plan {
    /// Calls that still succeed, and what happens then; `None`: all succeed.
    fails: Option<(u64, Failure)>,
    /// What was there before unsynced calls, the oldest first.
    before: Vec<Vec<Write>>,
    /// The record that comes back damaged, and the bit of its value, counted from the first byte's lowest.
    flipped: Option<(Table, Box<[u8]>, usize)>,
}

impl FaultyStore {
    /// Wraps a store; nothing fails yet.
    pub fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            plan: Mutex::default(),
            gets: AtomicU64::new(0),
        })
    }

    /// Lets `calls` more changing calls succeed and all later ones fail, as an engine does that has failed once.
    pub fn fail_after(&self, calls: u64, failure: Failure) {
        self.plan().fails = Some((calls, failure));
    }

    /// Lets calls succeed again.
    pub fn heal(&self) {
        self.plan().fails = None;
    }

    /// Does what a crash and a new opening do: calls succeed again, and what was not synced is gone.
    ///
    /// # Panics
    /// If the store below fails.
    pub fn reopen(&self) {
        self.heal();
        let before = std::mem::take(&mut self.plan().before);
        for writes in before.into_iter().rev() {
            self.inner
                .write(&writes, true)
                .expect("the store below works");
        }
    }

    /// Flips a bit of a record's value whenever it is read, counted from the lowest of the first byte. One record at a time.
    pub fn flip(&self, table: Table, key: &[u8], bit: usize) {
        self.plan().flipped = Some((table, key.into(), bit));
    }

    /// Reads everything as it was stored again.
    pub fn unflip(&self) {
        self.plan().flipped = None;
    }

    /// Returns how many point reads there have been.
    pub fn gets(&self) -> u64 {
        self.gets.load(Ordering::Relaxed)
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a call that would change what `keys` tells, unless its time has come.
    fn attempt(
        &self,
        operation: &'static str,
        keys: impl FnOnce() -> Result<Vec<(Table, Box<[u8]>)>, StoreError>,
        call: impl FnOnce() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let failure = match &mut self.plan().fails {
            None => None,
            Some((0, failure)) => Some(*failure),
            Some((left, _)) => {
                *left -= 1;
                None
            }
        };
        match failure {
            None => return call(),
            Some(Failure::Refused) => {}
            Some(Failure::Landed) => call()?,
            Some(Failure::Unsynced) => {
                let before = keys()?.into_iter().map(|(table, key)| {
                    let value = self.inner.get(table, &key)?;
                    Ok(Write { table, key, value })
                });
                let before = before.collect::<Result<_, StoreError>>()?;
                call()?;
                self.plan().before.push(before);
            }
        }
        Err(StoreError::Engine {
            operation,
            cause: "a fault was asked for".into(),
        })
    }

    fn damaged(&self, table: Table, key: &[u8], value: Value) -> Value {
        match &self.plan().flipped {
            Some((t, k, bit)) if *t == table && **k == *key && bit / 8 < value.len() => {
                let mut bytes = value.to_vec();
                bytes[bit / 8] ^= 1 << (bit % 8);
                bytes.into()
            }
            _ => value,
        }
    }
}

impl Reader for FaultyStore {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StoreError> {
        self.gets.fetch_add(1, Ordering::Relaxed);
        let found = self.inner.get(table, key)?;
        Ok(found.map(|value| self.damaged(table, key, value)))
    }

    fn scan<'a>(
        &'a self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Scan<'a>, StoreError> {
        let scan = self.inner.scan(table, prefix, from)?;
        Ok(Box::new(scan.map(move |entry| {
            let (key, value) = entry?;
            let value = self.damaged(table, &key, value);
            Ok((key, value))
        })))
    }
}

impl Store for FaultyStore {
    fn write(&self, writes: &[Write], durable: bool) -> Result<(), StoreError> {
        let keys = || {
            Ok(writes
                .iter()
                .map(|write| (write.table, write.key.clone()))
                .collect())
        };
        self.attempt("write", keys, || self.inner.write(writes, durable))
    }

    fn ingest(&self, sorted: &mut dyn Iterator<Item = Write>) -> Result<(), StoreError> {
        let writes: Vec<Write> = sorted.collect();
        let keys = || {
            Ok(writes
                .iter()
                .map(|write| (write.table, write.key.clone()))
                .collect())
        };
        self.attempt("ingest", keys, || {
            self.inner.ingest(&mut writes.iter().cloned())
        })
    }

    fn delete_prefix(&self, table: Table, prefix: &[u8]) -> Result<(), StoreError> {
        let keys = || {
            let scan = self.inner.scan(table, prefix, &[])?;
            scan.map(|entry| Ok((table, entry?.0))).collect()
        };
        self.attempt("delete_prefix", keys, || {
            self.inner.delete_prefix(table, prefix)
        })
    }

    /// A snapshot is not damaged.
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

//! A store on a disk that is slower than the one below, and what a store is asked for.
//!
//! What the system has in memory of a store's files hides what a small or a slow disk would make of a workload. Here each request takes what it would take there:
//! requests are spaced so that no more than so many begin in a second, and each lasts so long besides. They are counted, for the whole
//! process (`STORE_READS` and its neighbours), whether or not the disk is slowed down.
//!
//! | what | requests |
//! |---|---|
//! | a value that is read | 1; none for a key that is absent, which an engine's filters answer |
//! | a scan | 1 for each [`BLOCK`] of keys and values that it gives; those of other tables [by owner](Table::is_by_owner) between them are not counted |
//! | writes of one call | 1 for each [`PIECE`] of keys and values, at least 1 |
//!
//! Only what lies above is taken for a cache: an engine's own, and the system's, help nothing. What an engine merges later is not in it.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use arbor_metrics::{STORE_READ_BYTES, STORE_READS};
//! use arbor_store::disk::{Disk, Limits};
//! use arbor_store::{MemoryStore, Reader, Store, Table, Write};
//!
//! let limits = Limits { per_second: 10_000, latency: Duration::from_micros(100) };
//! let store = Disk::new(Arc::new(MemoryStore::default()), Some(limits));
//! store.write(&[Write::put(Table(1), b"a", b"1")], true)?;
//! assert!(store.get(Table(1), b"a")?.is_some());
//! assert!(store.get(Table(1), b"b")?.is_none());
//! assert_eq!((STORE_READS.get(), STORE_READ_BYTES.get()), (1, 2));
//! # Ok::<(), arbor_store::StoreError>(())
//! ```

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arbor_metrics::{STORE_READ_BYTES, STORE_READS, STORE_WRITES, STORE_WRITTEN_BYTES};

use crate::{Reader, Scan, Store, StoreError, Table, Value, Write};

/// Bytes that a scan gets with one request.
pub const BLOCK: u64 = 4 << 10;
/// Bytes that one request writes at most: what the disks of large clouds count as one.
pub const PIECE: u64 = 256 << 10;

/// How slow a disk is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Requests that begin within a second, at least 1.
    pub per_second: u32,
    /// How long each takes.
    pub latency: Duration,
}

/// A store, or a snapshot of one, whose requests are counted, and take their time if there are limits.
pub struct Disk<R = Arc<dyn Store>> {
    inner: R,
    meter: Arc<Meter>,
}

#[derive(Default)]
struct Meter {
    limits: Option<Limits>,
    /// When the next request may begin.
    free: Mutex<Option<Instant>>,
}

impl Disk {
    /// Puts a store on a disk: of these limits, or as fast as it is.
    pub fn new(inner: Arc<dyn Store>, limits: Option<Limits>) -> Arc<Self> {
        let meter = Meter {
            limits,
            ..Meter::default()
        };
        Arc::new(Self {
            inner,
            meter: Arc::new(meter),
        })
    }
}

impl Meter {
    fn read(&self, requests: u64, bytes: usize) {
        STORE_READ_BYTES.add(bytes as u64);
        if requests > 0 {
            STORE_READS.add(requests);
            self.wait(requests);
        }
    }

    fn wrote(&self, bytes: u64) {
        let requests = bytes.div_ceil(PIECE).max(1);
        STORE_WRITTEN_BYTES.add(bytes);
        STORE_WRITES.add(requests);
        self.wait(requests);
    }

    /// Waits until requests that come one after the other are done.
    fn wait(&self, requests: u64) {
        let Some(Limits {
            per_second,
            latency,
        }) = self.limits
        else {
            return;
        };
        let spacing = Duration::from_nanos(1_000_000_000 / u64::from(per_second.max(1)));
        let count = u32::try_from(requests).unwrap_or(u32::MAX);
        let now = Instant::now();
        let begin = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let begin = free.map_or(now, |free| free.max(now));
            *free = Some(begin + spacing * count);
            begin
        };
        // The last one begins when those before it have their distance, and are done: whichever is later.
        let done = begin + spacing.max(latency) * (count - 1) + latency;
        std::thread::sleep(done - now);
    }

    fn found(&self, key: &[u8], value: &Option<Value>) {
        if let Some(value) = value {
            self.read(1, key.len() + value.len());
        }
    }

    /// Lets a scan's entries through, each block of which is a request.
    fn scan<'a>(&'a self, scan: Scan<'a>) -> Scan<'a> {
        let mut left = 0u64;
        Box::new(scan.inspect(move |entry| {
            let Ok((key, value)) = entry else { return };
            let bytes = key.len() + value.len();
            let more = (bytes as u64).saturating_sub(left).div_ceil(BLOCK);
            left = left + more * BLOCK - bytes as u64;
            self.read(more, bytes);
        }))
    }
}

fn bytes(write: &Write) -> u64 {
    (write.key.len() + write.value.as_ref().map_or(0, |value| value.len())) as u64
}

impl<R: Deref<Target: Reader> + Send + Sync> Reader for Disk<R> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StoreError> {
        let found = self.inner.get(table, key)?;
        self.meter.found(key, &found);
        Ok(found)
    }

    fn multi_get(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, StoreError> {
        let found = self.inner.multi_get(table, keys)?;
        let pairs = keys.iter().zip(&found);
        pairs.for_each(|(key, value)| self.meter.found(key, value));
        Ok(found)
    }

    fn scan<'a>(
        &'a self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Scan<'a>, StoreError> {
        Ok(self.meter.scan(self.inner.scan(table, prefix, from)?))
    }
}

impl Store for Disk {
    fn write(&self, writes: &[Write], durable: bool) -> Result<(), StoreError> {
        self.inner.write(writes, durable)?;
        self.meter.wrote(writes.iter().map(bytes).sum());
        Ok(())
    }

    fn ingest(&self, sorted: &mut dyn Iterator<Item = Write>) -> Result<(), StoreError> {
        let mut written = 0;
        self.inner
            .ingest(&mut sorted.inspect(|write| written += bytes(write)))?;
        self.meter.wrote(written);
        Ok(())
    }

    fn delete_prefix(&self, table: Table, prefix: &[u8]) -> Result<(), StoreError> {
        self.inner.delete_prefix(table, prefix)?;
        self.meter.wrote(0);
        Ok(())
    }

    fn snapshot(&self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(Disk {
            inner: self.inner.snapshot()?,
            meter: Arc::clone(&self.meter),
        }))
    }

    fn compact(&self) -> Result<(), StoreError> {
        self.inner.compact()
    }

    fn disk_bytes(&self) -> Result<Option<u64>, StoreError> {
        self.inner.disk_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;
    use crate::conformance::{Files, Subject, run};

    fn disk(limits: Option<Limits>) -> Arc<Disk> {
        Disk::new(Arc::new(MemoryStore::default()), limits)
    }

    /// Lower bounds alone: a busy machine takes longer.
    #[test]
    fn requests_take_their_time() {
        let latency = Duration::from_millis(2);
        let slow = |per_second| {
            let disk = disk(Some(Limits {
                per_second,
                latency,
            }));
            let start = Instant::now();
            for _ in 0..10 {
                disk.write(&[], false).expect("written");
            }
            start.elapsed()
        };
        assert!(slow(1_000_000) >= latency * 10);
        assert!(slow(100) >= Duration::from_millis(90) + latency);
    }

    #[test]
    fn it_is_a_store_as_any_other() {
        run(&Subject {
            open: &|_name| disk(None),
            files: Files::None,
        });
    }
}

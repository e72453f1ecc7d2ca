//! Reads, from the live store and from snapshots.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arbor_store::{KeyRange, Reader, Scan, StoreError, Table, Value};
use fjall::{Guard, Keyspace, Readable, Snapshot, UserValue};

use crate::errors::sorted;

/// The key as the engine has it: the table's byte first.
pub(crate) fn engine_key(table: Table, key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + key.len());
    bytes.push(table.0);
    bytes.extend_from_slice(key);
    bytes
}

/// Calls `read` with the engine's key, which is on the stack for keys of ordinary length.
pub(crate) fn with_engine_key<T>(table: Table, key: &[u8], read: impl FnOnce(&[u8]) -> T) -> T {
    const ORDINARY: usize = 96;
    let mut buffer = [0; ORDINARY + 1];
    match buffer.get_mut(..=key.len()) {
        Some(bytes) => {
            bytes[0] = table.0;
            bytes[1..].copy_from_slice(key);
            read(bytes)
        }
        None => read(&engine_key(table, key)),
    }
}

pub(crate) fn to_value(found: &UserValue) -> Value {
    (&**found).into()
}

/// Many keys of one snapshot.
pub(crate) fn multi_get(
    snapshot: &Snapshot,
    keyspace: &Keyspace,
    pace: &Pace,
    table: Table,
    keys: &[&[u8]],
) -> fjall::Result<Vec<Option<Value>>> {
    in_flight(pace, keys, |key| {
        with_engine_key(table, key, |key| snapshot.get(keyspace, key))
            .map(|found| found.as_ref().map(to_value))
    })
}

/// Items that are read one after the other before it is asked how long they took.
const FIRST: usize = 4;
/// What an item takes at least if it comes from the disk; from memory it takes a tenth.
const SLOW: Duration = Duration::from_micros(40);
/// Threads that wait for one database's disk side by side, whoever started them.
const WAITING: usize = 16;
/// Items that are worth a thread.
const SHARE: usize = 4;

/// Whether what was read last came from the disk, and how many threads wait for it.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    slow: AtomicBool,
    waiting: AtomicUsize,
}

/// Threads that one caller may start, as long as it holds this.
struct Places<'a> {
    pace: &'a Pace,
    count: usize,
}

impl Drop for Places<'_> {
    fn drop(&mut self) {
        self.pace.waiting.fetch_sub(self.count, Ordering::Relaxed);
    }
}

impl Pace {
    fn learn(&self, items: usize, took: Duration) {
        let slow = took >= SLOW * u32::try_from(items).unwrap_or(u32::MAX);
        self.slow.store(slow, Ordering::Relaxed);
    }

    fn is_slow(&self) -> bool {
        self.slow.load(Ordering::Relaxed)
    }

    /// So many threads, or as many as all callers together may still start.
    fn places(&self, most: usize) -> Places<'_> {
        let free = |waiting: usize| most.min(WAITING.saturating_sub(waiting));
        let (get, put) = (Ordering::Relaxed, Ordering::Relaxed);
        let taken = self
            .waiting
            .fetch_update(put, get, |waiting| Some(waiting + free(waiting)));
        let count = taken.map_or(0, free);
        Places { pace: self, count }
    }
}

/// Reads all items: one after the other while they come from memory, then all that are left side by side, since a disk takes many requests at a time.
fn in_flight<T: Sync, V: Send, E: Send>(
    pace: &Pace,
    items: &[T],
    read: impl Fn(&T) -> Result<V, E> + Sync,
) -> Result<Vec<V>, E> {
    let all = &|items: &[T]| items.iter().map(&read).collect::<Result<Vec<V>, E>>();
    let mut values = Vec::with_capacity(items.len());
    let mut rest = items;
    while !pace.is_slow() || rest.len() < 2 * SHARE {
        let (now, later) = rest.split_at(rest.len().min(FIRST));
        if now.is_empty() {
            return Ok(values);
        }
        let begin = Instant::now();
        values.extend(all(now)?);
        // Fewer may have taken long for another reason.
        if now.len() == FIRST {
            pace.learn(FIRST, begin.elapsed());
        }
        rest = later;
    }
    // Of all threads together.
    let nanoseconds = &AtomicU64::new(0);
    let timed = &|items: &[T]| {
        let begin = Instant::now();
        let values = all(items);
        let took = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        nanoseconds.fetch_add(took, Ordering::Relaxed);
        values
    };
    let count = rest.len();
    let mut places = pace.places(count.div_ceil(SHARE));
    // Where others have started them all, this thread reads until some have ended.
    while places.count == 0 && !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(SHARE));
        values.extend(timed(now)?);
        rest = later;
        places = pace.places(rest.len().div_ceil(SHARE));
    }
    thread::scope(|scope| {
        let share = rest.len().div_ceil(places.count.max(1)).max(SHARE);
        let start = |items| {
            let started = thread::Builder::new().spawn_scoped(scope, move || timed(items));
            // Without another thread this one reads them.
            started.map_err(|_| items)
        };
        let threads: Vec<_> = rest.chunks(share).map(start).collect();
        for thread in threads {
            values.extend(match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic))?,
                Err(items) => timed(items)?,
            });
        }
        let took = Duration::from_nanos(nanoseconds.load(Ordering::Relaxed));
        pace.learn(count, took);
        Ok(values)
    })
}

/// Turns the engine's scan into the store's.
pub(crate) fn to_scan<'a>(path: &'a Path, guards: impl Iterator<Item = Guard> + 'a) -> Scan<'a> {
    Box::new(guards.map(move |guard| {
        let (key, value) = guard
            .into_inner()
            .map_err(|error| sorted(path, "scan", error))?;
        Ok((key[1..].into(), to_value(&value)))
    }))
}

/// A frozen state. It keeps what its files depend on: the database's lock, or a reader's own folder.
pub(crate) struct Frozen<K> {
    pub(crate) snapshot: Snapshot,
    pub(crate) keyspace: Keyspace,
    pub(crate) pace: Pace,
    /// The database's folder, for messages.
    pub(crate) path: PathBuf,
    pub(crate) _kept: K,
}

impl<K: Send + Sync> Reader for Frozen<K> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StoreError> {
        with_engine_key(table, key, |key| self.snapshot.get(&self.keyspace, key))
            .map(|found| found.as_ref().map(to_value))
            .map_err(|error| sorted(&self.path, "get", error))
    }

    fn multi_get(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, StoreError> {
        multi_get(&self.snapshot, &self.keyspace, &self.pace, table, keys)
            .map_err(|error| sorted(&self.path, "multi_get", error))
    }

    fn scan<'a>(
        &'a self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Scan<'a>, StoreError> {
        let Some(range) = KeyRange::in_table(table, prefix, from) else {
            return Ok(Box::new(std::iter::empty()));
        };
        let guards = self
            .snapshot
            .range::<&[u8], _>(&self.keyspace, range.bounds());
        Ok(to_scan(&self.path, guards))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// As many items as are given; reading one takes so long from some item on, and no time before. Item 77 fails.
    fn read_all(
        pace: &Pace,
        count: u32,
        each: Duration,
        from: u32,
    ) -> (Result<Vec<u32>, u32>, usize) {
        let threads = Mutex::new(Vec::new());
        let items: Vec<u32> = (0..count).collect();
        let read = |item: &u32| {
            let thread = thread::current().id();
            let mut threads = threads.lock().expect("no panic");
            if !threads.contains(&thread) {
                threads.push(thread);
            }
            drop(threads);
            if *item >= from {
                thread::sleep(each);
            }
            if *item == 77 {
                Err(*item)
            } else {
                Ok(2 * item)
            }
        };
        let found = in_flight(pace, &items, read);
        (found, threads.into_inner().expect("no panic").len())
    }

    #[test]
    fn callers_share_the_threads() {
        let pace = Pace::default();
        let first = pace.places(WAITING - 3);
        assert_eq!((first.count, pace.places(WAITING).count), (WAITING - 3, 3));
        let second = pace.places(WAITING);
        assert_eq!((second.count, pace.places(1).count), (3, 0));
        // Without any the caller reads all alone.
        pace.learn(1, SLOW);
        let (found, threads) = read_all(&pace, 20, 2 * SLOW, 0);
        assert_eq!(found, Ok((0..20).map(|i| 2 * i).collect()));
        assert_eq!(threads, 1);
        drop(second);
        drop(first);
        assert_eq!(pace.places(usize::MAX).count, WAITING);
    }

    #[test]
    fn slow_reads_are_made_side_by_side_and_come_in_order() {
        let slow = 2 * SLOW;
        for count in [0, 1, 4, 11, 12, 13, 75] {
            for from in [0, 8] {
                let (found, threads) = read_all(&Pace::default(), count, slow, from);
                assert_eq!(found, Ok((0..count).map(|i| 2 * i).collect()));
                // A thread that has to wait for a processor may take reads from memory for slow ones.
                assert!(threads > 1 || count < from + 12, "{count} from {from}");
                assert!(
                    threads <= 1 || count >= 12,
                    "{count} from {from}: {threads}"
                );
            }
        }
        assert_eq!(read_all(&Pace::default(), 100, slow, 0).0, Err(77));
        assert_eq!(
            read_all(&Pace::default(), 100, Duration::ZERO, 0).0,
            Err(77)
        );
    }

    #[test]
    fn what_was_slow_is_read_side_by_side_at_once() {
        let pace = Pace::default();
        let read = |count, each| {
            let (found, threads) = read_all(&pace, count, each, 0);
            assert_eq!(found, Ok((0..count).map(|i| 2 * i).collect()));
            threads
        };
        // Eight of them need no thread if none is known to be slow; then they all wait side by side.
        assert_eq!(read(8, 2 * SLOW), 1);
        assert_eq!(read(8, 2 * SLOW), 2);
        assert_eq!(read(4, 2 * SLOW), 1);
        assert_eq!(read(16, 2 * SLOW), 4);
    }
}

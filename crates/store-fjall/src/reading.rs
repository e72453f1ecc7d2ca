//! Reads, from the live store and from snapshots.

use std::iter;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arbor_store::{
    EngineRange, KeyRange, OWNER_BYTES, Reader, Scan, StoreError, Table, Value, with_engine_key,
};
use fjall::{Keyspace, Readable, Snapshot, UserValue};

use crate::errors::store_error;
use crate::read_pool::{WAITING, side_by_side};

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
    let (snapshot, keyspace) = (snapshot.clone(), keyspace.clone());
    in_flight(pace, keys, move |key| {
        with_engine_key(table, key, |key| snapshot.get(&keyspace, key))
            .map(|found| found.as_ref().map(to_value))
    })
}

/// Keys that are read one after the other before it is asked how long they took.
const FIRST: usize = 4;
/// What a key takes at least if its value comes from the disk; from memory it takes a tenth.
const SLOW: Duration = Duration::from_micros(40);
/// Keys that are worth a thread.
const SHARE: usize = 4;

/// Whether what was read last came from the disk.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    slow: AtomicBool,
}

impl Pace {
    fn learn(&self, items: usize, took: Duration) {
        let slow = took >= SLOW * u32::try_from(items).unwrap_or(u32::MAX);
        self.slow.store(slow, Ordering::Relaxed);
    }

    fn is_slow(&self) -> bool {
        self.slow.load(Ordering::Relaxed)
    }
}

/// Reads all keys: one after the other while their values come from memory, then all that are left side by side, since a disk takes many requests at a time.
fn in_flight<V: Send + 'static, E: Send + 'static>(
    pace: &Pace,
    keys: &[&[u8]],
    read: impl Fn(&[u8]) -> Result<V, E> + Send + Sync + 'static,
) -> Result<Vec<V>, E> {
    let mut values = Vec::with_capacity(keys.len());
    let mut rest = keys;
    while !pace.is_slow() || rest.len() < 2 * SHARE {
        let (now, later) = rest.split_at(rest.len().min(FIRST));
        if now.is_empty() {
            return Ok(values);
        }
        let begin = Instant::now();
        for key in now {
            values.push(read(key)?);
        }
        // Fewer may have taken long for another reason.
        if now.len() == FIRST {
            pace.learn(FIRST, begin.elapsed());
        }
        rest = later;
    }
    let share = rest.len().div_ceil(WAITING).max(SHARE);
    let owned = |keys: &[&[u8]]| keys.iter().map(|key| (*key).into()).collect();
    let shares: Vec<Vec<Box<[u8]>>> = rest.chunks(share).map(owned).collect();
    let read = side_by_side(shares, move |keys| {
        let begin = Instant::now();
        let values: Result<Vec<V>, E> = keys.iter().map(|key| read(key)).collect();
        (values, begin.elapsed())
    });
    // Of all threads together.
    pace.learn(rest.len(), read.iter().map(|(_, took)| *took).sum());
    for (share, _) in read {
        values.extend(share?);
    }
    Ok(values)
}

/// Keys of other tables of one owner that a scan steps over before it looks for the next one of its own.
const STEPS: usize = 16;

/// Scans a table in one of the engine's states.
pub(crate) fn scan<'a>(
    path: &'a Path,
    snapshot: Snapshot,
    keyspace: &'a Keyspace,
    range: EngineRange,
) -> Scan<'a> {
    let guards = move |keys: &KeyRange| snapshot.range::<&[u8], _>(keyspace, keys.bounds());
    let mut entries = guards(&range.keys);
    let (mut owner, mut steps) = ([0; OWNER_BYTES], 0);
    Box::new(iter::from_fn(move || {
        loop {
            let (key, value) = match entries.next()?.into_inner() {
                Ok(entry) => entry,
                Err(error) => return Some(Err(store_error(path, "scan", error))),
            };
            if let Some(key) = range.key(&key) {
                steps = 0;
                return Some(Ok((key, to_value(&value))));
            }
            let of = key.get(1..).and_then(|key| key.first_chunk());
            if let Some(of) = of.filter(|of| **of != owner) {
                (owner, steps) = (*of, 0);
            }
            steps += 1;
            if steps == STEPS {
                steps = 0;
                entries = guards(&range.behind(&key)?);
            }
        }
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
            .map_err(|error| store_error(&self.path, "get", error))
    }

    fn multi_get(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, StoreError> {
        multi_get(&self.snapshot, &self.keyspace, &self.pace, table, keys)
            .map_err(|error| store_error(&self.path, "multi_get", error))
    }

    fn scan<'a>(
        &'a self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Scan<'a>, StoreError> {
        let range = EngineRange::new(table, prefix, from);
        Ok(range.map_or_else(
            || Box::new(iter::empty()) as Scan<'a>,
            |range| scan(&self.path, self.snapshot.clone(), &self.keyspace, range),
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::thread;

    use super::*;

    /// What no thread waits for its turn.
    const LONG: Duration = Duration::from_secs(20);

    /// As many keys as are given; reading one takes so long from some key on, and no time before. Where company is expected the last one waits for a second thread to read, which
    /// on a busy machine may get its turn late. Key 77 fails.
    fn read_all(
        pace: &Pace,
        count: u32,
        each: Duration,
        from: u32,
        company: bool,
    ) -> (Result<Vec<u32>, u32>, usize) {
        let threads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&threads);
        let keys: Vec<[u8; 4]> = (0..count).map(u32::to_be_bytes).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let read = move |key: &[u8]| {
            let thread = thread::current().id();
            let mut threads = seen.lock().expect("no panic");
            if !threads.contains(&thread) {
                threads.push(thread);
            }
            drop(threads);
            let number = u32::from_be_bytes(key.try_into().expect("four bytes"));
            if number >= from {
                thread::sleep(each);
            }
            let begin = Instant::now();
            let alone = || seen.lock().expect("no panic").len() < 2;
            while company && number == count - 1 && alone() && begin.elapsed() < LONG {
                thread::sleep(Duration::from_millis(1));
            }
            if number == 77 {
                Err(number)
            } else {
                Ok(2 * number)
            }
        };
        let found = in_flight(pace, &keys, read);
        let threads = threads.lock().expect("no panic").len();
        (found, threads)
    }

    #[test]
    fn slow_reads_are_made_side_by_side_and_come_in_order() {
        let slow = 2 * SLOW;
        for count in [0, 1, 4, 11, 12, 13, 75] {
            for from in [0, 8] {
                let company = count >= from + 12;
                let (found, threads) = read_all(&Pace::default(), count, slow, from, company);
                assert_eq!(found, Ok((0..count).map(|i| 2 * i).collect()));
                // A thread that has to wait for a processor may take reads from memory for slow ones.
                assert!(threads > 1 || !company, "{count} from {from}");
                assert!(
                    threads <= 1 || count >= 12,
                    "{count} from {from}: {threads}"
                );
            }
        }
        for each in [slow, Duration::ZERO] {
            assert_eq!(read_all(&Pace::default(), 100, each, 0, false).0, Err(77));
        }
    }

    #[test]
    fn what_was_slow_is_read_side_by_side_at_once() {
        let pace = Pace::default();
        let read = |count, each| {
            let (found, threads) = read_all(&pace, count, each, 0, count >= 12);
            assert_eq!(found, Ok((0..count).map(|i| 2 * i).collect()));
            threads
        };
        // Eight of them need no thread if none is known to be slow; then they wait side by side.
        let long = Duration::from_millis(5);
        assert_eq!(read(8, long), 1);
        assert!(pace.is_slow());
        assert_eq!(read(4, long), 1);
        assert!(read(64, long) > 1);
    }
}

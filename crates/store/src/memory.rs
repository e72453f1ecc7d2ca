//! The store without files.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::block_map::{BlockMap, Key, Place};
use crate::{Ascending, KeyRange, Reader, Scan, Store, StoreError, Table, Value, Write, check_key};

type Tables = BTreeMap<Table, Arc<BlockMap>>;

/// Writes to one table, in their order.
type Chunks = Vec<Vec<(Key, Option<Value>)>>;

/// Writes of an ingestion that lie together until all have been looked at: one list of all would be copied as it grows, into memory that the system clears first.
const CHUNK: usize = 1 << 12;

/// Ordered maps in memory: the reference that persistent stores are compared with, and the store
/// of tests and of replays that keep nothing.
///
/// A snapshot costs one reference per table. The first write to a table after a snapshot of it lists that table's blocks anew, of some tens of entries
/// each, once per snapshot that is still alive, and a write copies the blocks that it changes, as long as a snapshot has them too (keys are copied, values shared).
#[derive(Default, Debug)]
pub struct MemoryStore {
    tables: RwLock<Tables>,
}

impl MemoryStore {
    /// Takes the lock to read. A panic elsewhere cannot leave the maps half-written, since every
    /// check comes before the first change, so a poisoned lock is taken all the same.
    fn tables(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn tables_mut(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the writes of different tables side by side: whoever reads waits until all are there.
    fn put_tables(&self, mut writes: BTreeMap<Table, Chunks>) {
        let mut tables = self.tables_mut();
        for table in writes.keys() {
            tables.entry(*table).or_default();
        }
        std::thread::scope(|scope| {
            for (table, map) in tables.iter_mut() {
                if let Some(chunks) = writes.remove(table) {
                    scope.spawn(move || {
                        let map = Arc::make_mut(map);
                        map.put_all(chunks.into_iter().flatten());
                    });
                }
            }
        });
    }
}

impl Reader for MemoryStore {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StoreError> {
        Ok(get(&self.tables(), table, key))
    }

    fn multi_get(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, StoreError> {
        // One lock for all: taking it is as dear as a look-up in a small map, and dearer while other threads take it too.
        let tables = self.tables();
        let values = keys.iter().map(|key| get(&tables, table, key));
        Ok(values.collect())
    }

    fn scan<'a>(
        &'a self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Scan<'a>, StoreError> {
        Ok(scan(&self.tables(), table, prefix, from))
    }
}

impl Store for MemoryStore {
    fn write(&self, writes: &[Write], _durable: bool) -> Result<(), StoreError> {
        writes
            .iter()
            .try_for_each(|write| check_key(write.table, &write.key))?;
        // Of several to one key the last is left.
        let mut last: BTreeMap<Table, BTreeMap<&[u8], &Option<Value>>> = BTreeMap::new();
        for write in writes {
            let of_table = last.entry(write.table).or_default();
            of_table.insert(&write.key, &write.value);
        }
        let mut tables = self.tables_mut();
        for (table, writes) in last {
            let map = Arc::make_mut(tables.entry(table).or_default());
            let writes = writes.into_iter();
            map.put_all(writes.map(|(key, value)| (Key::new(key), value.clone())));
        }
        Ok(())
    }

    fn ingest(&self, sorted: &mut dyn Iterator<Item = Write>) -> Result<(), StoreError> {
        let mut order = Ascending::default();
        let mut tables: BTreeMap<Table, Chunks> = BTreeMap::new();
        for write in sorted {
            order.accept(&write)?;
            let chunks = tables.entry(write.table).or_default();
            // While the key's bytes are at hand: they may come from another thread.
            let write = (Key::new(&write.key), write.value);
            match chunks.last_mut() {
                Some(chunk) if chunk.len() < CHUNK => chunk.push(write),
                _ => {
                    let mut chunk = Vec::with_capacity(CHUNK);
                    chunk.push(write);
                    chunks.push(chunk);
                }
            }
        }
        self.put_tables(tables);
        Ok(())
    }

    fn delete_prefix(&self, table: Table, prefix: &[u8]) -> Result<(), StoreError> {
        let Some(range) = KeyRange::new(prefix, b"") else {
            return Ok(());
        };
        let mut tables = self.tables_mut();
        let Some(map) = tables.get_mut(&table) else {
            return Ok(());
        };
        let doomed: Vec<Box<[u8]>> = OwnedScan::new(map.clone(), &range)
            .map(|entry| entry.map(|(key, _)| key))
            .collect::<Result<_, _>>()?;
        let map = Arc::make_mut(map);
        map.put_all(doomed.iter().map(|key| (Key::new(key), None)));
        Ok(())
    }

    fn snapshot(&self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(Frozen(self.tables().clone())))
    }

    fn compact(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn disk_bytes(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }
}

/// A snapshot: the maps as they were.
struct Frozen(Tables);

impl Reader for Frozen {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StoreError> {
        Ok(get(&self.0, table, key))
    }

    fn scan<'a>(
        &'a self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Scan<'a>, StoreError> {
        Ok(scan(&self.0, table, prefix, from))
    }
}

fn get(tables: &Tables, table: Table, key: &[u8]) -> Option<Value> {
    tables.get(&table)?.get(&Key::new(key)).cloned()
}

fn scan(tables: &Tables, table: Table, prefix: &[u8], from: &[u8]) -> Scan<'static> {
    match (tables.get(&table), KeyRange::new(prefix, from)) {
        (Some(map), Some(range)) => Box::new(OwnedScan::new(map.clone(), &range)),
        _ => Box::new(std::iter::empty()),
    }
}

/// A scan that shares the map, and so needs no lock while it runs.
struct OwnedScan {
    map: Arc<BlockMap>,
    /// What comes next.
    place: Place,
    /// The first key that is not scanned any more, if there is one.
    end: Option<Key>,
}

impl OwnedScan {
    fn new(map: Arc<BlockMap>, range: &KeyRange) -> Self {
        Self {
            place: map.lower_bound(&Key::new(&range.start)),
            end: range.end.as_deref().map(Key::new),
            map,
        }
    }
}

impl Iterator for OwnedScan {
    type Item = Result<(Box<[u8]>, Value), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let ((key, value), next) = self.map.entry_at(self.place)?;
        if self.end.as_ref().is_some_and(|end| key >= end) {
            return None;
        }
        let entry = (key.to_bytes(), value.clone());
        self.place = next;
        Some(Ok(entry))
    }
}

//! The clean cache: what the store holds, and of what was flushed also what it no longer holds.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arbor_store::{Reader, Scan, Store, StoreError, Table, Value};
use foldhash::fast::{FixedState, FoldHasher, RandomState};
use quick_cache::{Equivalent, Weighter, sync::Cache};

use crate::space::FIRST_OWN_TABLE;

#[derive(Clone, PartialEq, Eq, Debug)]
struct CacheKey {
    table: Table,
    key: Arc<[u8]>,
}

impl Hash for CacheKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        KeyRef(self.table, &self.key).hash(state);
    }
}

struct KeyRef<'a>(Table, &'a [u8]);

impl Hash for KeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u8(self.0.0);
        state.write(self.1);
    }
}

impl Equivalent<CacheKey> for KeyRef<'_> {
    fn equivalent(&self, key: &CacheKey) -> bool {
        self.0 == key.table && *self.1 == *key.key
    }
}

/// Bytes of an entry besides key and value: the cache's own slots and two allocations' headers.
const ENTRY_BYTES: u64 = 112;
/// Key and value bytes of a usual entry, from which the cache sizes its list of evicted keys.
const USUAL_BYTES: u64 = 136;

#[derive(Clone, Debug)]
struct Weight;

impl Weighter<CacheKey, Option<Value>> for Weight {
    fn weight(&self, key: &CacheKey, value: &Option<Value>) -> u64 {
        ENTRY_BYTES + key.key.len() as u64 + value.as_ref().map_or(0, |value| value.len() as u64)
    }
}

/// How the cache hashes its keys, on which it depends what it evicts.
#[derive(Clone)]
pub(crate) enum CacheSeed {
    /// Differently in every process: nobody can choose keys that collide.
    Random(RandomState),
    /// The same in every process, so that the same work has the same hits.
    Fixed(FixedState),
}

impl CacheSeed {
    pub(crate) fn random() -> Self {
        Self::Random(RandomState::default())
    }

    pub(crate) fn fixed() -> Self {
        Self::Fixed(FixedState::default())
    }
}

impl BuildHasher for CacheSeed {
    type Hasher = FoldHasher<'static>;

    fn build_hasher(&self) -> Self::Hasher {
        match self {
            Self::Random(seed) => seed.build_hasher(),
            Self::Fixed(seed) => seed.build_hasher(),
        }
    }
}

/// A store read through a cache of bounded weight. Only callers' tables are cached, and an entry
/// equals what the store holds, or what a flush under way is writing to it: until that is done the layer is read first.
pub(crate) struct CachedStore {
    /// None without a budget: over a store that is in memory itself.
    cache: Option<Cache<CacheKey, Option<Value>, Weight, CacheSeed>>,
    budget: u64,
    hits: AtomicU64,
    misses: AtomicU64,
    store: Arc<dyn Store>,
}

impl CachedStore {
    pub(crate) fn new(store: Arc<dyn Store>, bytes: u64, seed: CacheSeed) -> Self {
        let items = usize::try_from(bytes / (ENTRY_BYTES + USUAL_BYTES)).unwrap_or(usize::MAX);
        let cache = || Cache::with(items.max(1), bytes, Weight, seed, Default::default());
        Self {
            cache: (bytes > 0).then(cache),
            budget: bytes,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            store,
        }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// The store, for whoever opens it again.
    pub(crate) fn shared_store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// The weight that it may have.
    pub(crate) fn budget(&self) -> u64 {
        self.budget
    }

    /// Returns the cached value: `None` if nothing is cached, `Some(None)` if the key is absent
    /// from the store. Counts as no use.
    pub(crate) fn peek(&self, table: Table, key: &[u8]) -> Option<Option<Value>> {
        self.cache.as_ref()?.peek(&KeyRef(table, key))
    }

    /// Takes over what the store now holds.
    pub(crate) fn insert(&self, table: Table, key: &[u8], value: Option<&Value>) {
        if let Some(cache) = &self.cache {
            let key = key.into();
            cache.insert(CacheKey { table, key }, value.cloned());
        }
    }

    /// Keeps a value that was read. What is not there a store mostly tells from its filters, and is mostly written next: it would take the
    /// room of others.
    fn remember(&self, table: Table, key: &[u8], value: Option<&Value>) {
        if value.is_some() {
            self.insert(table, key, value);
        }
    }

    pub(crate) fn clear(&self) {
        if let Some(cache) = &self.cache {
            cache.clear();
        }
    }

    /// Returns hits, misses and the present weight in bytes.
    pub(crate) fn usage(&self) -> (u64, u64, u64) {
        let (hits, misses) = (&self.hits, &self.misses);
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let weight = self.cache.as_ref().map_or(0, Cache::weight);
        (load(hits), load(misses), weight)
    }

    fn cached(&self, table: Table, key: &[u8]) -> Option<Option<Value>> {
        let found = self.cache.as_ref()?.get(&KeyRef(table, key));
        let counter = if found.is_some() {
            &self.hits
        } else {
            &self.misses
        };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }
}

impl Drop for CachedStore {
    /// Very many small pieces of memory, which nobody waits to have back, least of all a process that ends.
    fn drop(&mut self) {
        if let Some(cache) = self.cache.take() {
            drop(std::thread::Builder::new().spawn(move || drop(cache)));
        }
    }
}

impl Reader for CachedStore {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StoreError> {
        if table.0 >= FIRST_OWN_TABLE {
            return self.store.get(table, key);
        }
        if let Some(value) = self.cached(table, key) {
            return Ok(value);
        }
        let value = self.store.get(table, key)?;
        self.remember(table, key, value.as_ref());
        Ok(value)
    }

    fn multi_get(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, StoreError> {
        if table.0 >= FIRST_OWN_TABLE || self.cache.is_none() {
            if table.0 < FIRST_OWN_TABLE {
                let count = keys.len() as u64;
                self.misses.fetch_add(count, Ordering::Relaxed);
            }
            return self.store.multi_get(table, keys);
        }
        let mut values: Vec<Option<Value>> = Vec::with_capacity(keys.len());
        let mut missing = Vec::new();
        for (place, key) in keys.iter().enumerate() {
            let found = self.cached(table, key);
            if found.is_none() {
                missing.push((place, *key));
            }
            values.push(found.flatten());
        }
        if missing.is_empty() {
            return Ok(values);
        }
        let wanted: Vec<&[u8]> = missing.iter().map(|(_, key)| *key).collect();
        let read = self.store.multi_get(table, &wanted)?;
        for ((place, key), value) in missing.into_iter().zip(read) {
            self.remember(table, key, value.as_ref());
            values[place] = value;
        }
        Ok(values)
    }

    fn scan<'a>(
        &'a self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Scan<'a>, StoreError> {
        self.store.scan(table, prefix, from)
    }
}

//! The key-value store under every tree.
//!
//! A narrow contract: tables of ordered byte keys, point reads, ordered scans, atomic batches,
//! sorted ingestion and snapshots. [`MemoryStore`] is the reference; the persistent stores live in
//! crates of their own and must pass the same [`conformance`] suite.

use std::sync::Arc;

/// A stored value; cheap to clone and to share between caches.
pub type Value = Arc<[u8]>;

/// A table of a store: one byte before every key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Table(pub u8);

/// One write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Write {
    /// The table.
    pub table: Table,
    /// The key.
    pub key: Box<[u8]>,
    /// The new value; `None` deletes the key.
    pub value: Option<Value>,
}

/// An ordered scan: keys ascending.
pub type Scan<'a> = Box<dyn Iterator<Item = Result<(Box<[u8]>, Value), StoreError>> + 'a>;

/// Reads from one consistent state of a store.
pub trait Reader: Send + Sync {
    /// Returns the value of a key.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StoreError>;

    /// Returns the values of keys, in their order.
    fn multi_get(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, StoreError> {
        keys.iter().map(|key| self.get(table, key)).collect()
    }

    /// Scans the keys that begin with `prefix` and are not below `from`, ascending.
    fn scan<'a>(&'a self, table: Table, prefix: &[u8], from: &[u8]) -> Result<Scan<'a>, StoreError>;
}

/// A store that one process writes.
pub trait Store: Reader + 'static {
    /// Applies all writes or none. With `durable` they survive a power cut on return; without, a
    /// later durable write makes them so, in order.
    fn write(&self, writes: &[Write], durable: bool) -> Result<(), StoreError>;

    /// Applies writes that ascend strictly by (table, key), all or none, durable on return, and
    /// cheaper than [`write`](Store::write) for megabytes of them.
    fn ingest(&self, sorted: &mut dyn Iterator<Item = Write>) -> Result<(), StoreError>;

    /// Deletes every key of a table that begins with `prefix`.
    fn delete_prefix(&self, table: Table, prefix: &[u8]) -> Result<(), StoreError>;

    /// Freezes the present state for reading.
    fn snapshot(&self) -> Result<Box<dyn Reader>, StoreError>;

    /// Merges what is stored so that disk space of overwritten and deleted data is given back.
    fn compact(&self) -> Result<(), StoreError>;

    /// Bytes on disk; `None` for a store without files.
    fn disk_bytes(&self) -> Result<Option<u64>, StoreError>;
}

/// Why a store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Placeholder until the store's author lists the kinds.
    #[error("{0}")]
    Engine(String),
}

//! The traits that every store implements.

use crate::{StoreError, Table, Value, Write};

/// An ordered scan: keys ascending. The state scanned is the one at the call of
/// [`Reader::scan`]; writes made later do not show.
pub type Scan<'a> = Box<dyn Iterator<Item = Result<(Box<[u8]>, Value), StoreError>> + 'a>;

/// Reads from one consistent state of a store.
pub trait Reader: Send + Sync {
    /// Returns the value of a key.
    ///
    /// # Errors
    /// If the engine fails to read, or finds stored bytes damaged.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StoreError>;

    /// Returns the values of keys, in their order; a key may occur several times.
    ///
    /// # Errors
    /// As [`get`](Reader::get), for any of the keys.
    fn multi_get(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, StoreError> {
        keys.iter().map(|key| self.get(table, key)).collect()
    }

    /// Scans the keys that begin with `prefix` and are not below `from`, ascending. `from` is a
    /// whole key (prefix included), or empty to begin at the prefix. Keys are returned whole.
    ///
    /// # Errors
    /// As [`get`](Reader::get); an error while scanning is an item, after which the scan ends.
    fn scan<'a>(&'a self, table: Table, prefix: &[u8], from: &[u8])
    -> Result<Scan<'a>, StoreError>;
}

/// A store that one process writes.
pub trait Store: Reader + 'static {
    /// Applies all writes or none; of several to one key the last counts. With `durable` they
    /// survive a power cut on return; without, a later durable write or ingestion makes them so,
    /// in order. No writes with `durable` make the earlier ones durable.
    ///
    /// # Errors
    /// [`StoreError::KeyTooLong`] and [`StoreError::NoOwner`] before anything is written; otherwise engine failures, after
    /// which nothing of the call is visible.
    fn write(&self, writes: &[Write], durable: bool) -> Result<(), StoreError>;

    /// Applies writes that ascend strictly [by table and key](Write::cmp_place), all or none, durable on return, and
    /// cheaper than [`write`](Store::write) for megabytes of them. The input is streamed: it need
    /// not fit in memory (except for [`MemoryStore`](crate::MemoryStore)).
    ///
    /// # Errors
    /// [`StoreError::Unsorted`] at the first key that is not above the one before it,
    /// [`StoreError::KeyTooLong`], [`StoreError::NoOwner`], and engine failures; nothing of the call is visible then.
    fn ingest(&self, sorted: &mut dyn Iterator<Item = Write>) -> Result<(), StoreError>;

    /// Deletes every key of a table that begins with `prefix`, atomically and durably. The cost
    /// is proportional to the number of keys deleted.
    ///
    /// # Errors
    /// Engine failures; nothing is deleted then.
    fn delete_prefix(&self, table: Table, prefix: &[u8]) -> Result<(), StoreError>;

    /// Freezes the present state for reading. A snapshot may outlive the store's handle, and then
    /// keeps the database open.
    ///
    /// # Errors
    /// Engine failures.
    fn snapshot(&self) -> Result<Box<dyn Reader>, StoreError>;

    /// Merges what is stored so that disk space of overwritten and deleted data is given back,
    /// except for what living snapshots can see. Blocks until done.
    ///
    /// # Errors
    /// Engine failures; the contents are unchanged then.
    fn compact(&self) -> Result<(), StoreError>;

    /// Bytes that the store's files occupy on disk (allocated blocks, so a sparse file counts what
    /// it uses); `None` for a store without files.
    ///
    /// # Errors
    /// If the folder cannot be listed.
    fn disk_bytes(&self) -> Result<Option<u64>, StoreError>;
}

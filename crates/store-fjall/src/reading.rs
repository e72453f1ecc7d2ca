//! Reads, from the live store and from snapshots.

use std::path::{Path, PathBuf};

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

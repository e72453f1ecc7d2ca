//! Reads, from the live store and from snapshots.

use std::path::PathBuf;
use std::sync::Arc;

use arbor_store::{EngineRange, Reader, Scan, StoreError, Table, Value, engine_key};
use rocksdb::{DB, IteratorMode, ReadOptions, Snapshot};

use crate::errors::store_error;

/// An open database, its folder, and what is kept as long (the folder's lock, or a reader's own folder), dropped in that
/// order.
pub(crate) struct Database<K> {
    pub(crate) engine: DB,
    pub(crate) path: PathBuf,
    pub(crate) kept: K,
}

impl<K> Database<K> {
    pub(crate) fn failed(&self, operation: &'static str) -> impl Fn(rocksdb::Error) -> StoreError {
        move |error| store_error(&self.path, operation, error)
    }

    fn get_with(
        &self,
        table: Table,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<Value>, StoreError> {
        self.engine
            .get_pinned_opt(engine_key(table, key), options)
            .map(|found| found.map(|value| (&*value).into()))
            .map_err(self.failed("get"))
    }

    fn multi_get_with(
        &self,
        table: Table,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> Result<Vec<Option<Value>>, StoreError> {
        self.engine
            .multi_get_opt(keys.iter().map(|key| engine_key(table, key)), options)
            .into_iter()
            .map(|found| found.map(|value| value.map(Value::from)))
            .collect::<Result<_, _>>()
            .map_err(self.failed("multi_get"))
    }

    /// Scans what `options` shows: the iterator holds its state from here on.
    fn scan_with(
        &self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
        mut options: ReadOptions,
    ) -> Scan<'_> {
        let Some(range) = EngineRange::new(table, prefix, from) else {
            return Box::new(std::iter::empty());
        };
        options.set_iterate_lower_bound(&*range.keys.start);
        if let Some(end) = &range.keys.end {
            options.set_iterate_upper_bound(&**end);
        }
        let failed = self.failed("scan");
        let items = self.engine.iterator_opt(IteratorMode::Start, options);
        Box::new(items.filter_map(move |item| match item {
            Ok((key, value)) => Some(Ok((range.key(&key)?, value.into()))),
            Err(error) => Some(Err(failed(error))),
        }))
    }
}

impl<K: Send + Sync> Reader for Database<K> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StoreError> {
        self.get_with(table, key, &ReadOptions::default())
    }

    fn multi_get(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, StoreError> {
        self.multi_get_with(table, keys, &ReadOptions::default())
    }

    fn scan<'a>(
        &'a self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Scan<'a>, StoreError> {
        Ok(self.scan_with(table, prefix, from, ReadOptions::default()))
    }
}

/// A frozen state, which keeps the database open.
pub(crate) struct Frozen<K: 'static> {
    /// Borrows from `database`, and is declared before it so as to be dropped before it.
    snapshot: Snapshot<'static>,
    database: Arc<Database<K>>,
}

impl<K> Frozen<K> {
    pub(crate) fn new(database: Arc<Database<K>>) -> Self {
        let snapshot = database.engine.snapshot();
        // SAFETY: the snapshot holds a reference to `database.engine`, which lives in an
        // allocation that does not move and that the field `database` keeps alive; fields are
        // dropped in the order of declaration, so the snapshot never outlives it. The longer
        // lifetime is not handed out: the field is private and no method returns it.
        let snapshot = unsafe { std::mem::transmute::<Snapshot<'_>, Snapshot<'static>>(snapshot) };
        Self { snapshot, database }
    }

    fn options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        options.set_snapshot(&self.snapshot);
        options
    }
}

impl<K: Send + Sync> Reader for Frozen<K> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StoreError> {
        self.database.get_with(table, key, &self.options())
    }

    fn multi_get(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, StoreError> {
        self.database.multi_get_with(table, keys, &self.options())
    }

    fn scan<'a>(
        &'a self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Scan<'a>, StoreError> {
        Ok(self.database.scan_with(table, prefix, from, self.options()))
    }
}

//! The store.

use std::fs;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arbor_store::{
    Ascending, EngineRange, LockedFolder, MAX_KEY_BYTES, Reader, Scan, Store, StoreError, Table,
    TemporaryFolder, TemporaryUse, Value, Write, check_key, engine_key,
};
use rocksdb::{
    BottommostLevelCompaction, CompactOptions, DB, IngestExternalFileOptions, SstFileWriter,
    WriteBatch, WriteOptions,
};

use crate::errors::store_error;
use crate::options::{Options, TABLE_BYTES};
use crate::reading::{Database, Frozen};

/// RocksDB's mark of a database: the file that names the manifest.
const MARKER: &str = "CURRENT";
/// The folder below the database where ingested files are made.
const INGEST: &str = "ingest";

/// A store in a folder, over RocksDB. Snapshots made from it keep the database open.
pub struct RocksStore {
    database: Arc<Database<LockedFolder>>,
    /// For the files that ingestion makes; one ingestion at a time.
    ingesting: Mutex<rocksdb::Options>,
}

impl RocksStore {
    /// Opens the database in a folder, creating both if there is none and the options allow it.
    ///
    /// # Errors
    /// [`StoreError::AlreadyOpen`], [`StoreError::NotFound`], [`StoreError::Corrupt`],
    /// [`StoreError::ReadOnly`], [`StoreError::NoSpace`], or another failure to open.
    pub fn open(path: &Path, options: &Options) -> Result<Self, StoreError> {
        let folder = LockedFolder::lock(path, MARKER, options.create)?;
        clear_ingested(path)?;
        let settings = options.database();
        let engine = DB::open(&settings, path).map_err(|error| store_error(path, "open", error))?;
        Ok(Self {
            database: Arc::new(Database {
                engine,
                path: path.to_path_buf(),
                kept: folder,
            }),
            ingesting: Mutex::new(settings),
        })
    }

    /// Opens the database in a folder for reading alone, as it is now: beside a process that writes it, or without the
    /// right to write it. Nothing is locked and nothing in the folder is touched.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Corrupt`], no right to read, no room in the system's temporary
    /// directory, or another failure to open.
    pub fn open_to_read(path: &Path, options: &Options) -> Result<Box<dyn Reader>, StoreError> {
        if !path.join(MARKER).exists() {
            let path = path.to_path_buf();
            return Err(StoreError::NotFound { path });
        }
        let own = TemporaryFolder::make(TemporaryUse::Reading)?;
        let mut settings = options.database();
        settings.create_if_missing(false);
        // Every table stays open, so that a merge of the writer's may delete it.
        settings.set_max_open_files(-1);
        let engine = DB::open_as_secondary(&settings, path, own.path())
            .map_err(|error| store_error(path, "open for reading", error))?;
        Ok(Box::new(Database {
            engine,
            path: path.to_path_buf(),
            kept: own,
        }))
    }

    fn write_batch(&self, batch: WriteBatch, durable: bool) -> Result<(), StoreError> {
        let mut options = WriteOptions::default();
        options.set_sync(durable);
        self.database
            .engine
            .write_opt(batch, &options)
            .map_err(self.database.failed("write"))
    }

    /// Writes sorted input into table files of the target size and returns their paths.
    fn make_files(
        &self,
        settings: &rocksdb::Options,
        sorted: &mut dyn Iterator<Item = Write>,
    ) -> Result<Vec<PathBuf>, StoreError> {
        let mut order = Ascending::default();
        let mut checked = sorted
            .map(|write| order.accept(&write).map(|()| write))
            .peekable();
        let mut files = Vec::new();
        while checked.peek().is_some() {
            let name = format!("{}.sst", files.len());
            let file = self.database.path.join(INGEST).join(name);
            self.make_file(settings, &file, &mut checked)?;
            files.push(file);
        }
        Ok(files)
    }

    fn make_file(
        &self,
        settings: &rocksdb::Options,
        file: &Path,
        writes: &mut Peekable<impl Iterator<Item = Result<Write, StoreError>>>,
    ) -> Result<(), StoreError> {
        let failed = self.database.failed("ingest");
        let mut writer = SstFileWriter::create(settings);
        writer.open(file).map_err(&failed)?;
        let mut bytes = 0;
        while bytes < TABLE_BYTES {
            let Some(write) = writes.next().transpose()? else {
                break;
            };
            let key = engine_key(write.table, &write.key);
            bytes += (key.len() + write.value.as_ref().map_or(0, |value| value.len())) as u64;
            match &write.value {
                Some(value) => writer.put(key, value),
                None => writer.delete(key),
            }
            .map_err(&failed)?;
        }
        writer.finish().map_err(failed)
    }
}

/// Makes the folder of ingested files anew, empty.
fn clear_ingested(path: &Path) -> Result<(), StoreError> {
    let failed = |cause| StoreError::from_io(path, "open", cause);
    let folder = path.join(INGEST);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    fs::create_dir(&folder).map_err(failed)
}

impl Reader for RocksStore {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StoreError> {
        self.database.get(table, key)
    }

    fn multi_get(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, StoreError> {
        self.database.multi_get(table, keys)
    }

    fn scan<'a>(
        &'a self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Scan<'a>, StoreError> {
        self.database.scan(table, prefix, from)
    }
}

impl Store for RocksStore {
    fn write(&self, writes: &[Write], durable: bool) -> Result<(), StoreError> {
        writes
            .iter()
            .try_for_each(|write| check_key(write.table, &write.key))?;
        if writes.is_empty() {
            let failed = self.database.failed("write");
            return self.database.engine.flush_wal(durable).map_err(failed);
        }
        let mut batch = WriteBatch::default();
        for write in writes {
            let key = engine_key(write.table, &write.key);
            match &write.value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        self.write_batch(batch, durable)
    }

    fn ingest(&self, sorted: &mut dyn Iterator<Item = Write>) -> Result<(), StoreError> {
        let settings = self
            .ingesting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let files = match self.make_files(&settings, sorted) {
            Ok(files) if files.is_empty() => return self.write(&[], true),
            Ok(files) => files,
            Err(error) => {
                // What cannot be removed now is removed at the next opening.
                let _ = clear_ingested(&self.database.path);
                return Err(error);
            }
        };
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        self.database
            .engine
            .ingest_external_file_opts(&options, files)
            .map_err(self.database.failed("ingest"))
    }

    fn delete_prefix(&self, table: Table, prefix: &[u8]) -> Result<(), StoreError> {
        let Some(range) = EngineRange::new(table, prefix, b"") else {
            return Ok(());
        };
        let mut batch = WriteBatch::default();
        if range.mixed {
            for entry in self.scan(table, prefix, b"")? {
                batch.delete(engine_key(table, &entry?.0));
            }
        } else {
            let end = range.keys.end;
            let end = end.unwrap_or_else(|| vec![0xff; MAX_KEY_BYTES + 2].into());
            batch.delete_range(range.keys.start, end);
        }
        self.write_batch(batch, true)
    }

    fn snapshot(&self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(Frozen::new(self.database.clone())))
    }

    fn compact(&self) -> Result<(), StoreError> {
        let failed = self.database.failed("compact");
        self.database.engine.flush().map_err(failed)?;
        let mut options = CompactOptions::default();
        options.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
        self.database
            .engine
            .compact_range_opt(None::<&[u8]>, None::<&[u8]>, &options);
        Ok(())
    }

    fn disk_bytes(&self) -> Result<Option<u64>, StoreError> {
        self.database.kept.occupied_bytes().map(Some)
    }
}

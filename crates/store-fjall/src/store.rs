//! The store.

use std::collections::HashSet;
use std::iter;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use arbor_store::{
    Ascending, EngineRange, LockedFolder, Reader, Scan, Store, StoreError, Table, Value, Write,
    check_key, engine_key, with_engine_key,
};
use fjall::{AbstractTree, Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::errors::{opened, store_error};
use crate::folder::{self, SharedFiles};
use crate::integrity;
use crate::journals::Journals;
use crate::names::MARKER;
use crate::options::Options;
use crate::reader_copy::ReaderCopy;
use crate::reading::{Frozen, Pace, multi_get, scan, to_value};

/// The keyspace of all tables.
const TABLES: &str = "tables";
/// A keyspace with one key, whose flush makes fjall forget versions that nobody can see.
const TICKS: &str = "ticks";
/// Level-0 runs at which an ingestion waits for the merge that is under way. fjall stops `write`s
/// at 30 and has no such brake for ingestion.
const CROWDED: usize = 24;
/// Batches over a full memtable after which the next one waits until it is replaced.
const MOST_ASKED: usize = 256;
/// How often, and how long each time, an ingestion waits for its tables to be moved down. A move takes some milliseconds: a version
/// file is synced.
const MOVE_TRIES: u32 = if cfg!(test) { 20_000 } else { 50 };
const MOVE_WAIT: Duration = Duration::from_millis(1);

/// A store in a folder, over fjall.
///
/// Dropping it closes the database, after waiting for a merge that is under way. Snapshots made
/// from it keep the folder locked. The files of an ingestion that failed are deleted at the next
/// opening.
pub struct FjallStore {
    database: Database,
    tables: Keyspace,
    ticks: Keyspace,
    /// One ingestion, compaction or prefix deletion at a time.
    turn: Mutex<()>,
    /// Held while a batch is committed and while a snapshot is taken: fjall 3.1 rarely lets a snapshot that
    /// is taken during a commit see the batch in part (the conformance suite caught one).
    commit: Mutex<()>,
    /// Level-0 files after the last ingestion: fewer at the next one mean that a merge finished.
    level0_files: AtomicUsize,
    /// Batches that were written while the memtable was full.
    asked: AtomicUsize,
    memtable_bytes: u64,
    pace: Pace,
    /// After the engine's handles, and so dropped after them.
    journals: Journals,
    files: SharedFiles,
    folder: Arc<LockedFolder>,
}

impl FjallStore {
    /// Opens the database in a folder, creating both if there is none and the options allow it.
    ///
    /// # Errors
    /// [`StoreError::AlreadyOpen`], [`StoreError::NotFound`], [`StoreError::Corrupt`],
    /// [`StoreError::ReadOnly`], [`StoreError::NoSpace`], or another failure to open.
    pub fn open(path: &Path, options: &Options) -> Result<Self, StoreError> {
        let lock = LockedFolder::lock(path, MARKER, options.create)?;
        integrity::check_names(path)?;
        if options.create {
            folder::clear_unfinished(path)?;
        }
        let is_new = !path.join(MARKER).exists();
        if !is_new {
            integrity::check_files(path, path)?;
            folder::restore_lock(path)?;
        }
        let (database, tables, ticks) = opened(path, "open", || {
            let database = Database::builder(path)
                .cache_size(options.cache_bytes)
                // With more than one worker fjall 3.1 keeps a core busy while a merge runs.
                .worker_threads(1)
                .max_journaling_size(64 << 20)
                .open()?;
            let tables = database.keyspace(TABLES, || options.keyspace())?;
            let ticks = database.keyspace(TICKS, KeyspaceCreateOptions::default)?;
            Ok((database, tables, ticks))
        })?;
        if is_new {
            folder::sync_new(path)?;
        }
        Ok(Self {
            database,
            tables,
            ticks,
            turn: Mutex::new(()),
            commit: Mutex::new(()),
            level0_files: AtomicUsize::new(0),
            asked: AtomicUsize::new(0),
            memtable_bytes: options.memtable_bytes,
            pace: Pace::default(),
            journals: Journals::new(path),
            files: SharedFiles(path.to_path_buf()),
            folder: Arc::new(lock),
        })
    }

    /// Opens the database in a folder for reading alone, as it is now: beside a process that writes it, or without the
    /// right to write it. Nothing is locked and nothing in the folder is touched; the crate's documentation
    /// says how.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Corrupt`], no right to read, no room in the system's temporary
    /// directory, or another failure to open.
    pub fn open_to_read(path: &Path, options: &Options) -> Result<Box<dyn Reader>, StoreError> {
        let beside = ReaderCopy::of(path)?;
        integrity::check_files(beside.path(), path)?;
        let (database, keyspace) = opened(path, "open for reading", || {
            let database = Database::builder(beside.path())
                .cache_size(options.cache_bytes)
                // Without workers nothing is merged.
                .worker_threads_unchecked(0)
                .open()?;
            let there = database.keyspace_exists(TABLES);
            let keyspace = there.then(|| database.keyspace(TABLES, || options.keyspace()));
            Ok((database, keyspace.transpose()?))
        })?;
        let Some(keyspace) = keyspace else {
            let path = path.to_path_buf();
            return Err(StoreError::NotFound { path });
        };
        Ok(Box::new(Frozen {
            snapshot: database.snapshot(),
            keyspace,
            pace: Pace::default(),
            path: path.to_path_buf(),
            _kept: (database, beside),
        }))
    }

    fn failed(&self, operation: &'static str) -> impl Fn(fjall::Error) -> StoreError {
        move |error| store_error(self.folder.path(), operation, error)
    }

    /// Advances the horizon below which old versions are dropped, and drops them: replaced table
    /// files are deleted. fjall does both only when a memtable is rotated.
    fn tick(&self, operation: &'static str) -> Result<(), StoreError> {
        self.ticks.insert([0], []).map_err(self.failed(operation))?;
        self.rotate(&self.ticks, operation)
    }

    /// Turns a keyspace's memtable into a table. fjall's own wait for that does not end if the worker has failed, on a
    /// full disk for example.
    fn rotate(&self, keyspace: &Keyspace, operation: &'static str) -> Result<(), StoreError> {
        if keyspace.rotate_memtable().map_err(self.failed(operation))? {
            while keyspace.sealed_memtable_count() > 0 {
                self.check_alive(operation)?;
                thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }

    /// Fails if the engine's background work has failed: its worker is gone then, and waiting for
    /// it would never end.
    fn check_alive(&self, operation: &'static str) -> Result<(), StoreError> {
        self.database
            .persist(PersistMode::Buffer)
            .map_err(self.failed(operation))
    }

    /// Waits until a full memtable is replaced, if many batches have been written since it was full.
    ///
    /// fjall 3.1 asks its worker for that at each of them, through a queue of 1,000 requests, and the worker puts a request of its own there:
    /// if the queue is full it waits for itself, and so does everybody.
    fn wait_for_rotation(&self) -> Result<(), StoreError> {
        let is_full = || self.tables.tree.active_memtable().size() > self.memtable_bytes;
        if !is_full() {
            self.asked.store(0, Ordering::Relaxed);
            return Ok(());
        }
        if self.asked.fetch_add(1, Ordering::Relaxed) < MOST_ASKED {
            return Ok(());
        }
        while is_full() {
            thread::sleep(Duration::from_millis(1));
            self.check_alive("write")?;
        }
        self.asked.store(0, Ordering::Relaxed);
        Ok(())
    }

    fn wait_for_merges(&self) -> Result<(), StoreError> {
        self.check_alive("ingest")?;
        while self.tables.l0_table_count() >= CROWDED {
            thread::sleep(Duration::from_millis(5));
            self.check_alive("ingest")?;
        }
        Ok(())
    }

    /// Waits a moment until the tables of an ingestion have left level 0. fjall moves them down as they are if they lie between the
    /// keys of the level below, and if they are alone in level 0: two ingestions there span the keys between them, and are
    /// merged with all tables below that have such keys.
    fn wait_for_move(&self) {
        for _ in 0..MOVE_TRIES {
            if self.tables.l0_table_count() == 0 {
                return;
            }
            thread::sleep(MOVE_WAIT);
        }
    }

    /// Ingests with the turn held.
    fn ingest_now(
        &self,
        operation: &'static str,
        sorted: impl Iterator<Item = Result<Write, StoreError>>,
    ) -> Result<(), StoreError> {
        let failed = self.failed(operation);
        let mut sorted = sorted.peekable();
        if sorted.peek().is_none() {
            return self.database.persist(PersistMode::SyncAll).map_err(failed);
        }
        if self.tables.l0_table_count() < self.level0_files.load(Ordering::Relaxed) {
            self.tick(operation)?;
        }
        self.wait_for_merges()?;
        let was_empty = self.tables.l0_table_count() == 0;
        let mut order = Ascending::default();
        let mut ingestion = self.tables.start_ingestion().map_err(&failed)?;
        for write in sorted {
            let write = write?;
            order.accept(&write)?;
            let key = engine_key(write.table, &write.key);
            match &write.value {
                Some(value) => ingestion.write(key, &**value),
                None => ingestion.write_tombstone(key),
            }
            .map_err(&failed)?;
        }
        ingestion.finish().map_err(&failed)?;
        if was_empty {
            self.wait_for_move();
        }
        self.files.share();
        self.level0_files
            .store(self.tables.l0_table_count(), Ordering::Relaxed);
        Ok(())
    }
}

/// Drops writes that a later one in the same batch replaces: fjall gives a whole batch one
/// sequence number, so it cannot order two writes to one key.
fn last_of_each_key(writes: &[Write]) -> Vec<&Write> {
    let mut seen = HashSet::with_capacity(writes.len());
    let mut kept: Vec<_> = writes
        .iter()
        .rev()
        .filter(|write| seen.insert((write.table, &write.key)))
        .collect();
    kept.reverse();
    kept
}

impl Reader for FjallStore {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StoreError> {
        with_engine_key(table, key, |key| self.tables.get(key))
            .map(|found| found.as_ref().map(to_value))
            .map_err(self.failed("get"))
    }

    fn multi_get(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, StoreError> {
        // One state for all keys, even while another thread writes.
        let snapshot = self.database.snapshot();
        multi_get(&snapshot, &self.tables, &self.pace, table, keys)
            .map_err(self.failed("multi_get"))
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
            |range| {
                scan(
                    self.folder.path(),
                    self.database.snapshot(),
                    &self.tables,
                    range,
                )
            },
        ))
    }
}

impl Store for FjallStore {
    fn write(&self, writes: &[Write], durable: bool) -> Result<(), StoreError> {
        writes
            .iter()
            .try_for_each(|write| check_key(write.table, &write.key))?;
        let mode = if durable {
            PersistMode::SyncAll
        } else {
            PersistMode::Buffer
        };
        if writes.is_empty() {
            return self.database.persist(mode).map_err(self.failed("write"));
        }
        let mut batch = self.database.batch().durability(Some(mode));
        for write in last_of_each_key(writes) {
            let key = engine_key(write.table, &write.key);
            match &write.value {
                Some(value) => batch.insert(&self.tables, key, &**value),
                None => batch.remove(&self.tables, key),
            }
        }
        {
            let _commit = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
            self.journals.count_batch();
            batch.commit().map_err(self.failed("write"))?;
        }
        self.wait_for_rotation()
    }

    fn ingest(&self, sorted: &mut dyn Iterator<Item = Write>) -> Result<(), StoreError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.ingest_now("ingest", sorted.map(Ok))
    }

    fn delete_prefix(&self, table: Table, prefix: &[u8]) -> Result<(), StoreError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let doomed = self.scan(table, prefix, b"")?.map(|item| {
            let (key, _) = item?;
            Ok(Write {
                table,
                key,
                value: None,
            })
        });
        self.ingest_now("delete_prefix", doomed)
    }

    fn snapshot(&self) -> Result<Box<dyn Reader>, StoreError> {
        let _commit = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Box::new(Frozen {
            snapshot: self.database.snapshot(),
            keyspace: self.tables.clone(),
            pace: Pace::default(),
            path: self.folder.path().to_path_buf(),
            _kept: self.folder.clone(),
        }))
    }

    fn compact(&self) -> Result<(), StoreError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_alive("compact")?;
        let batches = {
            let _commit = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
            self.journals.batches()
        };
        self.rotate(&self.tables, "compact")?;
        // The first tick lets the merge drop what the latest call replaced, the second deletes
        // the files that the merge replaced.
        self.tick("compact")?;
        self.tables
            .major_compact()
            .map_err(self.failed("compact"))?;
        self.tick("compact")?;
        self.level0_files.store(0, Ordering::Relaxed);
        // The memtables that had them have become tables.
        self.journals.are_in_tables(batches);
        Ok(())
    }

    fn disk_bytes(&self) -> Result<Option<u64>, StoreError> {
        self.folder.occupied_bytes().map(Some)
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use super::*;

    /// Two tables are filled in turns, each ascending, as a bulk load fills several. No file is written a second time.
    #[test]
    fn runs_that_do_not_interleave_are_not_merged() {
        let folder = tempfile::tempdir().unwrap();
        let store = FjallStore::open(folder.path(), &Options::default()).unwrap();
        const TURNS: u32 = 20;
        for turn in 0..TURNS {
            for table in [Table(1), Table(2)] {
                let mut run = (0..100u32).map(|number| Write {
                    table,
                    key: (100 * turn + number).to_be_bytes()[..].into(),
                    value: Some([7; 20][..].into()),
                });
                store.ingest(&mut run).unwrap();
            }
        }
        assert_eq!(store.tables.l0_table_count(), 0);
        assert_eq!(store.tables.table_count(), 2 * TURNS as usize);
    }
}

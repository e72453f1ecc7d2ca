//! A copy of a whole database, made while the database is written.

use std::fs::File;
use std::io;
use std::iter::Peekable;
use std::path::Path;
use std::sync::Arc;

use alloy_primitives::B256;
use arbor_state::{KeyValueSnapshot, StateSnapshot};
use arbor_store::{Reader, Scan, Store, StoreError, Table, Write, if_there, sync_name};
use arbor_versions::{DirLock, DirReader, OWN_TABLES, TableSpec, Version};

use crate::folder::{Folder, io_error};
use crate::names::{BACKUP_MARK, LOCK, REMEMBERED};
use crate::store::{open_store, open_store_to_read};
use crate::{Budget, DatabaseError, OpenOptions, StoreKind};

/// The end of a folder's name until its copy is whole.
const UNFINISHED: &str = "unfinished";

/// Records between two calls of the caller's progress function.
const PROGRESS_EVERY: u64 = 1 << 14;

/// A copy of a database that is whole and was checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backup {
    /// The version that the copy has, the last one that was flushed in the source; `None` if no
    /// version was.
    pub version: Option<Version>,
    /// The block of that version; 0 if there is no version.
    pub block: u64,
    /// The root of that version; that of the empty tree if there is no version.
    pub root: B256,
    /// Records of the store that were copied.
    pub records: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

/// A database opened for reading: accounts, or keys and values without accounts.
#[derive(Debug)]
pub enum DatabaseSnapshot {
    /// Accounts, slots and code.
    State(StateSnapshot),
    /// Keys and values of 32 bytes.
    KeyValue(KeyValueSnapshot),
}

impl DatabaseSnapshot {
    /// Returns the faults of the database: every record, node and retained version is checked, as
    /// by [`StateSnapshot::verify`] or [`KeyValueSnapshot::verify`].
    ///
    /// # Errors
    /// A store that cannot be read.
    pub fn faults(&self) -> Result<Vec<String>, DatabaseError> {
        Ok(match self {
            // There is no root to compare anything with.
            Self::State(state) if state.reader().meta().is_none() => Vec::new(),
            Self::State(state) => state.verify(&|_| {}, &mut |_| Ok(()))?.faults,
            Self::KeyValue(tree) => tree.verify()?.faults,
        })
    }

    /// The tables as the store has them.
    fn tables(&self) -> Vec<TableSpec> {
        match self {
            Self::State(state) => state.stored_tables().to_vec(),
            Self::KeyValue(tree) => tree.tables().to_vec(),
        }
    }

    fn head(&self) -> (Option<Version>, u64, B256) {
        let (meta, root) = match self {
            Self::State(state) => (state.reader().meta(), state.reader().root()),
            Self::KeyValue(tree) => (tree.meta(), tree.root()),
        };
        let block = meta.map_or(0, |meta| meta.block_number);
        (meta.map(|meta| meta.version), block, root)
    }

    fn rebuild_head_file(&self, lock: &DirLock) -> Result<(), DatabaseError> {
        match self {
            Self::State(state) => Ok(state.rebuild_head_file(lock)?),
            Self::KeyValue(tree) => Ok(tree.rebuild_head_file(lock)?),
        }
    }
}

impl OpenOptions {
    /// Copies the database in the folder `from` into the new folder `to`, also while this process
    /// or another one writes it, and checks the whole copy.
    ///
    /// The copy has the last flushed version and the history that is retained with it. A writer in
    /// this process calls [`State::flush`](crate::State::flush) first if the copy is to have its
    /// latest version. The writer is not stopped, and keeps the space of records that it deletes
    /// only until they are copied, not during the check. The store, the tree and all settings are
    /// those of the source.
    ///
    /// While the copy is made, its folder has the name of `to` followed by `.unfinished`. A crash
    /// leaves that folder. No command takes it for a database before the copy is checked, and the
    /// next backup to the same place removes it.
    ///
    /// # Errors
    /// A target that exists, or lies in the source; files in the unfinished folder that no backup has made; another backup to the same place; a source that is no database, or one whose load, recovery or
    /// conversion did not finish; a copy with faults, which has the faults of its source; a full
    /// disk and other errors of the store. The unfinished folder is removed then.
    pub fn backup(
        &self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
    ) -> Result<Backup, DatabaseError> {
        let folder = Folder::new(from.as_ref(), &self.trees);
        folder.backup(to.as_ref(), self.budget.memory, &|_, _| {}, |copy| {
            let faults = copy.faults()?;
            match faults.is_empty() {
                true => Ok(()),
                false => Err(DatabaseError::DamagedCopy {
                    dir: from.as_ref().to_owned(),
                    faults,
                }),
            }
        })
    }
}

impl Folder<'_> {
    /// Copies the database, as [`OpenOptions::backup`] does, with the caller's own check of the
    /// copy. `progress` is called with the number of records copied so far and their bytes.
    ///
    /// # Errors
    /// As [`OpenOptions::backup`]; faults that the check finds. The copy is then removed.
    pub fn backup<E: From<DatabaseError>>(
        self,
        to: &Path,
        memory: u64,
        progress: &dyn Fn(u64, u64),
        check: impl FnOnce(&DatabaseSnapshot) -> Result<(), E>,
    ) -> Result<Backup, E> {
        let unfinished = self.unfinished_conversion();
        if let Some(error) = unfinished.or_else(|| self.part_of_conversion()) {
            return Err(error.into());
        }
        let there = if_there(to.symlink_metadata());
        let there = there.map_err(|source| io_error("looking for", to.to_owned(), source))?;
        if there.is_some() {
            return Err(DatabaseError::TargetExists(to.to_owned()).into());
        }
        let making = to.with_added_extension(UNFINISHED);
        let lock = self.begin_copy(&making)?;
        let made = self.make_copy((&making, &lock), memory, progress, check);
        let finished = made.and_then(|backup| {
            let renamed = std::fs::rename(&making, to).and_then(|()| sync_name(to));
            renamed.map_err(|source| io_error("renaming", making.clone(), source))?;
            // Only now, lest a crash leave a folder that nobody knows. In a database it says nothing.
            let _ = std::fs::remove_file(to.join(BACKUP_MARK));
            Ok(backup)
        });
        if finished.is_err() {
            // The next backup to the same place removes the files that are left.
            let _ = std::fs::remove_dir_all(&making);
        }
        drop(lock);
        finished
    }

    /// Makes and locks the folder for a copy. What an interrupted backup has left there is removed; other files are not.
    fn begin_copy(self, making: &Path) -> Result<DirLock, DatabaseError> {
        let failed = |source| io_error("looking into", making.to_owned(), source);
        let (source, above) = (self.dir.canonicalize(), making.parent());
        let above = above.map(|above| {
            if above == Path::new("") {
                Path::new(".")
            } else {
                above
            }
        });
        if let (Ok(source), Some(Ok(above))) = (source, above.map(Path::canonicalize))
            && above.starts_with(source)
        {
            return Err(DatabaseError::BackupInside(self.dir.to_owned()));
        }
        let names = match if_there(std::fs::read_dir(making)).map_err(failed)? {
            Some(entries) => entries
                .map(|entry| Ok(entry?.file_name()))
                .collect::<io::Result<Vec<_>>>()
                .map_err(failed)?,
            None => Vec::new(),
        };
        let is_marked = names.iter().any(|name| name == BACKUP_MARK);
        if let Some(other) = names.iter().find(|name| !is_marked && *name != LOCK) {
            return Err(DatabaseError::NotABackup(making.join(other)));
        }
        let lock = DirLock::acquire(making)?;
        for path in names
            .iter()
            .filter(|name| *name != LOCK && *name != BACKUP_MARK)
            .map(|name| making.join(name))
        {
            let removed = match path.is_dir() {
                true => std::fs::remove_dir_all(&path),
                false => std::fs::remove_file(&path),
            };
            removed.map_err(|source| io_error("removing", path, source))?;
        }
        let mark = making.join(BACKUP_MARK);
        let marked = std::fs::write(
            &mark,
            "An unfinished backup. The next backup to the same place removes this folder.\n",
        );
        marked.map_err(|source| io_error("writing", mark, source))?;
        Ok(lock)
    }

    /// Makes a whole copy in a locked folder.
    fn make_copy<E: From<DatabaseError>>(
        self,
        (making, lock): (&Path, &DirLock),
        memory: u64,
        progress: &dyn Fn(u64, u64),
        check: impl FnOnce(&DatabaseSnapshot) -> Result<(), E>,
    ) -> Result<Backup, E> {
        let head = DirReader::new(self.dir).map_err(DatabaseError::from)?;
        let kind = self.store();
        let kind = kind.ok_or_else(|| DatabaseError::NoStore(self.dir.to_owned()))?;
        let source = open_store_to_read(self.dir, memory)?;
        let opened = self.snapshot_of(Arc::clone(&source), Some(head), memory);
        let source_snapshot = opened.map_err(|error| self.open_error(true, error))?;
        let (head, tables) = (source_snapshot.head(), source_snapshot.tables());
        drop(source_snapshot);
        let store = empty_store(making, kind, memory)?;
        let (records, bytes) = copy_records(&*source, &tables, &*store, progress)?;
        drop(source);

        let copy: Arc<dyn Reader> = store;
        let copy = self.snapshot_of(copy, None, memory)?;
        if copy.head() != head {
            // Both are read from records that were compared with HEAD.
            let dir = self.dir.to_owned();
            let faults = vec![format!(
                "its latest version is {:?}, not {head:?}",
                copy.head()
            )];
            return Err(DatabaseError::DamagedCopy { dir, faults }.into());
        }
        check(&copy)?;
        for name in REMEMBERED {
            copy_file(&self.dir.join(name), &making.join(name))?;
        }
        copy.rebuild_head_file(lock)?;
        let (version, block, root) = head;
        Ok(Backup {
            version,
            block,
            root,
            records,
            bytes,
        })
    }

    /// Opens the database of this folder in a store for reading.
    fn snapshot_of(
        self,
        store: Arc<dyn Reader>,
        head: Option<DirReader>,
        memory: u64,
    ) -> Result<DatabaseSnapshot, DatabaseError> {
        let settings = self.tree_settings()?.unwrap_or_default();
        let identity = self.head_file()?.identity;
        if let Some(kind) = self.trees.of_key_value(&identity) {
            let tree = settings.tree(kind, Some(identity.hash), memory)?;
            return Ok(DatabaseSnapshot::KeyValue(KeyValueSnapshot::open(
                store, head, tree,
            )?));
        }
        let tree = self.tree_of(&identity, memory, &settings)?;
        let network = self.network()?;
        Ok(DatabaseSnapshot::State(StateSnapshot::open(
            store, head, tree, network,
        )?))
    }
}

fn empty_store(dir: &Path, kind: StoreKind, memory: u64) -> Result<Arc<dyn Store>, DatabaseError> {
    open_store(dir, Some(kind), true, Budget::new(memory))
}

/// Copies a file, durably, if there is one.
fn copy_file(from: &Path, to: &Path) -> Result<(), DatabaseError> {
    let copied = if_there(std::fs::copy(from, to));
    let synced = copied.and_then(|copied| match copied {
        Some(_) => File::open(to)?.sync_all(),
        None => Ok(()),
    });
    synced.map_err(|source: io::Error| io_error("copying", from.to_owned(), source))
}

/// Copies all records of a database into an empty store. Returns their number and bytes.
fn copy_records(
    from: &dyn Reader,
    tables: &[TableSpec],
    to: &dyn Store,
    progress: &dyn Fn(u64, u64),
) -> Result<(u64, u64), DatabaseError> {
    let own = OWN_TABLES.iter().map(|(table, _)| *table);
    let mut tables: Vec<Table> = tables.iter().map(|spec| spec.table).chain(own).collect();
    tables.sort_unstable();
    let (mut records, mut bytes, mut unread) = (0u64, 0u64, None);
    let mut writes = Records::new(from, &tables).map_while(|write| match write {
        Ok(write) => {
            records += 1;
            bytes += (write.key.len() + write.value.as_ref().map_or(0, |value| value.len())) as u64;
            if records.is_multiple_of(PROGRESS_EVERY) {
                progress(records, bytes);
            }
            Some(write)
        }
        Err(error) => {
            unread = Some(error);
            None
        }
    });
    to.ingest(&mut writes)?;
    match unread {
        Some(error) => Err(error.into()),
        None => Ok((records, bytes)),
    }
}

type Record = Result<Write, StoreError>;

/// The records of tables, in the order in which a store ingests them: table after table, but an
/// owner's records of a group of tables by owner together.
struct Records<'a> {
    store: &'a dyn Reader,
    /// Tables to come, the next one last. Tables by owner come in groups.
    groups: Vec<Vec<Table>>,
    now: Vec<Peekable<Box<dyn Iterator<Item = Record> + 'a>>>,
}

impl<'a> Records<'a> {
    /// Of tables that ascend.
    fn new(store: &'a dyn Reader, tables: &[Table]) -> Self {
        let groups = tables.chunk_by(|a, b| a.is_by_owner() && a.group() == b.group());
        Self {
            store,
            groups: groups.rev().map(<[Table]>::to_vec).collect(),
            now: Vec::new(),
        }
    }

    fn records(&self, table: Table) -> Result<Box<dyn Iterator<Item = Record> + 'a>, StoreError> {
        let scan: Scan<'a> = self.store.scan(table, &[], &[])?;
        Ok(Box::new(scan.map(move |entry| {
            let (key, value) = entry?;
            let value = Some(value);
            Ok(Write { table, key, value })
        })))
    }

    /// Returns the place of the source whose next record comes first; an error comes before any
    /// record.
    fn first(&mut self) -> Option<usize> {
        let mut first: Option<(usize, &Write)> = None;
        for (place, source) in self.now.iter_mut().enumerate() {
            match source.peek() {
                None => {}
                Some(Err(_)) => return Some(place),
                Some(Ok(write))
                    if first.is_none_or(|(_, least)| write.cmp_place(least).is_lt()) =>
                {
                    first = Some((place, write));
                }
                Some(Ok(_)) => {}
            }
        }
        first.map(|(place, _)| place)
    }
}

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        loop {
            if let Some(place) = self.first() {
                return self.now[place].next();
            }
            let group = self.groups.pop()?;
            self.now.clear();
            for table in group {
                match self.records(table) {
                    Ok(records) => self.now.push(records.peekable()),
                    Err(error) => return Some(Err(error)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use arbor_store::MemoryStore;

    use super::*;

    #[test]
    fn records_come_in_the_order_of_an_ingestion() {
        let store = MemoryStore::default();
        let owner = |number: u8, rest: u8| [vec![number; 32], vec![rest]].concat();
        let mut writes: Vec<Write> = Vec::new();
        for (table, key) in [
            (1, vec![]),
            (1, vec![9]),
            (3, vec![1]),
            (0x80, owner(1, 0)),
            (0x80, owner(2, 0)),
            (0x81, owner(1, 3)),
            (0x82, owner(2, 1)),
            (0xf0, vec![0]),
            (0xf4, vec![7]),
        ] {
            writes.push(Write::put(Table(table), &key, &[table]));
        }
        store.write(&writes, true).expect("written");
        let tables = [1, 2, 3, 0x80, 0x81, 0x82, 0xf0, 0xf4].map(Table);
        let records: Result<Vec<Write>, StoreError> = Records::new(&store, &tables).collect();
        writes.sort_by(Write::cmp_place);
        assert_eq!(records.expect("read"), writes);
    }
}

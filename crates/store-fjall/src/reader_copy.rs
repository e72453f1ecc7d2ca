//! Reading beside a writer, and without any right to write: a folder of the reader's own that looks like the database's.
//!
//! The crate's documentation says what is in it, and why the order of taking it matters.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use arbor_store::{StoreError, TemporaryFolder, TemporaryUse, if_there};
use xxhash_rust::xxh3::xxh3_128;

use crate::archive::{named_version, tables_of};
use crate::folder;
use crate::integrity::{check_names, has_trees, without_mark};
use crate::names::{CURRENT, LOCK, MARKER, TABLES, TREES};

/// For how long files are taken anew because the writer went on meanwhile. A first attempt takes milliseconds, a
/// further one, which opens only the tables that are new since, a small part of one.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two attempts, so that the writer has the processor.
const PAUSE: Duration = Duration::from_millis(1);

/// A reader's folder and the table files it refers to; gone when dropped.
#[derive(Debug)]
pub(crate) struct ReaderCopy {
    folder: TemporaryFolder,
    _tables: Vec<File>,
}

impl ReaderCopy {
    /// Makes a folder that shows the database at `database` as it is now.
    pub(crate) fn of(database: &Path) -> Result<Self, StoreError> {
        Self::taken(database, || ())
    }

    /// Like [`of`](Self::of). `between` is called between the journals and the trees, for a test to go on with the writer there.
    fn taken(database: &Path, mut between: impl FnMut()) -> Result<Self, StoreError> {
        if !is_marked(database)? {
            // Trees come after the mark, which somebody may just have made.
            let lost = has_trees(database) && !is_marked(database)?;
            return Err(match lost {
                true => without_mark(database),
                false => StoreError::NotFound {
                    path: database.to_path_buf(),
                },
            });
        }
        check_names(database)?;
        let folder = TemporaryFolder::make(TemporaryUse::Reading)?;
        let lock = folder.path().join(LOCK);
        File::create(&lock).map_err(own(&lock))?;
        copy(database, folder.path(), MARKER.as_ref())?;
        let names = database.join(TREES).join("0").join(CURRENT);
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let before = read_if_there(&names)?;
            let taken = take_all(database, folder.path(), &mut between)?;
            if let Some(tables) = taken
                && read_if_there(&names)? == before
            {
                return Ok(Self {
                    folder,
                    _tables: tables,
                });
            }
            let trees = folder.path().join(TREES);
            if_there(fs::remove_dir_all(&trees)).map_err(own(&trees))?;
            thread::sleep(PAUSE);
        }
        Err(busy(&names))
    }

    /// The folder to open.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Whether a folder has fjall's mark of a database.
fn is_marked(database: &Path) -> Result<bool, StoreError> {
    folder::is_marked(database)
        .map_err(|cause| StoreError::from_reading(&database.join(MARKER), cause))
}

/// A failure to write a file or folder of the reader's own.
fn own(path: &Path) -> impl Fn(io::Error) -> StoreError {
    |cause| StoreError::from_temporary(path, "making a reader's folder", cause)
}

fn busy(path: &Path) -> StoreError {
    let cause = io::Error::new(
        io::ErrorKind::ResourceBusy,
        "it is replaced faster than it can be read",
    );
    StoreError::from_reading(path, cause)
}

/// Takes the journals, then the trees; returns the open tables, or `None` if the only journal was replaced by another
/// meanwhile.
///
/// The order is what makes the copy whole: what leaves a journal is in tables before that.
fn take_all(
    database: &Path,
    own: &Path,
    between: &mut impl FnMut(),
) -> Result<Option<Vec<File>>, StoreError> {
    let copied = take_journals(database, own)?;
    between();
    let tables = take_trees(database, own)?;
    Ok(copied.then_some(tables))
}

/// Copies the journals; returns `false` if each was replaced by another meanwhile.
fn take_journals(database: &Path, own: &Path) -> Result<bool, StoreError> {
    let journals = names(database, |entry| has_extension(entry, "jnl"))?;
    let mut copied = journals.is_empty();
    for journal in journals {
        copied |= copy(database, own, &journal)?;
    }
    Ok(copied)
}

/// Takes each tree; returns the open tables.
fn take_trees(database: &Path, own: &Path) -> Result<Vec<File>, StoreError> {
    let mut tables = Vec::new();
    let trees = database.join(TREES);
    for tree in names(&trees, |entry| entry.path().is_dir())? {
        let own = own.join(TREES).join(&tree);
        tables.append(&mut take_tree(&trees.join(&tree), &own)?);
    }
    Ok(tables)
}

/// Takes a tree's files until they make up one version; returns the open tables.
///
/// Tables once opened stay so from one attempt to the next: where the writer makes versions faster than all its tables
/// can be opened, the few that are new still can be.
fn take_tree(tree: &Path, to: &Path) -> Result<Vec<File>, StoreError> {
    let own_tables = to.join(TABLES);
    fs::create_dir_all(&own_tables).map_err(own(&own_tables))?;
    let mut tables = BTreeMap::new();
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        // Which the writer deleted, whatever has its number since.
        tables.retain(|name, table| {
            let is_same = is_still(&tree.join(TABLES).join(name), table);
            is_same || fs::remove_file(own_tables.join(name)).is_err()
        });
        // A tree without it is being made, or has lost it: what it has tells.
        let before = read_if_there(&tree.join(CURRENT))?;
        for file in names(tree, |entry| !entry.path().is_dir())? {
            copy(tree, to, &file)?;
        }
        lend(&tree.join(TABLES), &own_tables, &mut tables)?;
        // What is damaged is taken as it stands, once it stands still.
        if has_all(to, &tables)?
            || read_if_there(&tree.join(CURRENT))? == before
                && read_if_there(&to.join(CURRENT))? == before
        {
            return Ok(tables.into_values().collect());
        }
        for file in names(to, |entry| !entry.path().is_dir())? {
            let file = to.join(file);
            fs::remove_file(&file).map_err(own(&file))?;
        }
        thread::sleep(PAUSE);
    }
    Err(busy(&tree.join(CURRENT)))
}

/// Whether a copied tree's version is whole and all its tables are open.
fn has_all(tree: &Path, tables: &BTreeMap<OsString, File>) -> Result<bool, StoreError> {
    let current = read_if_there(&tree.join(CURRENT))?;
    let Some((number, checksum)) = current.as_deref().and_then(named_version) else {
        return Ok(false);
    };
    let version = read_if_there(&tree.join(format!("v{number}")))?;
    let version = version.filter(|version| xxh3_128(version) == checksum);
    let Some(named) = version.as_deref().and_then(tables_of) else {
        return Ok(false);
    };
    let is_open = |table: &u64| tables.contains_key(OsStr::new(&table.to_string()));
    Ok(named.iter().all(is_open))
}

/// Whether a path leads to an open file. Where that cannot be told it does not.
#[cfg(unix)]
fn is_still(path: &Path, open: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |found: fs::Metadata| (found.dev(), found.ino());
    let (named, opened) = (fs::metadata(path).map(place), open.metadata().map(place));
    matches!((named, opened), (Ok(named), Ok(opened)) if named == opened)
}

#[cfg(not(unix))]
fn is_still(_: &Path, _: &File) -> bool {
    true
}

/// Opens the tables in a folder that are not open yet, and puts links to the open files into another. Tables that
/// vanish meanwhile are left out.
#[cfg(unix)]
fn lend(from: &Path, to: &Path, tables: &mut BTreeMap<OsString, File>) -> Result<(), StoreError> {
    use std::os::fd::AsRawFd;
    let mut found = names(from, |_| true)?;
    found.retain(|name| !tables.contains_key(name));
    allow_open_files(tables.len() + found.len())
        .map_err(|cause| StoreError::from_reading(from, cause))?;
    for name in found {
        let table = from.join(&name);
        if let Some(table) = read(&table, File::open)? {
            let open = PathBuf::from(format!("/dev/fd/{}", table.as_raw_fd()));
            let link = to.join(&name);
            std::os::unix::fs::symlink(open, &link).map_err(own(&link))?;
            tables.insert(name, table);
        }
    }
    Ok(())
}

/// Where open files have no names: copies the tables.
#[cfg(not(unix))]
fn lend(from: &Path, to: &Path, _: &mut BTreeMap<OsString, File>) -> Result<(), StoreError> {
    for name in names(from, |_| true)? {
        copy(from, to, &name)?;
    }
    Ok(())
}

/// Raises this process's limit of open files, as far as it may, if so many more come near it.
#[cfg(unix)]
fn allow_open_files(more: usize) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    /// Files besides: those that fjall keeps open, and the caller's own.
    const OTHERS: u64 = 1_200;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = more as u64 + OTHERS;
    if current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    // Beyond what is allowed, opening says so itself.
    let current = Some(maximum.map_or(wanted, |maximum| maximum.min(wanted)));
    Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?)
}

/// The names in a folder that are wanted, sorted; none if there is no such folder.
fn names(folder: &Path, wanted: impl Fn(&DirEntry) -> bool) -> Result<Vec<OsString>, StoreError> {
    let mut names = Vec::new();
    for entry in read(folder, fs::read_dir)?.into_iter().flatten() {
        let entry = entry.map_err(|cause| StoreError::from_reading(folder, cause))?;
        if wanted(&entry) {
            names.push(entry.file_name());
        }
    }
    names.sort();
    Ok(names)
}

fn has_extension(entry: &DirEntry, wanted: &str) -> bool {
    entry
        .path()
        .extension()
        .is_some_and(|found| found == wanted)
}

/// Copies a file, unless it is gone, and returns whether. Blocks of zeros become holes: fjall reserves 64 MiB for a journal.
fn copy(from: &Path, to: &Path, name: &OsStr) -> Result<bool, StoreError> {
    const BLOCK: usize = 64 << 10;
    let (from, to) = (from.join(name), to.join(name));
    let (unread, unwritten) = (|cause| StoreError::from_reading(&from, cause), own(&to));
    let Some(mut source) = read(&from, File::open)? else {
        return Ok(false);
    };
    let mut copy = File::create(&to).map_err(&unwritten)?;
    let mut block = vec![0; BLOCK];
    let mut length = 0;
    loop {
        let read = match source.read(&mut block) {
            Ok(0) => {
                copy.set_len(length).map_err(&unwritten)?;
                return Ok(true);
            }
            Ok(read) => read,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
            Err(cause) => return Err(unread(cause)),
        };
        length += read as u64;
        let copied = if block[..read].iter().all(|byte| *byte == 0) {
            copy.seek(SeekFrom::Start(length)).map(drop)
        } else {
            copy.write_all(&block[..read])
        };
        copied.map_err(&unwritten)?;
    }
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    read(path, fs::read)
}

/// Reads a file or folder of the database, if it is there.
fn read<T>(
    path: &Path,
    read: impl FnOnce(PathBuf) -> io::Result<T>,
) -> Result<Option<T>, StoreError> {
    if_there(read(path.to_path_buf())).map_err(|cause| StoreError::from_reading(path, cause))
}

#[cfg(test)]
mod tests {
    use arbor_store::{Reader, Store, Table, Write};

    use super::*;
    use crate::{FjallStore, Options};

    const TABLE: Table = Table(1);

    /// A database whose only value is in the journal; and what its writer does next: the value goes to a table, and the journal is emptied.
    fn writer(path: &Path) -> impl FnMut() {
        let open = || FjallStore::open(path, &Options::default()).expect("opened");
        let store = open();
        let write = Write::put(TABLE, b"key", b"value");
        store.write(&[write], true).expect("written");
        let mut store = Some(store);
        move || {
            if let Some(store) = store.take() {
                store.compact().expect("merged");
            }
        }
    }

    /// What fjall finds in a reader's folder.
    fn found(folder: &Path) -> bool {
        let store = FjallStore::open(folder, &Options::default()).expect("opened");
        store.get(TABLE, b"key").expect("read").is_some()
    }

    /// Only by chance would a reader beside a busy writer meet the moment at which a value leaves the journal.
    #[test]
    fn a_value_that_leaves_the_journal_while_a_reader_copies_is_there() {
        let database = tempfile::tempdir().expect("a folder");
        let goes_on = writer(database.path());
        let copy = ReaderCopy::taken(database.path(), goes_on).expect("taken");
        assert!(found(copy.path()));
    }

    /// The test above can fail: in the reversed order the value is in neither.
    #[test]
    fn trees_before_journals_would_lose_it() {
        let database = tempfile::tempdir().expect("a folder");
        let mut goes_on = writer(database.path());
        let folder = TemporaryFolder::make(TemporaryUse::Reading).expect("made");
        copy(database.path(), folder.path(), MARKER.as_ref()).expect("copied");
        let tables = take_trees(database.path(), folder.path()).expect("taken");
        goes_on();
        assert!(take_journals(database.path(), folder.path()).expect("taken"));
        assert!(!found(folder.path()));
        drop(tables);
    }
}

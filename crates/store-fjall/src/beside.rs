//! Reading beside a writer, and without any right to write: a folder of the reader's own that looks like the database's.
//!
//! The crate's documentation says what is in it, and why the order of taking it matters.

use std::ffi::OsString;
use std::fs::{self, DirEntry, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use arbor_store::StoreError;
use tempfile::TempDir;

use crate::folder::{CURRENT, MARKER, TREES};

/// fjall's lock file, which it demands to exist.
const LOCK: &str = "lock";
/// The folder of a tree's table files.
const TABLES: &str = "tables";

/// How often a tree's files are taken anew because the writer went on meanwhile. One attempt takes milliseconds, a writer's
/// versions are tenths of seconds apart.
const ATTEMPTS: usize = 100;

/// A reader's folder and the table files it refers to; gone when dropped.
#[derive(Debug)]
pub(crate) struct Beside {
    folder: TempDir,
    _tables: Vec<File>,
}

impl Beside {
    /// Makes a folder that shows the database at `database` as it is now.
    pub(crate) fn of(database: &Path) -> Result<Self, StoreError> {
        let failed = |cause| StoreError::from_io(database, "open for reading", cause);
        match fs::metadata(database.join(MARKER)) {
            Ok(mark) if mark.len() > 0 => {}
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(failed(cause)),
            _ => {
                let path = database.to_path_buf();
                return Err(StoreError::NotFound { path });
            }
        }
        let own =
            |cause| StoreError::from_io(&std::env::temp_dir(), "making a reader's folder", cause);
        let folder = tempfile::Builder::new()
            .prefix("arbor-reader-")
            .tempdir()
            .map_err(own)?;
        File::create(folder.path().join(LOCK)).map_err(own)?;
        copy(database, folder.path(), MARKER.as_ref()).map_err(failed)?;
        for journal in names(database, |entry| has_extension(entry, "jnl")).map_err(failed)? {
            copy(database, folder.path(), &journal).map_err(failed)?;
        }
        let mut tables = Vec::new();
        let trees = database.join(TREES);
        for tree in names(&trees, |entry| entry.path().is_dir()).map_err(failed)? {
            let own = folder.path().join(TREES).join(&tree);
            tables.append(&mut take_tree(&trees.join(&tree), &own).map_err(failed)?);
        }
        Ok(Self {
            folder,
            _tables: tables,
        })
    }

    /// The folder to open.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Takes a tree's files until none was replaced meanwhile; returns the open tables.
fn take_tree(tree: &Path, own: &Path) -> io::Result<Vec<File>> {
    for _ in 0..ATTEMPTS {
        let Some(before) = read_if_there(&tree.join(CURRENT))? else {
            // A tree that is being made has nothing in it yet, and fjall passes over it.
            return Ok(Vec::new());
        };
        fs::create_dir_all(own.join(TABLES))?;
        for file in names(tree, |entry| !entry.path().is_dir())? {
            copy(tree, own, &file)?;
        }
        let tables = lend(&tree.join(TABLES), &own.join(TABLES))?;
        if read_if_there(&tree.join(CURRENT))?.as_ref() == Some(&before)
            && read_if_there(&own.join(CURRENT))?.as_ref() == Some(&before)
        {
            return Ok(tables);
        }
        fs::remove_dir_all(own)?;
    }
    let busy = format!(
        "{} is replaced faster than it can be read",
        tree.join(CURRENT).display()
    );
    Err(io::Error::new(io::ErrorKind::ResourceBusy, busy))
}

/// Opens the tables in a folder and puts links to the open files into another. Tables that vanish meanwhile are left out.
#[cfg(unix)]
fn lend(from: &Path, to: &Path) -> io::Result<Vec<File>> {
    use std::os::fd::AsRawFd;
    let found = names(from, |_| true)?;
    allow_open_files(found.len())?;
    let mut tables = Vec::with_capacity(found.len());
    for name in found {
        if let Some(table) = if_there(File::open(from.join(&name)))? {
            let open = PathBuf::from(format!("/dev/fd/{}", table.as_raw_fd()));
            std::os::unix::fs::symlink(open, to.join(&name))?;
            tables.push(table);
        }
    }
    Ok(tables)
}

/// Where open files have no names: copies the tables.
#[cfg(not(unix))]
fn lend(from: &Path, to: &Path) -> io::Result<Vec<File>> {
    for name in names(from, |_| true)? {
        copy(from, to, &name)?;
    }
    Ok(Vec::new())
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

/// The names in a folder that are wanted, sorted.
fn names(folder: &Path, wanted: impl Fn(&DirEntry) -> bool) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
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

/// Copies a file, unless it is gone. Blocks of zeros become holes: fjall reserves 64 MiB for a journal.
fn copy(from: &Path, to: &Path, name: &std::ffi::OsStr) -> io::Result<()> {
    const BLOCK: usize = 64 << 10;
    let Some(mut from) = if_there(File::open(from.join(name)))? else {
        return Ok(());
    };
    let mut to = File::create(to.join(name))?;
    let mut block = vec![0; BLOCK];
    let mut length = 0;
    loop {
        let read = match from.read(&mut block) {
            Ok(0) => return to.set_len(length),
            Ok(read) => read,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
            Err(cause) => return Err(cause),
        };
        length += read as u64;
        if block[..read].iter().all(|byte| *byte == 0) {
            to.seek(SeekFrom::Start(length))?;
        } else {
            to.write_all(&block[..read])?;
        }
    }
}

fn read_if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    if_there(fs::read(path))
}

fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

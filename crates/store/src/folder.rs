//! What stores with files share: the lock on their folder, and its size.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::StoreError;

/// The lock file's name. Engines lock files of their own, but some only after they have begun to
/// read or create, and some with retries; this one is taken first and refused at once.
const LOCK: &str = "arbor.lock";

/// Makes durable what a file or folder is called: its name, and that it is there.
///
/// # Errors
/// If the folder that it is in cannot be opened or synced.
pub fn sync_name(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    // Elsewhere folders cannot be opened.
    match cfg!(unix) {
        true => File::open(parent)?.sync_all(),
        false => Ok(()),
    }
}

/// A database's folder, locked against other handles and processes until this is dropped.
#[derive(Debug)]
pub struct LockedFolder {
    path: PathBuf,
    _lock: File,
}

impl LockedFolder {
    /// Locks a folder. `mark` names a file that every database of the engine has; where it is
    /// absent and `create` is not set, nothing is touched.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::AlreadyOpen`], [`StoreError::ReadOnly`] and other
    /// failures to make the folder or the lock file.
    pub fn lock(path: &Path, mark: &str, create: bool) -> Result<Self, StoreError> {
        let failed = |cause| StoreError::from_io(path, "open", cause);
        let path = path.to_path_buf();
        if !create && !path.join(mark).exists() {
            return Err(StoreError::NotFound { path });
        }
        fs::create_dir_all(&path).map_err(failed)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join(LOCK))
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(StoreError::AlreadyOpen { path }),
            Err(TryLockError::Error(cause)) => Err(failed(cause)),
        }
    }

    /// The folder's path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of disk that the folder's files occupy, in allocated blocks.
    ///
    /// # Errors
    /// If a folder cannot be listed.
    pub fn occupied_bytes(&self) -> Result<u64, StoreError> {
        occupied_bytes(&self.path)
            .map_err(|cause| StoreError::from_io(&self.path, "disk_bytes", cause))
    }
}

/// Returns the bytes of disk that the files below a folder occupy, in allocated blocks: holes of
/// sparse files count nothing. A file that vanishes meanwhile (merges delete some) counts nothing.
///
/// # Errors
/// If a folder cannot be listed.
pub fn occupied_bytes(path: &Path) -> io::Result<u64> {
    let Some(entries) = if_there(fs::read_dir(path))? else {
        return Ok(0);
    };
    entries.into_iter().try_fold(0, |sum, entry| {
        let entry = entry?;
        let bytes = match if_there(entry.metadata())? {
            Some(found) if found.is_dir() => occupied_bytes(&entry.path())?,
            Some(found) => file_bytes(&found),
            None => 0,
        };
        Ok(sum + bytes)
    })
}

/// Returns what a file or folder gave, or `None` if there is none of that name.
///
/// # Errors
/// All errors but [`io::ErrorKind::NotFound`].
pub fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(unix)]
fn file_bytes(found: &fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    /// The unit of `st_blocks`, whatever the file system's block size (stat(2)).
    const UNIT: u64 = 512;
    found.blocks() * UNIT
}

#[cfg(not(unix))]
fn file_bytes(found: &fs::Metadata) -> u64 {
    found.len()
}

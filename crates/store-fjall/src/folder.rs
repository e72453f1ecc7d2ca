//! The database's folder: the lock, what an interrupted creation left, and sizes.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

use arbor_store::StoreError;

/// Our lock file. fjall locks a file of its own, but only after it has begun to read or create;
/// this one covers the clean-up before that, and is refused at once instead of after retries.
const LOCK: &str = "arbor.lock";
/// fjall's mark of a database, written last at creation.
const MARKER: &str = "version";
/// fjall's first journal, written before the mark.
const FIRST_JOURNAL: &str = "0.jnl";

/// Locks a folder for this handle, creating it if asked to. The lock ends with the file's handle.
pub(crate) fn lock(path: &Path, create: bool) -> Result<File, StoreError> {
    let failed = |cause| StoreError::from_io(path, "open", cause);
    if !create && !path.join(MARKER).exists() {
        return Err(StoreError::NotFound {
            path: path.to_path_buf(),
        });
    }
    fs::create_dir_all(path).map_err(failed)?;
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.join(LOCK))
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::AlreadyOpen {
            path: path.to_path_buf(),
        }),
        Err(TryLockError::Error(cause)) => Err(failed(cause)),
    }
}

/// Removes what a creation that was interrupted (a crash, a full disk) has left and what fjall would stumble
/// over. Without its mark, a database has never held data.
pub(crate) fn clear_unfinished(path: &Path) -> Result<(), StoreError> {
    let failed = |cause| StoreError::from_io(path, "open", cause);
    let marker = path.join(MARKER);
    match fs::metadata(&marker) {
        Ok(found) if found.len() > 0 => return Ok(()),
        Ok(_) => fs::remove_file(&marker).map_err(failed)?,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
        Err(cause) => return Err(failed(cause)),
    }
    match fs::remove_file(path.join(FIRST_JOURNAL)) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(failed(cause)),
        _ => Ok(()),
    }
}

/// Bytes of disk that the files below a folder occupy. A file that vanishes meanwhile (merges
/// delete some) counts nothing.
pub(crate) fn occupied_bytes(path: &Path) -> io::Result<u64> {
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

fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
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

//! What fjall leaves in the folder that is put right here.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use arbor_store::{StoreError, sync_name};

use crate::integrity::{has_data, without_mark};
use crate::names::{CURRENT, LOCK, MARK_BYTES, MARKER, TABLES, TREES};

/// fjall's first journal, written before the mark.
const FIRST_JOURNAL: &str = "0.jnl";

/// Whether a folder has fjall's mark of a database. A power loss may leave one of the right length with zeros in it.
pub(crate) fn is_marked(path: &Path) -> io::Result<bool> {
    let mut mark = Vec::new();
    match File::open(path.join(MARKER)) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file?.take(MARK_BYTES).read_to_end(&mut mark)?,
    };
    Ok(mark.len() as u64 == MARK_BYTES && mark.iter().any(|byte| *byte != 0))
}

/// Makes a new database durable: its mark, whose bytes fjall may leave to the system, the names of its trees, and its own.
pub(crate) fn sync_new(path: &Path) -> Result<(), StoreError> {
    let marker = path.join(MARKER);
    File::open(&marker)
        .and_then(|mark| mark.sync_all())
        .and_then(|()| File::open(path.join(TREES))?.sync_all())
        .and_then(|()| sync_name(&marker))
        .and_then(|()| sync_name(path))
        .map_err(|cause| StoreError::from_io(path, "sync", cause))
}

/// Removes the rest of a creation that was interrupted (by a crash, a full disk, a power loss) and that fjall would stumble
/// over, if no data was written to the database. A database with data but without its mark is refused.
pub(crate) fn clear_unfinished(path: &Path) -> Result<(), StoreError> {
    let failed = |cause| StoreError::from_io(path, "open", cause);
    let marker = path.join(MARKER);
    let first_journal = path.join(FIRST_JOURNAL);
    match (is_marked(path).map_err(failed)?, has_data(path)?) {
        (true, true) => return Ok(()),
        (false, true) => return Err(without_mark(path)),
        // The journal was made before the mark, so a journal that is missing was lost later, perhaps with data.
        (true, false) if !first_journal.exists() => return Ok(()),
        (_, false) => {}
    }
    // The mark first: without it, the next call clears the rest, if this one is killed.
    let gone = |removed: io::Result<()>| match removed {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(failed(cause)),
        _ => Ok(()),
    };
    gone(fs::remove_file(&marker))?;
    sync_name(&marker).map_err(failed)?;
    gone(fs::remove_dir_all(path.join(TREES)))?;
    gone(fs::remove_file(first_journal))
}

/// Makes fjall's lock file anew where it was lost. It has nothing in it, and fjall opens no database without.
pub(crate) fn restore_lock(path: &Path) -> Result<(), StoreError> {
    let lock = path.join(LOCK);
    let opened = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&lock);
    opened
        .map(drop)
        .map_err(|cause| StoreError::from_io(&lock, "open", cause))
}

/// Whether a file, at this path below the database's folder, is a table: written once, and deleted when a merge has made others of it.
#[must_use]
pub fn is_table(path: &Path) -> bool {
    let parts: Vec<_> = path.components().map(|part| part.as_os_str()).collect();
    matches!(parts[..], [trees, _, tables, _] if trees == TREES && tables == TABLES)
}

/// Lets those read a tree's file `current` who may read the other files, now and when dropped: fjall replaces it, with
/// every version of the tree, by a file that is its owner's alone.
pub(crate) struct SharedFiles(pub(crate) PathBuf);

impl SharedFiles {
    /// What fails here fails to serve a reader of another user's, and harms nobody else.
    pub(crate) fn share(&self) {
        let Ok(like) = fs::metadata(self.0.join(MARKER)) else {
            return;
        };
        let trees = fs::read_dir(self.0.join(TREES)).into_iter().flatten();
        for tree in trees.flatten() {
            let _ = fs::set_permissions(tree.path().join(CURRENT), like.permissions());
        }
    }
}

impl Drop for SharedFiles {
    fn drop(&mut self) {
        self.share();
    }
}

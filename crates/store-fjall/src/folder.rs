//! What fjall leaves in the folder that is put right here.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use arbor_store::StoreError;

use crate::contents::{has_trees, without_mark};

/// fjall's mark of a database, written last at creation.
pub(crate) const MARKER: &str = "version";
/// The folder with a folder for each tree.
pub(crate) const TREES: &str = "keyspaces";
/// Names a tree's newest version: its number `n` (8 bytes, little-endian), the XXH3-128 of its file `vn` (16 bytes, little-endian), and
/// a byte 0.
pub(crate) const CURRENT: &str = "current";
/// The folder of a tree's tables.
pub(crate) const TABLES: &str = "tables";
/// fjall's lock file, which it demands to exist.
pub(crate) const LOCK: &str = "lock";
/// How long the mark is: it is written in two steps, of three bytes and one.
pub(crate) const MARK_BYTES: u64 = 4;
/// fjall's first journal, written before the mark.
const FIRST_JOURNAL: &str = "0.jnl";

/// Removes what a creation that was interrupted (a crash, a full disk) has left and what fjall would stumble
/// over. Without its mark, a database has never held data, as it has no trees.
pub(crate) fn clear_unfinished(path: &Path) -> Result<(), StoreError> {
    let failed = |cause| StoreError::from_io(path, "open", cause);
    let marker = path.join(MARKER);
    match fs::metadata(&marker) {
        Ok(found) if found.len() >= MARK_BYTES => return Ok(()),
        _ if has_trees(path) => return Err(without_mark(path)),
        Ok(_) => fs::remove_file(&marker).map_err(failed)?,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
        Err(cause) => return Err(failed(cause)),
    }
    match fs::remove_file(path.join(FIRST_JOURNAL)) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(failed(cause)),
        _ => Ok(()),
    }
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

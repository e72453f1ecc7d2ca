//! What fjall leaves in the folder that is put right here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use arbor_store::StoreError;
use xxhash_rust::xxh3::xxh3_128;

/// fjall's mark of a database, written last at creation.
pub(crate) const MARKER: &str = "version";
/// The folder with a folder for each tree.
pub(crate) const TREES: &str = "keyspaces";
/// Names a tree's newest version: its number `n` (8 bytes, little-endian), the XXH3-128 of its file `vn` (16 bytes, little-endian), and
/// a byte 0.
pub(crate) const CURRENT: &str = "current";
/// fjall's first journal, written before the mark.
const FIRST_JOURNAL: &str = "0.jnl";

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

/// Compares each tree's newest version with the checksum that names it. lsm-tree 3.1 writes that checksum and does not look at it: it
/// asserts what it finds in a damaged file, or believes it, and fjall ends the process when a thread panics while it opens.
///
/// Nobody may be writing the files. An error names `database`, whose files they are or were copied from.
pub(crate) fn check_versions(files: &Path, database: &Path) -> Result<(), StoreError> {
    let failed = |cause| StoreError::from_io(database, "open", cause);
    let trees = match fs::read_dir(files.join(TREES)) {
        // A database that is being made.
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        trees => trees.map_err(failed)?,
    };
    for tree in trees {
        let tree = tree.map_err(failed)?;
        let name = tree.file_name();
        let tree = tree.path();
        let current = match fs::read(tree.join(CURRENT)) {
            // A tree that was being made, which fjall passes over, or a file that is no tree.
            Err(cause) if is_absent(&cause) => continue,
            current => current.map_err(failed)?,
        };
        let damaged = |what: String| StoreError::Corrupt {
            path: database.join(TREES).join(&name),
            what,
        };
        let Some((number, checksum)) = named_version(&current) else {
            let bytes = current.len();
            return Err(damaged(format!(
                "its file {CURRENT} ({bytes} bytes) names no version"
            )));
        };
        let file = format!("v{number}");
        match fs::read(tree.join(&file)) {
            Ok(version) if xxh3_128(&version) == checksum => {}
            Ok(_) => {
                return Err(damaged(format!(
                    "its file {file} or {CURRENT} is damaged: their checksums differ"
                )));
            }
            Err(cause) if is_absent(&cause) => {
                return Err(damaged(format!(
                    "its file {CURRENT} names {file}, which is not there"
                )));
            }
            Err(cause) => return Err(failed(cause)),
        }
    }
    Ok(())
}

fn is_absent(cause: &io::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// The number and the checksum of the version that a file `current` names.
fn named_version(current: &[u8]) -> Option<(u64, u128)> {
    let (number, rest) = current.split_first_chunk()?;
    let (checksum, kind) = rest.split_first_chunk()?;
    (kind == [0]).then(|| (u64::from_le_bytes(*number), u128::from_le_bytes(*checksum)))
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

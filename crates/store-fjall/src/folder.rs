//! What an interrupted creation leaves in the folder.

use std::fs;
use std::io;
use std::path::Path;

use arbor_store::StoreError;

/// fjall's mark of a database, written last at creation.
pub(crate) const MARKER: &str = "version";
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

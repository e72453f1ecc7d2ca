//! The folder of a reader's own, in the system's temporary directory.
//!
//! A reader that is killed leaves its folder, which under fjall has up to 64 MiB of a journal and more of versions. So each locks its folder as long as it lives,
//! which the system ends with the process however that ends, and each new reader removes the folders that nobody has locked. A folder gets
//! its lasting name when it is locked. One that another reader removes before that is made again.
//!
//! Only its owner may look into it: what is copied there may be of a database that is closed to others.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::StoreError;

/// The name of a folder that is in use or was left, before six random letters and digits.
const READING: &str = "arbor-reading-";
/// As long as it is not locked, or for good where folders cannot be.
const MAKING: &str = "arbor-making-";

/// A folder that is gone when this is dropped, or else when the next reader makes one.
#[derive(Debug)]
pub struct ReaderFolder {
    path: PathBuf,
    _lock: Option<File>,
}

impl ReaderFolder {
    /// Makes one, and removes those that killed readers of the same user have left.
    ///
    /// # Errors
    /// No room in the system's temporary directory, or no right to write there.
    pub fn make() -> Result<Self, StoreError> {
        let temporary = std::env::temp_dir();
        let made = Self::make_in(&temporary)
            .map_err(|cause| StoreError::from_io(&temporary, "making a reader's folder", cause))?;
        made.remove_abandoned(&temporary);
        Ok(made)
    }

    fn make_in(temporary: &Path) -> io::Result<Self> {
        /// Others that begin at the same moment may each take the folder for one that was left.
        const ATTEMPTS: usize = 100;
        for _ in 1..ATTEMPTS {
            match Self::try_make_in(temporary) {
                Err(cause) if is_taken(&cause) => {}
                made => return made,
            }
        }
        Self::try_make_in(temporary)
    }

    fn try_make_in(temporary: &Path) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let making = builder.prefix(MAKING).tempdir_in(temporary)?;
        let lock = match lock(making.path()) {
            Ok(lock) => lock,
            Err(cause) if is_taken(&cause) => return Err(cause),
            Err(_) => {
                let (path, lock) = (making.keep(), None);
                return Ok(Self { path, _lock: lock });
            }
        };
        let name = making.path().file_name().and_then(|name| name.to_str());
        let random = name.and_then(|name| name.strip_prefix(MAKING));
        let path = temporary.join(format!("{READING}{}", random.unwrap_or_default()));
        fs::rename(making.path(), &path)?;
        drop(making.keep());
        let lock = Some(lock);
        Ok(Self { path, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What fails here leaves a folder that the next reader may remove.
    fn remove_abandoned(&self, temporary: &Path) {
        let entries = fs::read_dir(temporary).into_iter().flatten();
        for entry in entries.flatten() {
            let is_readers = entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.starts_with(READING) || name.starts_with(MAKING));
            if !is_readers || entry.path() == self.path {
                continue;
            }
            let found = entry.metadata();
            if found.is_ok_and(|found| found.is_dir() && self.is_of_the_same_user(&found))
                && let Ok(_abandoned) = lock(&entry.path())
            {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    #[cfg(unix)]
    fn is_of_the_same_user(&self, other: &fs::Metadata) -> bool {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(&self.path).is_ok_and(|own| own.uid() == other.uid())
    }

    #[cfg(not(unix))]
    fn is_of_the_same_user(&self, _: &fs::Metadata) -> bool {
        true
    }
}

impl Drop for ReaderFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Whether a folder that was just made is another reader's to remove, or removed.
fn is_taken(cause: &io::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::NotFound
    )
}

/// Locks a folder, unless somebody has; until the file is dropped.
fn lock(folder: &Path) -> io::Result<File> {
    let folder = File::open(folder)?;
    folder.try_lock()?;
    Ok(folder)
}

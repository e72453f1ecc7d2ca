//! Versions that a reader in another process keeps a writer from forgetting.
//!
//! A pin is a file in the folder `pins` of a database. Its name ends with the number of the version, and its reader holds it locked. A
//! file that is not locked belongs to a reader that is gone, and the writer removes it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::error::VersionsError;
use crate::version::Version;

/// The folder within a database's.
const FOLDER: &str = "pins";
/// How often a writer looks whether the reader of a pin is still there.
const LIVENESS: Duration = Duration::from_secs(1);

/// A version that the writer of a database keeps readable, and all after it, until this is dropped or the process ends.
///
/// A writer that had forgotten the version before the pin was made does not bring it back: look whether the version is retained after a
/// flush that came later.
#[derive(Debug)]
pub struct Pin {
    path: PathBuf,
    version: Version,
    _file: File,
}

impl Pin {
    /// Pins a version of the database in a directory.
    ///
    /// # Errors
    /// A directory that may not be written.
    pub fn new(dir: &Path, version: Version) -> Result<Self, VersionsError> {
        /// Tells pins of one process apart.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let folder = dir.join(FOLDER);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}-{}", std::process::id(), version.0);
        // The name begins with a point until the file is locked.
        let (new, path) = (folder.join(format!(".{name}")), folder.join(&name));
        let failed = |source| VersionsError::Io {
            action: "pin a version by",
            path: path.clone(),
            source,
        };
        let make = || {
            fs::create_dir_all(&folder)?;
            let file = OpenOptions::new()
                .create(true)
                .truncate(true)
                .write(true)
                .open(&new)?;
            file.lock()?;
            fs::rename(&new, &path)?;
            Ok(file)
        };
        let file = make().map_err(failed)?;
        Ok(Self {
            path,
            version,
            _file: file,
        })
    }

    /// The version.
    pub fn version(&self) -> Version {
        self.version
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        // If it stays, the writer finds it unlocked.
        let _ = fs::remove_file(&self.path);
    }
}

/// The pins of a database, as its writer sees them.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    /// `None` for a database that is not in a directory.
    folder: Option<PathBuf>,
    /// When the folder was changed last, and when it was looked at.
    seen: Option<(SystemTime, Instant)>,
    oldest: Option<u64>,
}

impl Pins {
    pub(crate) fn of(dir: Option<&Path>) -> Self {
        Self {
            folder: dir.map(|dir| dir.join(FOLDER)),
            ..Self::default()
        }
    }

    /// Returns the oldest version that is pinned. Without pins this is a look at one folder's date.
    pub(crate) fn oldest(&mut self) -> Option<u64> {
        let folder = self.folder.as_deref()?;
        let Ok(changed) = fs::metadata(folder).and_then(|found| found.modified()) else {
            self.oldest = None;
            return None;
        };
        let is_known = self.seen.is_some_and(|(before, at)| {
            before == changed && (self.oldest.is_none() || at.elapsed() < LIVENESS)
        });
        // A change within the same tick of the clock would not be seen.
        let is_settled = changed.elapsed().is_ok_and(|age| age > LIVENESS);
        if !is_known || !is_settled {
            self.oldest = pinned(folder);
            self.seen = Some((changed, Instant::now()));
        }
        self.oldest
    }
}

/// The oldest version of the pins in a folder. Those whose readers are gone are removed.
fn pinned(folder: &Path) -> Option<u64> {
    let entries = fs::read_dir(folder).ok()?;
    let versions = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let version = name.rsplit('-').next()?.parse().ok()?;
        if name.starts_with('.') {
            return None;
        }
        let path = entry.path();
        let file = File::open(&path).ok()?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Some(version),
            Ok(()) => {
                let _ = fs::remove_file(&path);
                None
            }
            Err(TryLockError::Error(_)) => None,
        }
    });
    versions.min()
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_pin_of_a_living_reader_counts() {
        let dir = tempfile::tempdir().unwrap();
        let mut pins = Pins::of(Some(dir.path()));
        assert_eq!(pins.oldest(), None);
        let seven = Pin::new(dir.path(), Version(7)).unwrap();
        let nine = Pin::new(dir.path(), Version(9)).unwrap();
        assert_eq!(pins.oldest(), Some(7));
        drop(seven);
        assert_eq!(pins.oldest(), Some(9));
        // A file that nobody holds is that of a process that was killed.
        let left = dir.path().join(FOLDER).join("1-0-3");
        fs::write(&left, "").unwrap();
        assert_eq!(pins.oldest(), Some(9));
        assert!(!left.exists());
        drop(nine);
        assert_eq!(pins.oldest(), None);
        assert_eq!(Pins::of(None).oldest(), None);
    }
}

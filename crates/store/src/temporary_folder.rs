//! Folders of this process alone, in the system's folder for temporary files (`TMPDIR`).
//!
//! A process that is killed leaves its folders, which under fjall have a journal of up to 64 MiB and more. So each process locks its folders as long as it lives,
//! which the system ends with the process however that ends, and whoever makes a new folder removes those that nobody has locked. A folder gets
//! its lasting name when it is locked. A folder that another process removes before that is made again.
//!
//! A folder is removed only if its name is one of those that are given here, its owner is the user, it is locked by nobody, and it has the mark of these folders. Only
//! its owner may look into it: what is copied there may be of a database that is closed to others.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::StoreError;

/// The beginning of a folder's name as long as the folder is not locked, or for good where folders cannot be.
const MAKING: &str = "arbor-making-";
/// Letters and digits after the beginning of a folder's name.
const RANDOM: usize = 6;
/// The file that each folder has.
const MARK: &str = "arbor-temporary";
const MARK_TEXT: &str = "A temporary folder of arbor. If no arbor runs, it may be deleted.\n";
/// The folder for the files, beside the mark.
const FILES: &str = "files";

/// The use of a temporary folder, which its name tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TemporaryUse {
    /// A reader's copy of what a writer may replace: `arbor-reading-XXXXXX`.
    Reading,
    /// A store in which older versions are made: `arbor-past-XXXXXX`.
    Past,
}

impl TemporaryUse {
    /// The beginning of the folder's name.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Reading => "arbor-reading-",
            Self::Past => "arbor-past-",
        }
    }
}

/// The beginnings of all names.
const PREFIXES: [&str; 3] = [
    MAKING,
    TemporaryUse::Reading.prefix(),
    TemporaryUse::Past.prefix(),
];

/// A folder that is gone when this is dropped, or else when the next one is made.
#[derive(Debug)]
pub struct TemporaryFolder {
    root: PathBuf,
    files: PathBuf,
    _lock: Option<File>,
}

impl TemporaryFolder {
    /// Makes a folder, and removes those that killed processes of the same user have left.
    ///
    /// # Errors
    /// No room in the system's folder for temporary files, or no right to write there.
    pub fn make(used_for: TemporaryUse) -> Result<Self, StoreError> {
        let temporary = std::env::temp_dir();
        let made = Self::make_in(&temporary, used_for).map_err(|cause| {
            StoreError::from_temporary(&temporary, "making a temporary folder", cause)
        })?;
        made.remove_abandoned(&temporary);
        Ok(made)
    }

    fn make_in(temporary: &Path, used_for: TemporaryUse) -> io::Result<Self> {
        /// Others that begin at the same moment may each take the folder for one that was left.
        const ATTEMPTS: usize = 100;
        for _ in 1..ATTEMPTS {
            match Self::try_make_in(temporary, used_for) {
                Err(cause) if is_taken(&cause) => {}
                made => return made,
            }
        }
        Self::try_make_in(temporary, used_for)
    }

    fn try_make_in(temporary: &Path, used_for: TemporaryUse) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let making = builder
            .prefix(MAKING)
            .rand_bytes(RANDOM)
            .tempdir_in(temporary)?;
        let lock = match lock(making.path()) {
            Ok(lock) => lock,
            Err(cause) if is_taken(&cause) => return Err(cause),
            Err(_) => {
                fs::create_dir(making.path().join(FILES))?;
                return Ok(Self::at(making.keep(), None));
            }
        };
        fs::write(making.path().join(MARK), MARK_TEXT)?;
        fs::create_dir(making.path().join(FILES))?;
        let name = making.path().file_name().and_then(|name| name.to_str());
        let random = name.and_then(|name| name.strip_prefix(MAKING));
        let prefix = used_for.prefix();
        let root = temporary.join(format!("{prefix}{}", random.unwrap_or_default()));
        fs::rename(making.path(), &root)?;
        drop(making.keep());
        Ok(Self::at(root, Some(lock)))
    }

    fn at(root: PathBuf, lock: Option<File>) -> Self {
        let files = root.join(FILES);
        Self {
            root,
            files,
            _lock: lock,
        }
    }

    /// The folder for files, which is empty at first.
    pub fn path(&self) -> &Path {
        &self.files
    }

    /// What fails here leaves a folder that the next one removes.
    fn remove_abandoned(&self, temporary: &Path) {
        let entries = fs::read_dir(temporary).into_iter().flatten();
        for entry in entries.flatten() {
            let is_named = entry.file_name().to_str().is_some_and(is_temporary);
            if !is_named || entry.path() == self.root {
                continue;
            }
            // Of a symbolic link, this is the link's own.
            let found = entry.metadata();
            if found.is_ok_and(|found| found.is_dir() && self.is_of_the_same_user(&found))
                && let Ok(_abandoned) = lock(&entry.path())
            {
                match has_mark(&entry.path()) {
                    true => remove(&entry.path()),
                    // Its process ended before or after the mark was there: nothing is in it.
                    false => drop(fs::remove_dir(entry.path())),
                }
            }
        }
    }

    #[cfg(unix)]
    fn is_of_the_same_user(&self, other: &fs::Metadata) -> bool {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(&self.root).is_ok_and(|own| own.uid() == other.uid())
    }

    #[cfg(not(unix))]
    fn is_of_the_same_user(&self, _: &fs::Metadata) -> bool {
        true
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        remove(&self.root);
    }
}

/// Removes a folder of these, the mark after the files: what is left of it, if the process ends here, is removed by the next. What somebody else has put beside the mark stays.
fn remove(root: &Path) {
    if crate::if_there(fs::remove_dir_all(root.join(FILES))).is_ok() {
        let _ = fs::remove_file(root.join(MARK));
        let _ = fs::remove_dir(root);
    }
}

/// Whether a folder has the name of one of these.
fn is_temporary(name: &str) -> bool {
    let random = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    random.is_some_and(|random| {
        random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

fn has_mark(root: &Path) -> bool {
    fs::symlink_metadata(root.join(MARK)).is_ok_and(|found| found.is_file())
}

/// Whether a folder that was just made is another process's to remove, or removed.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything in a folder, by name.
    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("listed");
        let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> = entries
            .map(|entry| name(entry).to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// A folder as a killed process leaves it.
    fn left(temporary: &Path, name: &str) -> PathBuf {
        let root = temporary.join(name);
        fs::create_dir_all(root.join(FILES)).expect("made");
        fs::write(root.join(MARK), MARK_TEXT).expect("written");
        fs::write(root.join(FILES).join("0.jnl"), [0; 100]).expect("written");
        root
    }

    #[test]
    fn only_what_was_left_is_removed() {
        let outside = tempfile::tempdir().expect("made");
        let temporary = outside.path();
        for name in [
            "arbor-past-aB3dE6",
            "arbor-reading-000000",
            "arbor-making-zzzzzz",
        ] {
            left(temporary, name);
        }
        // A process may end before there is a mark, or when it is removed.
        fs::create_dir(temporary.join("arbor-making-empty1")).expect("made");
        let before_the_files_were_made = left(temporary, "arbor-past-nofile");
        fs::remove_dir_all(before_the_files_were_made.join(FILES)).expect("removed");
        // These are nobody's leavings.
        let locked = left(temporary, "arbor-past-living");
        let living = lock(&locked).expect("locked");
        fs::remove_file(left(temporary, "arbor-past-nomark").join(MARK)).expect("removed");
        left(temporary, "arbor-past-longer-name");
        left(temporary, "arbor-XXXXXX");
        fs::write(temporary.join("arbor-past-afile1"), "").expect("written");
        let mut kept = vec![
            "arbor-XXXXXX",
            "arbor-past-afile1",
            "arbor-past-living",
            "arbor-past-longer-name",
            "arbor-past-nomark",
        ];
        #[cfg(unix)]
        {
            let aim = left(temporary, "somewhere");
            std::os::unix::fs::symlink(&aim, temporary.join("arbor-past-linked")).expect("linked");
            let marked = temporary.join("arbor-past-fifoed");
            fs::create_dir(&marked).expect("made");
            std::os::unix::fs::symlink(aim.join(MARK), marked.join(MARK)).expect("linked");
            kept.extend(["arbor-past-linked", "arbor-past-fifoed", "somewhere"]);
            kept.sort_unstable();
        }
        let made = TemporaryFolder::make_in(temporary, TemporaryUse::Past).expect("made");
        made.remove_abandoned(temporary);
        assert!(made.path().is_dir());
        let files = fs::read_dir(made.path()).expect("listed");
        assert_eq!(files.count(), 0, "its files are the caller's");
        drop(made);
        assert_eq!(names(temporary), kept);
        #[cfg(unix)]
        assert!(temporary.join("somewhere/files/0.jnl").exists());
        // A folder goes once its process has ended.
        drop(living);
        let made = TemporaryFolder::make_in(temporary, TemporaryUse::Reading).expect("made");
        made.remove_abandoned(temporary);
        drop(made);
        kept.retain(|name| *name != "arbor-past-living");
        assert_eq!(names(temporary), kept);
    }

    #[test]
    fn a_strangers_file_in_a_folder_stays() {
        let outside = tempfile::tempdir().expect("made");
        let root = left(outside.path(), "arbor-past-shared");
        fs::write(root.join("notes"), "mine").expect("written");
        let made = TemporaryFolder::make_in(outside.path(), TemporaryUse::Past).expect("made");
        made.remove_abandoned(outside.path());
        assert_eq!(names(&root), ["notes"]);
    }

    /// Many make folders and remove leavings at once: each has its own as long as it holds it.
    #[test]
    fn many_may_clean_at_once() {
        let outside = tempfile::tempdir().expect("made");
        let temporary = outside.path();
        for number in 0..100 {
            left(temporary, &format!("arbor-past-{number:06}"));
        }
        let turns = || {
            for _ in 0..40 {
                let made = TemporaryFolder::make_in(temporary, TemporaryUse::Past);
                let made = made.expect("made beside others");
                let file = made.path().join("kept");
                fs::write(&file, [1; 1_000]).expect("written");
                made.remove_abandoned(temporary);
                assert_eq!(fs::read(&file).expect("still there").len(), 1_000);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(turns);
            }
        });
        assert_eq!(names(temporary), [""; 0]);
    }
}

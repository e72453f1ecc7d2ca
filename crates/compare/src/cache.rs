//! The operating system's cache of files at the begin of a run.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What is in the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// The start database, and whatever earlier runs left there: the chain's files, as a rule.
    Warm,
    /// Nothing of the chain's files and of the start database.
    Cold,
}

impl Cache {
    /// The name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
        }
    }
}

/// Drops the files below these paths from the cache; returns how many there were.
///
/// The files are synced first, since `posix_fadvise` passes over pages that are not written yet.
pub(crate) fn forget(paths: &[&Path]) -> io::Result<u64> {
    let mut files = 0;
    for path in paths {
        if path.is_dir() {
            for entry in fs::read_dir(path)? {
                files += forget(&[&entry?.path()])?;
            }
        } else {
            forget_file(path)?;
            files += 1;
        }
    }
    Ok(files)
}

/// Reads every file of a folder, so that the cache has of it what it can hold; returns the bytes.
pub(crate) fn read(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        bytes += match path.is_dir() {
            true => read(&path)?,
            false => io::copy(&mut fs::File::open(path)?, &mut io::sink())?,
        };
    }
    Ok(bytes)
}

#[cfg(target_os = "linux")]
fn forget_file(path: &Path) -> io::Result<()> {
    use rustix::fs::{Advice, fadvise};
    let file = fs::File::open(path)?;
    file.sync_data()?;
    Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
}

#[cfg(not(target_os = "linux"))]
fn forget_file(_: &Path) -> io::Result<()> {
    Err(io::Error::other(
        "a cold cache can be had on Linux only: use --cache warm",
    ))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn files_of_folders_are_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let (below, single) = (folder.path().join("below"), folder.path().join("single"));
        fs::create_dir(&below).expect("made");
        for name in ["a", "b"] {
            fs::write(below.join(name), name).expect("written");
        }
        fs::write(&single, "c").expect("written");
        assert_eq!(forget(&[&below, &single]).expect("forgotten"), 3);
        assert_eq!(read(folder.path()).expect("read"), 3);
        assert!(forget(&[&folder.path().join("missing")]).is_err());
    }
}

//! What a folder of a conversion says that it is, so that only the same conversion goes on in it.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::ConvertError;
use crate::error::FOLDER;

/// The name of the file in the target's folder that a finished conversion leaves.
const FINISHED: &str = "converted.json";

/// How far a conversion has come: what is before its stage is done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// The accounts are being sorted. The target's store is empty.
    Sort,
    /// The target is being built.
    Build,
    /// The target is a whole database, and is being compared with the source.
    Verify,
}

/// A conversion, as its folder remembers it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Job {
    /// The source: what it is, and which block.
    pub source: String,
    /// The target: tree, hash function and settings.
    pub target: String,
    /// How far it has come.
    pub stage: Stage,
    /// The command that goes on with it.
    #[serde(default)]
    pub command: String,
    /// The number of the source's block, if that is known.
    #[serde(default)]
    pub block: Option<u64>,
}

impl Job {
    /// The folder of the files that a conversion into a database's folder makes, and removes at its end.
    pub fn folder(target: &Path) -> PathBuf {
        target.join(FOLDER)
    }

    fn file(target: &Path) -> PathBuf {
        Self::folder(target).join("job.json")
    }

    /// Reads which conversion was begun in a database's folder; `None` if none was.
    ///
    /// # Errors
    /// A file that cannot be read, or that is damaged.
    pub fn read(target: &Path) -> Result<Option<Self>, ConvertError> {
        Self::read_file(Self::file(target))
    }

    /// Reads which conversion made a database's folder, and is finished; `None` if none did.
    ///
    /// # Errors
    /// A file that cannot be read, or that is damaged.
    pub fn finished(target: &Path) -> Result<Option<Self>, ConvertError> {
        Self::read_file(target.join(FINISHED))
    }

    /// Whether this is the same conversion as another one, however far either has come.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.source, &self.target) == (&other.source, &other.target)
    }

    /// Notes in the target's folder that the conversion is finished, and removes its files.
    ///
    /// # Errors
    /// Files that cannot be written or removed.
    pub(crate) fn finish(&self, target: &Path) -> Result<(), ConvertError> {
        self.write_to(&target.join(FINISHED))?;
        Self::remove(target)
    }

    fn read_file(path: PathBuf) -> Result<Option<Self>, ConvertError> {
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(ConvertError::file(&path))?,
        };
        let job = serde_json::from_slice(&text);
        job.map(Some).map_err(|_| ConvertError::Damaged {
            path,
            offset: 0,
            why: "it does not say which conversion was begun",
        })
    }

    /// Begins the conversion in a database's folder, or goes on with it; returns how far it had come.
    ///
    /// # Errors
    /// [`ConvertError::OtherJob`]; a file that cannot be read or written.
    pub fn begin(&self, target: &Path) -> Result<Stage, ConvertError> {
        let described = |job: &Self| format!("from {} to {}", job.source, job.target);
        match Self::read(target)? {
            Some(found) if found.is_same(self) => Ok(found.stage),
            Some(found) => Err(ConvertError::OtherJob {
                folder: target.to_owned(),
                found: described(&found),
                wanted: described(self),
            }),
            None => {
                // What an earlier conversion left says nothing of this one.
                Self::remove(target)?;
                remove_file(&target.join(FINISHED))?;
                let folder = Self::folder(target);
                std::fs::create_dir_all(&folder).map_err(ConvertError::file(&folder))?;
                self.write(target)?;
                Ok(self.stage)
            }
        }
    }

    /// Notes that the conversion has come to a stage.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn reach(&mut self, stage: Stage, target: &Path) -> Result<(), ConvertError> {
        self.stage = stage;
        self.write(target)
    }

    fn write(&self, target: &Path) -> Result<(), ConvertError> {
        self.write_to(&Self::file(target))
    }

    fn write_to(&self, path: &Path) -> Result<(), ConvertError> {
        let write = || write_whole(path, &serde_json::to_vec_pretty(self)?);
        write().map_err(ConvertError::file(path))
    }

    /// Removes the files of a conversion.
    ///
    /// # Errors
    /// What keeps them from being removed.
    pub fn remove(target: &Path) -> Result<(), ConvertError> {
        let folder = Self::folder(target);
        removed(&folder, std::fs::remove_dir_all(&folder))
    }
}

pub(crate) fn remove_file(path: &Path) -> Result<(), ConvertError> {
    removed(path, std::fs::remove_file(path))
}

/// What was absent is removed, too.
fn removed(path: &Path, removed: io::Result<()>) -> Result<(), ConvertError> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(ConvertError::file(path)),
    }
}

/// Returns the number of this run of a conversion, which is above that of every run before; `folder` has its files.
///
/// # Errors
/// A file that cannot be read or written.
pub(crate) fn next_run(folder: &Path) -> Result<u32, ConvertError> {
    let path = folder.join("run");
    let before = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        read => {
            let text = read.map_err(ConvertError::file(&path))?;
            text.trim().parse().map_err(|_| ConvertError::Damaged {
                path: path.clone(),
                offset: 0,
                why: "it is not the number of a run",
            })?
        }
    };
    let run: u32 = before + 1;
    write_whole(&path, run.to_string().as_bytes()).map_err(ConvertError::file(&path))?;
    Ok(run)
}

/// Replaces a file, so that a kill leaves the old one or the new one.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = path.with_added_extension("new");
    let mut file = File::create(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&part, path)?;
    arbor_store::sync_name(path)
}

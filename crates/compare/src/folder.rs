//! The folder of a comparison: what is where, and who works in it.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::of_file;
use crate::run::Run;
use crate::{CompareError, Plan, Side};

/// A comparison's folder, in which no other process works meanwhile.
///
/// `plan.json` has the arguments, `runs/` the record, the rows and the log of each run, and `work/`
/// the database of the run under way. The other files are made of these.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    /// Held as long as this is.
    _lock: File,
}

/// How long a replay of a killed comparison is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

impl Folder {
    /// Opens a folder for a plan, or makes it. What an interrupted run left in `work/` is removed.
    ///
    /// # Errors
    /// Another plan in it, another process that works in it, or files that are no comparison's.
    pub fn open(root: &Path, plan: &Plan) -> Result<Self, CompareError> {
        let plan_file = root.join("plan.json");
        if !plan_file.exists() && has_files(root)? {
            return Err(CompareError::Foreign(root.to_owned()));
        }
        fs::create_dir_all(root.join("runs")).map_err(of_file(root))?;
        let lock_file = root.join("LOCK");
        let lock = File::create(&lock_file).map_err(of_file(&lock_file))?;
        take(&lock, root, &lock_file)?;
        let folder = Self {
            root: root.to_owned(),
            _lock: lock,
        };
        let plan_found = folder.read::<Plan>(&plan_file);
        match plan_found.map_err(damaged_plan)? {
            None => folder.write_json(&plan_file, plan)?,
            Some(found) => {
                let differences = plan.differences(&found);
                if !differences.is_empty() {
                    return Err(CompareError::OtherPlan {
                        folder: root.to_owned(),
                        differences,
                    });
                }
            }
        }
        folder.wait_for_orphans()?;
        folder.clear_work()?;
        Ok(folder)
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Where a run's database and its unfinished files are.
    pub(crate) fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// A file of a run: its record (`json`), its rows (`csv`), its log (`log`).
    pub(crate) fn of_run(&self, side: &Side, repetition: usize, kind: &str) -> PathBuf {
        let name = format!("{}-{repetition}.{kind}", side.file_name());
        self.root.join("runs").join(name)
    }

    /// A run that was done earlier: its record is there, and its rows.
    pub(crate) fn run(&self, side: &Side, repetition: usize) -> Result<Option<Run>, CompareError> {
        if !self.of_run(side, repetition, "csv").exists() {
            return Ok(None);
        }
        self.read(&self.of_run(side, repetition, "json"))
    }

    /// Waits for processes that a killed comparison started. Each holds the lock of its run's log.
    fn wait_for_orphans(&self) -> Result<(), CompareError> {
        let runs = self.root.join("runs");
        let begin = Instant::now();
        for entry in fs::read_dir(&runs).map_err(of_file(&runs))? {
            let path = entry.map_err(of_file(&runs))?.path();
            if path.extension().is_none_or(|extension| extension != "log") {
                continue;
            }
            let log = File::open(&path).map_err(of_file(&path))?;
            while matches!(log.try_lock(), Err(TryLockError::WouldBlock)) {
                if begin.elapsed() > PATIENCE {
                    return Err(CompareError::Orphan(path));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        Ok(())
    }

    /// Removes the database of a run.
    pub(crate) fn clear_work(&self) -> Result<(), CompareError> {
        let work = self.work();
        if !work.exists() {
            return Ok(());
        }
        fs::remove_dir_all(&work).map_err(of_file(&work))
    }

    fn read<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, CompareError> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(of_file(path)(error)),
        };
        let damaged = |error: serde_json::Error| CompareError::Damaged {
            path: path.to_owned(),
            why: error.to_string(),
        };
        serde_json::from_slice(&text).map(Some).map_err(damaged)
    }

    pub(crate) fn write_json(
        &self,
        path: &Path,
        value: &impl Serialize,
    ) -> Result<(), CompareError> {
        let mut text = serde_json::to_vec_pretty(value)
            .map_err(|error| of_file(path)(std::io::Error::from(error)))?;
        text.push(b'\n');
        self.write(path, &text)
    }

    /// Writes a file as a whole: after a crash it is there or not.
    ///
    /// # Errors
    /// The operating system's, with the file's name.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), CompareError> {
        self.write_by(path, &mut |file| {
            file.write_all(bytes).map_err(of_file(path))
        })
    }

    /// Like [`write`](Self::write), but `write` brings the bytes. If it fails, nothing of them is left.
    pub(crate) fn write_by(
        &self,
        path: &Path,
        write: &mut dyn FnMut(&mut File) -> Result<(), CompareError>,
    ) -> Result<(), CompareError> {
        let unfinished = path.with_added_extension("unfinished");
        let mut whole = || {
            let mut file = File::create(&unfinished).map_err(of_file(path))?;
            write(&mut file)?;
            let put = file.sync_all().and_then(|()| fs::rename(&unfinished, path));
            put.map_err(of_file(path))
        };
        let written = whole();
        if written.is_err() {
            // A full disk has more room without it.
            let _ = fs::remove_file(&unfinished);
        }
        written
    }
}

/// Says of the plan what to do: without it the other files are no comparison's.
fn damaged_plan(error: CompareError) -> CompareError {
    match error {
        CompareError::Damaged { path, why } => CompareError::DamagedPlan { path, why },
        other => other,
    }
}

fn take(lock: &File, folder: &Path, lock_file: &Path) -> Result<(), CompareError> {
    match lock.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(CompareError::Busy(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(of_file(lock_file)(error)),
    }
}

fn has_files(folder: &Path) -> Result<bool, CompareError> {
    match fs::read_dir(folder) {
        // A process that was killed before it wrote its plan left these.
        Ok(entries) => Ok(entries.flatten().any(|entry| {
            let name = entry.file_name();
            name != "LOCK" && name != "runs" && name != "plan.json.unfinished"
        })),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(of_file(folder)(error)),
    }
}

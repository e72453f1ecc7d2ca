//! A model of a disk: the operations on it, and what a loss of power leaves of those that are not synced.
//!
//! The model is as strict as POSIX: a file's `fsync` keeps its bytes and its length, and only the `fsync` of a folder keeps
//! the names in it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::crashes::chain::Random;

/// A change to a disk, or a sync. Files are numbered in the order of their creation; paths begin at the folder that the
/// database is made in.
pub(crate) enum Operation {
    MakeFolder(PathBuf),
    MakeFile {
        path: PathBuf,
        file: usize,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Remove(PathBuf),
    Write {
        file: usize,
        at: usize,
        bytes: Vec<u8>,
    },
    Resize {
        file: usize,
        length: usize,
    },
    SyncFile(usize),
    SyncFolder(PathBuf),
}

/// How a loss of power treats the operations that are not synced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    AllLost,
    NamesLost,
    BytesZeroed,
    LastWriteTorn,
    NewestFileLost,
    HalfLost,
}

pub(crate) const WAYS: [Way; 6] = [
    Way::AllLost,
    Way::NamesLost,
    Way::BytesZeroed,
    Way::LastWriteTorn,
    Way::NewestFileLost,
    Way::HalfLost,
];

/// A file's bytes, after which it has zeros up to its length.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Contents {
    bytes: Vec<u8>,
    length: usize,
}

/// The folders and files of a disk.
#[derive(Default)]
pub(crate) struct Disk {
    folders: BTreeSet<PathBuf>,
    pub(crate) names: BTreeMap<PathBuf, usize>,
    files: HashMap<usize, Contents>,
}

impl Disk {
    /// The disk as a power loss after some operations leaves it.
    pub(crate) fn after(operations: &[Operation], way: Way, random: &mut Random) -> Self {
        let is_synced = synced(operations);
        let last =
            operations
                .iter()
                .enumerate()
                .rev()
                .find_map(|(place, operation)| match operation {
                    Operation::Write { file, .. } if !is_synced[place] => Some((place, *file)),
                    _ => None,
                });
        let mut disk = Self::default();
        disk.folders.insert(PathBuf::new());
        for (place, operation) in operations.iter().enumerate() {
            let file = operation.file();
            let is_lost = match way {
                _ if is_synced[place] => false,
                Way::AllLost => true,
                Way::NamesLost => file.is_none(),
                Way::NewestFileLost => file.is_some() && file == last.map(|(_, file)| file),
                Way::HalfLost => random.below(2) == 0,
                Way::BytesZeroed | Way::LastWriteTorn => false,
            };
            match operation {
                _ if is_lost => {}
                Operation::Write { file, at, bytes }
                    if way == Way::BytesZeroed && !is_synced[place] =>
                {
                    disk.put(*file, *at, &vec![0; bytes.len()]);
                }
                Operation::Write { file, at, bytes }
                    if way == Way::LastWriteTorn && last.is_some_and(|(last, _)| last == place) =>
                {
                    disk.put(*file, *at, &bytes[..bytes.len() / 2]);
                }
                _ => disk.apply(operation),
            }
        }
        disk
    }

    /// Applies an operation. One whose folder or file is lost changes nothing.
    pub(crate) fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::MakeFolder(path) => {
                self.folders.insert(path.clone());
            }
            Operation::MakeFile { path, file } => {
                self.names.insert(path.clone(), *file);
            }
            Operation::Rename { from, to } => {
                if let Some(file) = self.names.remove(from) {
                    self.names.insert(to.clone(), file);
                }
            }
            Operation::Remove(path) => {
                self.names.remove(path);
                self.folders.remove(path);
            }
            Operation::Write { file, at, bytes } => self.put(*file, *at, bytes),
            Operation::Resize { file, length } => {
                let contents = self.files.entry(*file).or_default();
                contents.bytes.truncate(*length);
                contents.length = *length;
            }
            Operation::SyncFile(_) | Operation::SyncFolder(_) => {}
        }
    }

    fn put(&mut self, file: usize, at: usize, bytes: &[u8]) {
        let contents = self.files.entry(file).or_default();
        let end = at + bytes.len();
        if contents.bytes.len() < end {
            contents.bytes.resize(end, 0);
        }
        contents.bytes[at..end].copy_from_slice(bytes);
        contents.length = contents.length.max(end);
    }

    /// All folders (without contents) and files that can be reached by their names.
    fn contents(&self) -> BTreeMap<PathBuf, Option<Contents>> {
        let is_there = |path: &Path| {
            path.ancestors()
                .skip(1)
                .all(|folder| self.folders.contains(folder))
        };
        let folders = self.folders.iter().map(|path| (path, None));
        let file = |file| Some(self.files.get(file).cloned().unwrap_or_default());
        let files = self.names.iter().map(|(path, number)| (path, file(number)));
        let all = folders.chain(files).filter(|(path, _)| is_there(path));
        all.map(|(path, contents)| (path.clone(), contents))
            .collect()
    }

    /// A number that differs for disks with different contents.
    pub(crate) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.contents().hash(&mut hasher);
        hasher.finish()
    }

    /// Makes the folders and files in a new folder.
    pub(crate) fn write(&self, new: &Path) {
        for (path, contents) in self.contents() {
            let path = new.join(path);
            let Some(contents) = contents else {
                fs::create_dir(path).expect("made");
                continue;
            };
            let file = File::create(path).expect("made");
            file.write_all_at(&contents.bytes, 0).expect("written");
            file.set_len(contents.length as u64).expect("sized");
        }
    }

    /// The block of the database's HEAD; `None` before the first flush.
    pub(crate) fn flushed_block(&self) -> Option<u64> {
        let contents = self.contents().remove(Path::new("db/HEAD"))??;
        let (_, body) = std::str::from_utf8(&contents.bytes)
            .ok()?
            .split_once('\n')?;
        let head: serde_json::Value = serde_json::from_str(body).expect("JSON");
        head["head"]["block_number"].as_u64()
    }
}

impl Operation {
    /// The file whose contents this changes.
    fn file(&self) -> Option<usize> {
        match self {
            Self::Write { file, .. } | Self::Resize { file, .. } => Some(*file),
            _ => None,
        }
    }
}

/// Whether each operation is followed by the sync that covers it.
fn synced(operations: &[Operation]) -> Vec<bool> {
    let (mut files, mut folders) = (HashSet::new(), HashSet::new());
    let is_synced = operations.iter().rev().map(|operation| match operation {
        Operation::SyncFile(file) => {
            files.insert(*file);
            true
        }
        Operation::SyncFolder(path) => {
            folders.insert(path.as_path());
            true
        }
        Operation::Write { file, .. } | Operation::Resize { file, .. } => files.contains(file),
        Operation::MakeFolder(path)
        | Operation::MakeFile { path, .. }
        | Operation::Remove(path)
        | Operation::Rename { to: path, .. } => {
            path.parent().is_some_and(|folder| folders.contains(folder))
        }
    });
    let mut is_synced: Vec<_> = is_synced.collect();
    is_synced.reverse();
    is_synced
}

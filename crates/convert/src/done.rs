//! Which parts of the source are sorted.
//!
//! The file has 12 bytes for each part that was read to its end: the number of the part, the number of the run that
//! read it, and the lower half of the XXH3 of these 8 bytes. Integers are big-endian. The part `u32::MAX` ends the
//! file; the parts are then all there.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use xxhash_rust::xxh3::xxh3_64;

use crate::ConvertError;
use crate::frames::Origin;

const ENTRY: usize = 12;
/// The number of no part.
const END: u32 = u32::MAX;

/// The parts that earlier runs have finished.
#[derive(Clone, Default, Debug)]
pub(crate) struct Done {
    runs: HashMap<u32, u32>,
    pub(crate) is_complete: bool,
}

impl Done {
    /// Reads the list. Bytes at the end that a killed process wrote in part are passed over.
    pub(crate) fn read(path: &Path) -> Result<Self, ConvertError> {
        let bytes = match std::fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            read => read.map_err(ConvertError::file(path))?,
        };
        let mut done = Self::default();
        for entry in bytes.as_chunks::<ENTRY>().0 {
            let Some(origin) = decode(entry) else { break };
            match origin.part {
                END => done.is_complete = true,
                part => {
                    done.runs.insert(part, origin.run);
                }
            }
        }
        Ok(done)
    }

    /// Whether a part is sorted.
    pub(crate) fn has(&self, part: u32) -> bool {
        self.runs.contains_key(&part)
    }

    /// Whether a frame counts.
    pub(crate) fn counts(&self, origin: Origin) -> bool {
        self.runs.get(&origin.part) == Some(&origin.run)
    }

    /// Enters a part that was added to the file.
    pub(crate) fn add(&mut self, origin: Origin) {
        self.runs.insert(origin.part, origin.run);
    }

    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    fn entries(&self) -> usize {
        self.runs.len() + usize::from(self.is_complete)
    }
}

/// The list, to be added to.
pub(crate) struct DoneFile {
    path: PathBuf,
    file: Mutex<File>,
}

impl DoneFile {
    /// Opens or makes the file, and cuts off what a killed process wrote in part.
    pub(crate) fn open(path: PathBuf, done: &Done) -> Result<Self, ConvertError> {
        let open = || {
            let options = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)?;
            options.set_len((done.entries() * ENTRY) as u64)?;
            Ok(options)
        };
        let file = open().map_err(ConvertError::file(&path))?;
        let file = Mutex::new(file);
        Ok(Self { path, file })
    }

    /// Adds a part, all of whose frames are written.
    pub(crate) fn add(&self, origin: Origin) -> Result<(), ConvertError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut add = || {
            let end = file.seek(SeekFrom::End(0))?;
            file.write_all(&encode(origin))
                .or_else(|error| file.set_len(end).and(Err(error)))
        };
        add().map_err(ConvertError::file(&self.path))
    }

    /// Ends the list.
    pub(crate) fn complete(&self, run: u32) -> Result<(), ConvertError> {
        self.add(Origin { part: END, run })
    }
}

fn encode(origin: Origin) -> [u8; ENTRY] {
    let mut entry = [0; ENTRY];
    entry[..4].copy_from_slice(&origin.part.to_be_bytes());
    entry[4..8].copy_from_slice(&origin.run.to_be_bytes());
    let check = xxh3_64(&entry[..8]) as u32;
    entry[8..].copy_from_slice(&check.to_be_bytes());
    entry
}

fn decode(entry: &[u8; ENTRY]) -> Option<Origin> {
    let number = |at: usize| {
        let bytes = entry[at..at + 4].iter();
        bytes.fold(0, |number, byte| number << 8 | u32::from(*byte))
    };
    let origin = Origin {
        part: number(0),
        run: number(4),
    };
    (encode(origin) == *entry).then_some(origin)
}

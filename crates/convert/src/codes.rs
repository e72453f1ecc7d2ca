//! The codes of a dump, which has each of them next to the first account that has it.
//!
//! The file has a frame for each code, whose payload is the code.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use alloy_primitives::{B256, Bytes, keccak256};
use arbor_state::ReadError;

use crate::ConvertError;
use crate::done::Done;
use crate::frames::{FrameFile, Frames, Origin};

/// Where a code lies: the offset in the file and the length, in bytes.
type Place = (u64, u32);

/// Codes by their hashes.
pub(crate) struct CodeFile {
    path: PathBuf,
    file: FrameFile,
    places: Mutex<HashMap<B256, Place>>,
    reading: Mutex<Option<File>>,
}

impl CodeFile {
    /// Opens the file and lists the codes of the parts that are sorted.
    pub(crate) fn open(path: PathBuf, done: &Done) -> Result<Self, ConvertError> {
        let mut places = HashMap::new();
        let mut frames = Frames::open(&path)?;
        while let Some(frame) = frames.next()? {
            match done.counts(frame.origin) {
                true => {
                    let code = frames.payload(&frame)?;
                    places.insert(keccak256(&code), (frame.begin, code.len() as u32));
                }
                false => frames.skip(&frame)?,
            }
        }
        Ok(Self {
            file: FrameFile::new(path.clone()),
            path,
            places: Mutex::new(places),
            reading: Mutex::default(),
        })
    }

    /// Keeps a code, once.
    pub(crate) fn put(&self, origin: Origin, hash: B256, code: &[u8]) -> Result<(), ConvertError> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.contains_key(&hash) {
            return Ok(());
        }
        let begin = self.file.append(origin, code)?;
        places.insert(hash, (begin, code.len() as u32));
        Ok(())
    }

    /// Reads a code.
    pub(crate) fn get(&self, hash: B256) -> Result<Bytes, ReadError> {
        let place = {
            let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
            places.get(&hash).copied()
        };
        let (begin, length) = place.ok_or(ReadError::MissingCode(hash))?;
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let mut read = || {
            let file = match &mut *reading {
                Some(file) => file,
                none => none.insert(File::open(&self.path)?),
            };
            let mut code = vec![0; length as usize];
            file.seek(SeekFrom::Start(begin))?;
            file.read_exact(&mut code)?;
            Ok(code)
        };
        let code = read().map_err(ConvertError::file(&self.path))?;
        Ok(code.into())
    }
}

//! The accounts of a file of a sorting, ascending by key, if they are too many to be in memory together.
//!
//! The file is read once and written to a second file in runs, each sorted in memory. Then the runs are merged. A record
//! of a run is a key (32 bytes), the length of the account's record (4, big-endian), and that record.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use arbor_state::{AccountOrder, FullAccount};

use crate::ConvertError;
use crate::frames::{Frames, Origin};
use crate::record;

/// The key of an account.
pub(crate) type SortKey = [u8; 32];

/// Records whose keys are computed together.
const KEYED_TOGETHER: usize = 1 << 10;
/// Bytes that are read of a run at once.
const READ_AT_ONCE: usize = 1 << 16;
/// Bytes of a record's key and length.
pub(crate) const HEAD: usize = 32 + 4;

/// The accounts of a file, ascending by key.
#[derive(Debug)]
pub(crate) struct SortedRuns {
    /// The file of the runs, which has no name any more.
    file: File,
    path: PathBuf,
    runs: Vec<Run>,
    /// The next key of each run that has one, with the number of the run.
    heads: BinaryHeap<Reverse<(SortKey, usize)>>,
}

/// A run, as far as it has not been read.
#[derive(Debug)]
struct Run {
    /// Where the bytes begin that are not in memory.
    offset: u64,
    end: u64,
    /// Bytes in memory, of which those before `read` are done with.
    bytes: Vec<u8>,
    read: usize,
}

impl SortedRuns {
    /// Writes the accounts of a file to runs of about `run_bytes` bytes each. `counts` says which frames count.
    pub(crate) fn of(
        path: &Path,
        order: &'static AccountOrder,
        run_bytes: usize,
        counts: impl Fn(Origin) -> bool,
    ) -> Result<Self, ConvertError> {
        let mut writing = Writing::create(path)?;
        let mut frames = Frames::open(path)?;
        while let Some(frame) = frames.next_of(&counts)? {
            let payload = frames.payload(&frame)?;
            let mut rest = &payload[..];
            while !rest.is_empty() {
                let (mut addresses, mut records) = (Vec::new(), Vec::new());
                while !rest.is_empty() && addresses.len() < KEYED_TOGETHER {
                    let before = rest;
                    let account =
                        record::decode(&mut rest).ok_or_else(|| ConvertError::Damaged {
                            path: path.to_owned(),
                            offset: frame.begin,
                            why: "a record of an account is malformed",
                        })?;
                    addresses.push(account.address);
                    records.push(&before[..before.len() - rest.len()]);
                }
                let mut keys = vec![SortKey::default(); addresses.len()];
                (order.account_keys)(&addresses, &mut keys);
                for (key, record) in keys.into_iter().zip(records) {
                    writing.add(key, record);
                    if writing.bytes.len() >= run_bytes {
                        writing.end_run()?;
                    }
                }
            }
        }
        writing.end_run()?;
        let Writing {
            file, path, runs, ..
        } = writing;
        let mut sorted = Self {
            file,
            path,
            runs,
            heads: BinaryHeap::new(),
        };
        (0..sorted.runs.len()).try_for_each(|run| sorted.push_head(run))?;
        Ok(sorted)
    }

    /// Enters the next key of a run.
    fn push_head(&mut self, number: usize) -> Result<(), ConvertError> {
        let run = &mut self.runs[number];
        let filled = run.fill(&mut self.file, HEAD);
        if filled.map_err(ConvertError::file(&self.path))?
            && let Some(key) = run.rest().first_chunk()
        {
            self.heads.push(Reverse((*key, number)));
        }
        Ok(())
    }

    /// Reads the record at the beginning of a run, and moves past it.
    fn take(&mut self, number: usize) -> Result<FullAccount, ConvertError> {
        let run = &mut self.runs[number];
        let begin = run.offset - run.rest().len() as u64;
        let length = run.rest().get(32..HEAD).unwrap_or_default();
        let length = length
            .iter()
            .fold(0, |length, byte| length << 8 | usize::from(*byte));
        let is_whole = run
            .fill(&mut self.file, HEAD + length)
            .map_err(ConvertError::file(&self.path))?;
        let mut bytes = run.rest().get(HEAD..HEAD + length).unwrap_or_default();
        let account = record::decode(&mut bytes);
        let account = account.filter(|_| is_whole && bytes.is_empty());
        let account = account.ok_or_else(|| ConvertError::Damaged {
            path: self.path.clone(),
            offset: begin,
            why: "a record of an account is malformed",
        })?;
        run.read += HEAD + length;
        self.push_head(number)?;
        Ok(account)
    }
}

impl Iterator for SortedRuns {
    type Item = Result<FullAccount, ConvertError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((_, run)) = self.heads.pop()?;
        Some(self.take(run))
    }
}

impl Run {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.read..]
    }

    /// Reads on until so many bytes are in memory; returns whether the run has them.
    fn fill(&mut self, file: &mut File, wanted: usize) -> io::Result<bool> {
        let there = self.rest().len();
        if there >= wanted {
            return Ok(true);
        }
        self.bytes.drain(..self.read);
        self.read = 0;
        let left = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
        let more = left.min(READ_AT_ONCE.max(wanted - there));
        self.bytes.resize(there + more, 0);
        file.seek(SeekFrom::Start(self.offset))?;
        file.read_exact(&mut self.bytes[there..])?;
        self.offset += more as u64;
        Ok(self.bytes.len() >= wanted)
    }
}

/// The runs on their way into a file.
struct Writing {
    file: File,
    path: PathBuf,
    runs: Vec<Run>,
    offset: u64,
    /// The records of the run, and each with its key, its beginning and its end.
    bytes: Vec<u8>,
    records: Vec<(SortKey, usize, usize)>,
}

impl Writing {
    /// Creates a file next to another one, and takes its name away, so that the system removes it when it is closed.
    fn create(beside: &Path) -> Result<Self, ConvertError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = beside.with_extension(format!("runs-{number}"));
        let mut options = OpenOptions::new();
        let opened = options
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(&path);
        let file = opened.and_then(|file| std::fs::remove_file(&path).map(|()| file));
        Ok(Self {
            file: file.map_err(ConvertError::file(&path))?,
            path,
            runs: Vec::new(),
            offset: 0,
            bytes: Vec::new(),
            records: Vec::new(),
        })
    }

    fn add(&mut self, key: SortKey, record: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(record);
        self.records.push((key, begin, self.bytes.len()));
    }

    /// Sorts and writes what is in memory.
    fn end_run(&mut self) -> Result<(), ConvertError> {
        self.records.sort_unstable();
        let mut out = io::BufWriter::with_capacity(1 << 20, &self.file);
        let mut end = self.offset;
        let mut write = || {
            for (key, begin, behind) in self.records.drain(..) {
                let record = &self.bytes[begin..behind];
                out.write_all(&key)?;
                out.write_all(&(record.len() as u32).to_be_bytes())?;
                out.write_all(record)?;
                end += (HEAD + record.len()) as u64;
            }
            out.flush()
        };
        write().map_err(ConvertError::file(&self.path))?;
        self.bytes.clear();
        self.runs.push(Run {
            offset: self.offset,
            end,
            bytes: Vec::new(),
            read: 0,
        });
        self.offset = end;
        Ok(())
    }
}

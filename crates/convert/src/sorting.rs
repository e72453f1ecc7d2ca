//! Sorting a state outside of memory: accounts go to a file by the first byte of their keys.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use alloy_primitives::{Address, B256};
use arbor_state::{AccountOrder, AccountSource, FullAccount};
use rayon::prelude::*;

use crate::codes::CodeFile;
use crate::counts::Counts;
use crate::done::{Done, DoneFile};
use crate::frames::{FrameFile, Frames, Origin};
use crate::progress::Watch;
use crate::{ConvertError, record};
use arbor_state::PartOf;

/// Accounts whose keys are computed together.
const TOGETHER: usize = 1 << 10;
/// Slots after which accounts are not gathered further.
const MANY_SLOTS: usize = 1 << 14;

/// Where the files of a sorting lie.
pub(crate) struct SortFiles(PathBuf);

impl SortFiles {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// The accounts whose keys have this first byte.
    pub(crate) fn accounts(&self, first: u8) -> PathBuf {
        self.0.join(format!("accounts-{first:02x}"))
    }

    pub(crate) fn done(&self) -> PathBuf {
        self.0.join("parts")
    }

    /// A frame for each part of a dump: the XXH3 (16 bytes, big-endian) of its text.
    fn texts(&self) -> PathBuf {
        self.0.join("texts")
    }

    pub(crate) fn codes(&self) -> PathBuf {
        self.0.join("codes")
    }
}

/// A sorting that is under way.
pub(crate) struct Sorting<'a> {
    order: &'static AccountOrder,
    buckets: Vec<FrameFile>,
    pub(crate) codes: CodeFile,
    done: Done,
    done_file: DoneFile,
    /// The hashes of the parts of a dump that earlier runs have sorted.
    texts: HashMap<u32, u128>,
    texts_file: FrameFile,
    run: u32,
    /// The first bytes of keys whose accounts are kept.
    kept: Range<u32>,
    /// Bytes for all threads together.
    memory: u64,
    /// Bytes of accounts that a part keeps in memory before it writes them.
    buffer: usize,
    pub(crate) watch: &'a Watch<'a>,
}

impl<'a> Sorting<'a> {
    /// Begins to sort into a folder, or goes on, in the run with this number. `memory` is shared by the threads of the current pool.
    pub(crate) fn open(
        folder: &Path,
        order: &'static AccountOrder,
        (memory, run): (u64, u32),
        watch: &'a Watch<'a>,
    ) -> Result<Self, ConvertError> {
        Self::open_part(folder, order, (memory, run), watch, 0..PartOf::RANGES)
    }

    /// Like [`open`](Self::open), but keeps the accounts alone whose keys have these first bytes.
    pub(crate) fn open_part(
        folder: &Path,
        order: &'static AccountOrder,
        (memory, run): (u64, u32),
        watch: &'a Watch<'a>,
        kept: Range<u32>,
    ) -> Result<Self, ConvertError> {
        let files = SortFiles::in_folder(folder);
        let done = Done::read(&files.done())?;
        let threads = rayon::current_num_threads() as u64;
        Ok(Self {
            order,
            buckets: (0..=u8::MAX)
                .map(|first| FrameFile::new(files.accounts(first)))
                .collect(),
            codes: CodeFile::open(files.codes(), &done)?,
            texts: read_texts(&files.texts(), &done)?,
            texts_file: FrameFile::new(files.texts()),
            done_file: DoneFile::open(files.done(), &done)?,
            done,
            run,
            kept,
            memory,
            buffer: usize::try_from(memory / threads.max(1)).unwrap_or(usize::MAX),
            watch,
        })
    }

    /// Bytes of memory for all threads together.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    /// Whether everything is sorted.
    pub(crate) fn is_complete(&self) -> bool {
        self.done.is_complete
    }

    /// Whether an earlier run has sorted this part.
    pub(crate) fn has(&self, part: u32) -> bool {
        self.done.has(part)
    }

    /// The hash of a part of a dump that an earlier run has sorted.
    pub(crate) fn text_of(&self, part: u32) -> Option<u128> {
        self.texts.get(&part).copied()
    }

    /// The number of this run of the conversion.
    pub(crate) fn run(&self) -> u32 {
        self.run
    }

    /// How many parts earlier runs have sorted.
    pub(crate) fn parts_before(&self) -> usize {
        self.done.len()
    }

    /// Begins a part.
    pub(crate) fn part(&self, part: u32) -> PartSorting<'_> {
        PartSorting {
            sorting: self,
            origin: Origin {
                part,
                run: self.run,
            },
            waiting: Vec::new(),
            slots: 0,
            buckets: vec![Vec::new(); 256],
            bytes: 0,
        }
    }

    /// Ends the sorting; returns what the files have.
    pub(crate) fn finish(self) -> Result<(), ConvertError> {
        self.done_file.complete(self.run)
    }
}

/// A part of the source on its way into the files.
pub(crate) struct PartSorting<'a> {
    sorting: &'a Sorting<'a>,
    origin: Origin,
    /// Accounts that have no key yet, and their slots.
    waiting: Vec<FullAccount>,
    slots: usize,
    /// Records by the first byte of their keys.
    buckets: Vec<Vec<u8>>,
    bytes: usize,
}

impl PartSorting<'_> {
    pub(crate) fn add(&mut self, account: FullAccount) -> Result<(), ConvertError> {
        self.slots += account.slots.len();
        self.waiting.push(account);
        match self.waiting.len() >= TOGETHER || self.slots >= MANY_SLOTS {
            true => self.place(),
            false => Ok(()),
        }
    }

    /// Keeps the code of an account.
    pub(crate) fn code(&self, hash: B256, code: &[u8]) -> Result<(), ConvertError> {
        self.sorting.codes.put(self.origin, hash, code)
    }

    /// Puts the accounts that wait where their keys belong.
    fn place(&mut self) -> Result<(), ConvertError> {
        self.sorting.watch.check()?;
        let waiting = std::mem::take(&mut self.waiting);
        let addresses: Vec<Address> = waiting.iter().map(|account| account.address).collect();
        let mut keys = vec![[0; 32]; addresses.len()];
        (self.sorting.order.account_keys)(&addresses, &mut keys);
        for (account, key) in waiting.iter().zip(keys) {
            if !self.sorting.kept.contains(&u32::from(key[0])) {
                continue;
            }
            let bucket = &mut self.buckets[usize::from(key[0])];
            let before = bucket.len();
            record::encode(account, bucket);
            self.bytes += bucket.len() - before;
        }
        self.sorting.watch.count(Counts {
            accounts: waiting.len() as u64,
            slots: std::mem::take(&mut self.slots) as u64,
        });
        match self.bytes >= self.sorting.buffer {
            true => self.write(),
            false => Ok(()),
        }
    }

    fn write(&mut self) -> Result<(), ConvertError> {
        let files = self.sorting.buckets.iter();
        for (bucket, file) in self.buckets.iter_mut().zip(files) {
            if !bucket.is_empty() {
                file.append(self.origin, bucket)?;
                // Much room would be kept for an account with very many slots.
                match bucket.capacity() > 1 << 20 {
                    true => *bucket = Vec::new(),
                    false => bucket.clear(),
                }
            }
        }
        self.bytes = 0;
        Ok(())
    }

    /// Writes what is left, after which the part is sorted.
    pub(crate) fn finish(mut self) -> Result<(), ConvertError> {
        self.place()?;
        self.write()?;
        self.sorting.done_file.add(self.origin)
    }

    /// Ends a part of a dump, whose text has this hash.
    pub(crate) fn finish_text(self, hash: u128) -> Result<(), ConvertError> {
        let file = &self.sorting.texts_file;
        file.append(self.origin, &hash.to_be_bytes())?;
        self.finish()
    }
}

/// Reads the hashes of the parts that are sorted.
fn read_texts(path: &Path, done: &Done) -> Result<HashMap<u32, u128>, ConvertError> {
    let mut frames = Frames::open(path)?;
    let mut texts = HashMap::new();
    while let Some(frame) = frames.next()? {
        let payload = frames.payload(&frame)?;
        if done.counts(frame.origin) {
            let hash = payload.try_into().map_err(|_| ConvertError::Damaged {
                path: path.to_owned(),
                offset: frame.begin,
                why: "the hash of a part does not have 16 bytes",
            })?;
            texts.insert(frame.origin.part, u128::from_be_bytes(hash));
        }
    }
    Ok(texts)
}

/// Sorts a source whose accounts come in another order, its 256 ranges next to each other.
pub(crate) fn sort_ranges(
    source: &dyn AccountSource,
    sorting: &Sorting<'_>,
) -> Result<(), ConvertError> {
    let sorted = AtomicU32::new(sorting.parts_before() as u32);
    let ranges: Vec<u8> = (0..=u8::MAX)
        .filter(|range| !sorting.has(u32::from(*range)))
        .collect();
    ranges.par_iter().try_for_each(|range| {
        let mut part = sorting.part(u32::from(*range));
        for account in source.full(Some(*range))? {
            part.add(account?)?;
        }
        part.finish()?;
        let sorted = sorted.fetch_add(1, Ordering::Relaxed) + 1;
        sorting.watch.done(f64::from(sorted) / 256.0);
        Ok(())
    })
}

//! What zkSync's prover is given of a batch (`StorageLogMetadata` and its list).
//!
//! As bytes, integers big-endian: the next index (8), the number of logs (4), and for each log the root after it (32), a byte with 1 for a write and 2 more for a first write, the key (32),
//! its index (8), the value written (32), the value before (32), the number of its own hashes (2) and these. The original's own form is Rust's (`bincode`), with the same fields.

use arbor_cpu::threads::prelude::*;
use std::ops::Range;

use super::leaf::bit;
use super::{Operation, OperationProofs, Outcome, take};
use crate::{DEPTH, Entry, Hash, Hasher};

/// One storage access, as the prover wants it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StorageLog {
    /// The root after it.
    pub root_hash: Hash,
    /// Whether it writes.
    pub is_write: bool,
    /// Whether it writes a key that held nothing.
    pub first_write: bool,
    /// The hashes beside the way, the lowest first. The first log has all 256; a later one those from the first on that differs from the first log's.
    pub merkle_paths: Vec<Hash>,
    /// The key, most significant byte first.
    pub leaf_hashed_key: Hash,
    /// The index that the key has after it; 0 for a missing key that is read.
    pub leaf_enumeration_index: u64,
    /// The value written; zero for a read.
    pub value_written: Hash,
    /// The value before it; zero for a key that held nothing.
    pub value_read: Hash,
}

/// Why logs are none, or do not hold. Logs are numbered from 0 on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LogsError {
    /// Bytes that end within the next index or the number of logs.
    #[error("the bytes end before the first log")]
    Head,
    /// Bytes that end within a log.
    #[error("the bytes end within log {0}")]
    End(usize),
    /// Bytes behind the last log.
    #[error("{0} bytes behind the last log")]
    Behind(usize),
    /// A part of a log that does not go with the others.
    #[error("log {log}: {what}")]
    Field {
        /// Which log.
        log: usize,
        /// What cannot be.
        what: &'static str,
    },
    /// A log whose path does not lead from what it read to the root before it.
    #[error("log {0} does not follow from the root before it")]
    Before(usize),
    /// A log whose path does not lead from what it wrote to the root after it.
    #[error("log {0} does not lead to the root that it names")]
    After(usize),
}

/// The logs of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StorageLogs {
    /// The index that the next new leaf would have had before the batch.
    pub next_enumeration_index: u64,
    /// Accesses in their order, without writes of what is there already.
    pub logs: Vec<StorageLog>,
}

impl StorageLogs {
    /// Those of a batch of operations and its proofs, on a tree that had so many leaves.
    ///
    /// # Panics
    /// If the proofs are those of another batch.
    #[must_use]
    pub fn new<H: Hasher>(
        hasher: H,
        leaves: u64,
        operations: &[Operation],
        proofs: &OperationProofs,
    ) -> Self {
        assert_eq!(operations.len(), proofs.len(), "a proof for each operation");
        let mut logs: Vec<StorageLog> = Vec::new();
        for (at, operation) in operations.iter().enumerate() {
            let outcome = proofs.outcome(at);
            let before = outcome.before();
            let rewrites = before
                .is_some_and(|before| operation.new.is_some_and(|new| new.value == before.value));
            if rewrites {
                continue;
            }
            let proof = proofs.get(at);
            let whole = || {
                let above = &hasher.empty()[..DEPTH - proof.path.len()];
                above.iter().chain(&proof.path)
            };
            // Whole they have 8 kB each, and some twenty hashes that are not the first one's.
            let shared = logs.first().map_or(0, |first| {
                let same = first.merkle_paths.iter().zip(whole());
                same.take_while(|(a, b)| a == b).count()
            });
            let path = whole().skip(shared).copied().collect();
            let now = operation.new.or(before);
            logs.push(StorageLog {
                root_hash: proof.root,
                is_write: operation.new.is_some(),
                first_write: outcome == Outcome::Inserted,
                merkle_paths: path,
                leaf_hashed_key: operation.key,
                leaf_enumeration_index: now.map_or(0, |entry| entry.index),
                value_written: operation.new.map_or([0; 32], |entry| entry.value),
                value_read: before.map_or([0; 32], |entry| entry.value),
            });
        }
        Self {
            next_enumeration_index: leaves + 1,
            logs,
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.next_enumeration_index.to_be_bytes().to_vec();
        out.extend((self.logs.len() as u32).to_be_bytes());
        for log in &self.logs {
            out.extend(log.root_hash);
            out.push(u8::from(log.is_write) | u8::from(log.first_write) << 1);
            out.extend(log.leaf_hashed_key);
            out.extend(log.leaf_enumeration_index.to_be_bytes());
            out.extend(log.value_written);
            out.extend(log.value_read);
            out.extend((log.merkle_paths.len() as u16).to_be_bytes());
            out.extend_from_slice(log.merkle_paths.as_flattened());
        }
        out
    }

    /// The logs that bytes hold, each of which goes with those before it; whether they hold is for [`Self::verify`] to say.
    ///
    /// # Errors
    /// Bytes that are no logs, or logs that no batch has.
    pub fn decode(bytes: &[u8]) -> Result<Self, LogsError> {
        let mut rest = bytes;
        let next = take(&mut rest).ok_or(LogsError::Head)?;
        let count = take(&mut rest).ok_or(LogsError::Head)?;
        let mut logs = Vec::new();
        for log in 0..u32::from_be_bytes(count) as usize {
            let decoded = decode_log(&mut rest).ok_or(LogsError::End(log))?;
            logs.push(decoded.map_err(|what| LogsError::Field { log, what })?);
        }
        if !rest.is_empty() {
            return Err(LogsError::Behind(rest.len()));
        }
        let logs = Self {
            next_enumeration_index: u64::from_be_bytes(next),
            logs,
        };
        logs.check()?;
        Ok(logs)
    }

    /// The root after the logs, if each follows from the one before it, and the first from `before`: its path leads from what it read to the root before it, and from what it
    /// wrote to its own, and new leaves are numbered as they come.
    ///
    /// # Errors
    /// The first log that does not hold.
    pub fn verify<H: Hasher>(&self, hasher: H, before: Hash) -> Result<Hash, LogsError> {
        self.check()?;
        let chunks = self.logs.par_chunks(LOGS_OF_A_THREAD).enumerate();
        let wrong = chunks.find_map_first(|(chunk, logs)| {
            let first = chunk * LOGS_OF_A_THREAD;
            self.first_wrong(hasher, before, first..first + logs.len())
        });
        match wrong {
            Some(error) => Err(error),
            None => Ok(self.logs.last().map_or(before, |last| last.root_hash)),
        }
    }

    /// Whether each log goes with the others, whatever the tree.
    fn check(&self) -> Result<(), LogsError> {
        let mut next = self.next_enumeration_index;
        for (at, log) in self.logs.iter().enumerate() {
            let index = log.leaf_enumeration_index;
            let zero = |value: &Hash| *value == [0; 32];
            let whole = log.merkle_paths.len() == DEPTH;
            let wrong = [
                (at == 0 && !whole, "the first one's path has no 256 hashes"),
                (
                    log.merkle_paths.len() > DEPTH,
                    "a path of more than 256 hashes",
                ),
                (
                    log.first_write && !log.is_write,
                    "a first write that does not write",
                ),
                (
                    log.first_write && index != next,
                    "a first write whose index is not the next one",
                ),
                (
                    !log.first_write && index >= next,
                    "an index that no leaf has yet",
                ),
                (log.is_write && index == 0, "a write with index 0"),
                (
                    !log.is_write && !zero(&log.value_written),
                    "a read that writes a value",
                ),
                (
                    (log.first_write || index == 0) && !zero(&log.value_read),
                    "a value read where nothing was",
                ),
                (
                    log.is_write && !log.first_write && log.value_written == log.value_read,
                    "a write of what is there already",
                ),
            ];
            if let Some((_, what)) = wrong.into_iter().find(|(wrong, _)| *wrong) {
                return Err(LogsError::Field { log: at, what });
            }
            if log.first_write {
                let after = next.checked_add(1);
                let what = "no index is left behind it";
                next = after.ok_or(LogsError::Field { log: at, what })?;
            }
        }
        Ok(())
    }

    /// The first of some logs that does not hold. Their ways are hashed side by side.
    fn first_wrong<H: Hasher>(
        &self,
        hasher: H,
        before: Hash,
        logs: Range<usize>,
    ) -> Option<LogsError> {
        let begin = logs.start;
        let logs = &self.logs[logs];
        let entries = logs.iter().flat_map(StorageLog::entries);
        let mut hashes: Vec<Hash> = entries
            .map(|entry| entry.map_or(hasher.empty()[0], |entry| hasher.leaves(&[entry])[0]))
            .collect();
        let mut pairs = Vec::new();
        for height in 0..DEPTH {
            pairs.clear();
            for (log, hashes) in logs.iter().zip(hashes.as_chunks::<2>().0) {
                let beside = self.beside(log, height);
                let right = bit(&log.leaf_hashed_key, height);
                pairs.extend(hashes.map(|hash| {
                    if right {
                        [beside, hash]
                    } else {
                        [hash, beside]
                    }
                }));
            }
            hasher.pairs_into(&pairs, &mut hashes);
        }
        let mut root = match begin {
            0 => before,
            _ => self.logs[begin - 1].root_hash,
        };
        for ((at, log), [before, after]) in (begin..).zip(logs).zip(hashes.as_chunks().0) {
            if *before != root {
                return Some(LogsError::Before(at));
            }
            if *after != log.root_hash {
                return Some(LogsError::After(at));
            }
            root = log.root_hash;
        }
        None
    }

    /// The hash beside a log's way at a height.
    fn beside(&self, log: &StorageLog, height: usize) -> Hash {
        let shared = DEPTH - log.merkle_paths.len();
        match height.checked_sub(shared) {
            Some(own) => log.merkle_paths[own],
            None => self.logs[0].merkle_paths[height],
        }
    }

    /// The whole path of a log.
    ///
    /// # Panics
    /// If there is no log with this number.
    #[must_use]
    pub fn path(&self, log: usize) -> Vec<Hash> {
        let log = &self.logs[log];
        (0..DEPTH).map(|height| self.beside(log, height)).collect()
    }
}

/// Logs whose ways a thread hashes side by side.
const LOGS_OF_A_THREAD: usize = 64;

impl StorageLog {
    /// What its key held before and holds after it.
    fn entries(&self) -> [Option<Entry>; 2] {
        let index = self.leaf_enumeration_index;
        let entry = |value| Entry { index, value };
        let before = (!self.first_write && index > 0).then(|| entry(self.value_read));
        let after = match self.is_write {
            true => Some(entry(self.value_written)),
            false => before,
        };
        [before, after]
    }
}

/// Takes a log from the front of the bytes; the error is what it cannot have.
fn decode_log(rest: &mut &[u8]) -> Option<Result<StorageLog, &'static str>> {
    let root_hash = take(rest)?;
    let [kind] = take(rest)?;
    let leaf_hashed_key = take(rest)?;
    let leaf_enumeration_index = u64::from_be_bytes(take(rest)?);
    let (value_written, value_read) = (take(rest)?, take(rest)?);
    let length = u16::from_be_bytes(take(rest)?);
    let path = rest.split_off(..32 * usize::from(length))?;
    if !matches!(kind, 0 | 1 | 3) {
        return Some(Err(
            "its kind is neither 0, a read, 1, a write, nor 3, a first write",
        ));
    }
    Some(Ok(StorageLog {
        root_hash,
        is_write: kind & 1 != 0,
        first_write: kind & 2 != 0,
        merkle_paths: path.as_chunks().0.to_vec(),
        leaf_hashed_key,
        leaf_enumeration_index,
        value_written,
        value_read,
    }))
}

//! What zkSync's prover is given of a batch (`StorageLogMetadata` and its list).
//!
//! As bytes, integers big-endian: the next index (8), the number of logs (4), and for each log the root after it (32), a byte with 1 for a write and 2 more for a first write, the key (32),
//! its index (8), the value written (32), the value before (32), the number of its own hashes (2) and these. The original's own form is Rust's (`bincode`), with the same fields.

use super::{Operation, OperationProofs, Outcome};
use crate::{DEPTH, Hash, Hasher};

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
            let mut path = hasher.empty()[..DEPTH - proof.path.len()].to_vec();
            path.extend(proof.path);
            if let Some(first) = logs.first() {
                let same = first.merkle_paths.iter().zip(&path);
                path.drain(..same.take_while(|(a, b)| a == b).count());
            }
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

    /// The whole path of a log.
    ///
    /// # Panics
    /// If there is no log with this number.
    #[must_use]
    pub fn path(&self, log: usize) -> Vec<Hash> {
        let own = &self.logs[log].merkle_paths;
        let shared = &self.logs[0].merkle_paths[..DEPTH - own.len()];
        [shared, own].concat()
    }
}

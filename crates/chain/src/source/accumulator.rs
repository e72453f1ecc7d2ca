//! The accumulator of an era1 file: the SSZ hash tree root of its header records.
//!
//! A record is (block hash, total difficulty); the list is `List[HeaderRecord, 8192]`, so its root is the Merkle root
//! over 8,192 leaves (the missing ones zero) hashed with the number of records (SSZ specification, "Merkleization").

use alloy_primitives::{B256, U256};
use sha2::{Digest, Sha256};

/// Most blocks that an era1 file holds: the limit of the accumulator's list.
pub(crate) const MAX_RECORDS: usize = 8192;

fn sha256(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    Sha256::new()
        .chain_update(left)
        .chain_update(right)
        .finalize()
        .into()
}

/// Collects header records and computes their root.
#[derive(Debug, Default)]
pub(crate) struct Accumulator {
    leaves: Vec<[u8; 32]>,
}

impl Accumulator {
    /// Adds the record of the next block: its root is the hash of its two 32-byte fields, the number little-endian.
    pub(crate) fn push(&mut self, block_hash: B256, total_difficulty: U256) {
        self.leaves
            .push(sha256(&block_hash.0, &total_difficulty.to_le_bytes()));
    }

    /// Root of the records pushed so far.
    pub(crate) fn root(&self) -> B256 {
        let mut level = self.leaves.clone();
        let mut zero = [0u8; 32];
        for _ in 0..MAX_RECORDS.ilog2() {
            level = level
                .chunks(2)
                .map(|pair| sha256(&pair[0], pair.get(1).unwrap_or(&zero)))
                .collect();
            zero = sha256(&zero, &zero);
        }
        let top = level.first().copied().unwrap_or(zero);
        let count = U256::from(self.leaves.len()).to_le_bytes();
        B256::from(sha256(&top, &count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The full tree of the definition: all 8,192 leaves, padded with zero.
    fn naive_root(leaves: &[[u8; 32]]) -> B256 {
        let mut level = leaves.to_vec();
        level.resize(MAX_RECORDS, [0; 32]);
        while level.len() > 1 {
            level = level
                .chunks(2)
                .map(|pair| sha256(&pair[0], &pair[1]))
                .collect();
        }
        B256::from(sha256(&level[0], &U256::from(leaves.len()).to_le_bytes()))
    }

    #[test]
    fn equals_the_padded_tree_for_any_count() {
        let mut accumulator = Accumulator::default();
        assert_eq!(accumulator.root(), naive_root(&[]));
        for count in 1..=70u64 {
            accumulator.push(B256::from(U256::from(count * 7)), U256::from(count));
            assert_eq!(
                accumulator.root(),
                naive_root(&accumulator.leaves),
                "{count} records"
            );
        }
    }
}

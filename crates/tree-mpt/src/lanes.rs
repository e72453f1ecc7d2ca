//! Hashing many byte strings at a time.

use arbor_tree::Hash;

/// Keccak-256 of one byte string.
pub(crate) fn keccak256(bytes: &[u8]) -> Hash {
    alloy_primitives::keccak256(bytes).0
}

/// Byte strings written one after the other and hashed together; its buffers are reused.
#[derive(Default)]
pub(crate) struct Lanes {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    hashes: Vec<Hash>,
    /// Strings hashed so far.
    pub(crate) hashed: u64,
    /// Keccak-f\[1600\] permutations so far.
    pub(crate) permutations: u64,
}

impl Lanes {
    /// Strings hashed in one batch: enough to fill the lanes, few enough to stay in the cache.
    pub(crate) const BATCH: usize = 128;

    /// Where the next string is appended; [`close`](Self::close) ends it.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Ends the string begun and returns it.
    pub(crate) fn close(&mut self) -> &[u8] {
        let start = self.ends.last().copied().unwrap_or(0);
        self.ends.push(self.bytes.len());
        &self.bytes[start..]
    }

    /// Takes the last string back: it is not to be hashed.
    pub(crate) fn discard(&mut self) {
        self.ends.pop();
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// Hashes the strings, forgets them, and returns their hashes in order.
    pub(crate) fn hash(&mut self) -> &[Hash] {
        self.hashes.clear();
        self.hashed += self.ends.len() as u64;
        let mut start = 0;
        for &end in &self.ends {
            self.permutations += ((end - start) / 136 + 1) as u64;
            self.hashes.push(keccak256(&self.bytes[start..end]));
            start = end;
        }
        self.bytes.clear();
        self.ends.clear();
        &self.hashes
    }
}

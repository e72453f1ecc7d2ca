//! The blocks before the one that is executed.

use std::collections::VecDeque;
use std::ops::Range;

use alloy_consensus::Header;
use alloy_primitives::B256;
use arbor_state::ReadError;

/// How many hashes `BLOCKHASH` reaches back.
const HASHES: usize = 256;
/// How many generations ommer validation looks back (yellow paper, equation 166: the ommer's parent is at
/// most the seventh ancestor).
pub(super) const GENERATIONS: u64 = 7;

/// A past block as ommer validation needs it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ancestor {
    /// Hash of the block.
    pub hash: B256,
    /// Its header.
    pub header: Header,
    /// Hashes of the ommers that it included.
    pub ommers: Vec<B256>,
}

/// Gives past blocks of the chain being executed.
pub trait Ancestors {
    /// Returns the hash of block `number`, which is among the 256 before the current one.
    ///
    /// # Errors
    /// If the hash is not known: the block cannot be executed.
    fn block_hash(&self, number: u64) -> Result<B256, ReadError>;

    /// Returns block `number`, which is among the seven before the current one; `None` if it is not known.
    /// Rules about ommers that need it are then left out, and the output says so.
    fn ancestor(&self, number: u64) -> Option<&Ancestor>;
}

/// The latest blocks of a chain: 256 hashes, and seven headers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecentBlocks {
    /// Number of the latest block; without meaning while there are no hashes.
    latest: u64,
    /// Hashes, the latest one last.
    hashes: VecDeque<B256>,
    /// Blocks, the latest one last.
    blocks: VecDeque<Ancestor>,
}

impl RecentBlocks {
    /// Creates the record of a chain of which `hashes` are known, ascending, the last one being that of block
    /// `latest`: what a database kept when it was closed.
    pub fn from_hashes(latest: u64, hashes: impl IntoIterator<Item = B256>) -> Self {
        let mut hashes: VecDeque<_> = hashes.into_iter().collect();
        while hashes.len() > HASHES {
            hashes.pop_front();
        }
        Self {
            latest,
            hashes,
            blocks: VecDeque::new(),
        }
    }

    /// Appends a block. One that does not follow the latest starts a new record.
    pub fn push(&mut self, block: Ancestor) {
        if !self.hashes.is_empty() && block.header.number != self.latest + 1 {
            self.hashes.clear();
            self.blocks.clear();
        }
        self.latest = block.header.number;
        if self.hashes.len() == HASHES {
            self.hashes.pop_front();
        }
        self.hashes.push_back(block.hash);
        if self.blocks.len() == GENERATIONS as usize {
            self.blocks.pop_front();
        }
        self.blocks.push_back(block);
    }

    /// Returns the numbers of the blocks whose hash is missing: of the 256 up to the latest one, those before the oldest known.
    pub(crate) fn missing(&self) -> Range<u64> {
        let known = self.hashes.len() as u64;
        let oldest = (self.latest + 1).saturating_sub(known);
        let first = (self.latest + 1).saturating_sub(HASHES as u64);
        match known {
            0 => 0..0,
            _ => first.min(oldest)..oldest,
        }
    }

    /// Adds the hash of the block before the oldest known one.
    pub(crate) fn push_oldest(&mut self, hash: B256) {
        if self.hashes.len() < HASHES {
            self.hashes.push_front(hash);
        }
    }

    /// Returns the latest block pushed, if any.
    pub fn latest(&self) -> Option<&Ancestor> {
        self.blocks.back()
    }

    /// Returns the hashes known, ascending by number, the last one that of the latest block.
    pub fn hashes(&self) -> impl Iterator<Item = &B256> {
        self.hashes.iter()
    }

    fn age(&self, number: u64) -> Option<usize> {
        usize::try_from(self.latest.checked_sub(number)?).ok()
    }
}

impl Ancestors for RecentBlocks {
    fn block_hash(&self, number: u64) -> Result<B256, ReadError> {
        let index = self
            .age(number)
            .and_then(|age| self.hashes.len().checked_sub(age + 1));
        index
            .and_then(|index| self.hashes.get(index))
            .copied()
            .ok_or_else(|| ReadError::new(format!(
                "the hash of block {number} is not known, which BLOCKHASH asks for: give the chain from block {number} on"
            )))
    }

    fn ancestor(&self, number: u64) -> Option<&Ancestor> {
        // Absent while only hashes are known, as after opening a database.
        let index = self.blocks.len().checked_sub(self.age(number)? + 1)?;
        self.blocks.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(number: u64) -> Ancestor {
        Ancestor {
            hash: B256::with_last_byte(number as u8),
            header: Header {
                number,
                ..Header::default()
            },
            ommers: Vec::new(),
        }
    }

    #[test]
    fn keeps_256_hashes_and_seven_blocks() {
        let mut recent = RecentBlocks::default();
        (0..=300).for_each(|n| recent.push(block(n)));
        assert_eq!(
            recent.block_hash(300).expect("latest"),
            B256::with_last_byte(44)
        );
        assert_eq!(
            recent.block_hash(45).expect("oldest"),
            B256::with_last_byte(45)
        );
        assert!(recent.block_hash(44).is_err());
        assert!(recent.block_hash(301).is_err());
        assert_eq!(recent.ancestor(294).map(|b| b.header.number), Some(294));
        assert!(recent.ancestor(293).is_none());
        assert_eq!(recent.latest().map(|b| b.header.number), Some(300));
    }

    #[test]
    fn resumes_from_hashes() {
        let mut recent = RecentBlocks::from_hashes(9, (5..=9).map(B256::with_last_byte));
        assert_eq!(
            recent.block_hash(5).expect("known"),
            B256::with_last_byte(5)
        );
        assert!(recent.ancestor(9).is_none());
        recent.push(block(10));
        assert_eq!(
            recent.block_hash(9).expect("known"),
            B256::with_last_byte(9)
        );
        assert!(recent.ancestor(9).is_none());
        assert!(recent.ancestor(10).is_some());
    }

    #[test]
    fn older_hashes_complete_it() {
        let mut recent = RecentBlocks::default();
        assert!(recent.missing().is_empty(), "nothing is known");
        recent.push(block(300));
        assert_eq!(recent.missing(), 45..300);
        for number in (40..300).rev() {
            recent.push_oldest(B256::with_last_byte(number as u8));
        }
        assert!(recent.missing().is_empty());
        let hash = |number| recent.block_hash(number).ok();
        assert_eq!(hash(45), Some(B256::with_last_byte(45)));
        assert_eq!((hash(44), hash(301)), (None, None));
        assert!(recent.ancestor(299).is_none(), "its ommers are not known");
        let mut young = RecentBlocks::default();
        young.push(block(2));
        assert_eq!(young.missing(), 0..2);
    }

    #[test]
    fn a_gap_starts_anew() {
        let mut recent = RecentBlocks::default();
        recent.push(block(1));
        recent.push(block(3));
        assert!(recent.block_hash(1).is_err());
        assert!(recent.block_hash(3).is_ok());
    }
}

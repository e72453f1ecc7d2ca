//! Which block follows which.

use alloy_consensus::Header;
use alloy_primitives::B256;

use super::error::{BrokenLink, Position, SourceError};

/// What ties a block to its neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The block's number.
    pub number: u64,
    /// Its hash.
    pub hash: B256,
    /// Hash of the block before it, as its header gives it.
    pub parent: B256,
    /// Its gas limit.
    pub gas_limit: u64,
    /// Where it lies.
    pub position: Position,
}

impl Link {
    pub(crate) fn of(header: &Header, hash: B256, position: &Position) -> Self {
        Self {
            number: header.number,
            hash,
            parent: header.parent_hash,
            gas_limit: header.gas_limit,
            position: position.clone(),
        }
    }

    /// Checks that `next` is the block after this one.
    pub(crate) fn check_successor(&self, next: &Self) -> Result<(), SourceError> {
        let (before, after) = (self.position.clone(), next.position.clone());
        if next.number <= self.number {
            return Err(SourceError::Overlap {
                number: next.number,
                previous: self.number,
                before,
                after,
            });
        }
        if next.number > self.number + 1 {
            let (first_missing, last_missing) = (self.number + 1, next.number - 1);
            return Err(SourceError::Gap {
                first_missing,
                last_missing,
                before,
                after,
            });
        }
        if next.parent != self.hash {
            return Err(SourceError::ParentMismatch(Box::new(BrokenLink {
                at: next.position.clone(),
                number: next.number,
                expected: self.hash,
                actual: next.parent,
                previous: before.file.to_path_buf(),
            })));
        }
        Ok(())
    }
}

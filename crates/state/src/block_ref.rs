//! The block of a version, and the record of it.

use alloy_primitives::B256;
use arbor_versions::{Meta, Version};

/// The block that a version belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockRef {
    /// Its number.
    pub number: u64,
    /// Its hash.
    pub hash: B256,
    /// What the caller keeps of the block with its version. A replay keeps a versioned record that begins with the header; a caller without blocks
    /// leaves it empty.
    pub record: Vec<u8>,
}

impl BlockRef {
    /// A block without a record.
    #[must_use]
    pub fn new(number: u64, hash: B256) -> Self {
        Self {
            number,
            hash,
            record: Vec::new(),
        }
    }
}

/// The record of a block's version.
pub(crate) fn block_meta(version: u64, block: BlockRef, root: B256) -> Meta {
    Meta {
        version: Version(version),
        block_number: block.number,
        block_hash: block.hash.0,
        root: root.0,
        extra: block.record,
    }
}

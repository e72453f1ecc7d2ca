//! The blocks that a state needs behind it: its own, and those that `BLOCKHASH` looks back on.

use std::collections::VecDeque;
use std::path::PathBuf;

use alloy_consensus::Header;
use alloy_primitives::B256;
use arbor_state::{ANCESTORS, BlockRef, Head};
use arbor_versions::{Meta, Version};

use super::ReplayError;
use super::record::BlockRecord;
use crate::executor::Ancestor;
use crate::genesis::Genesis;
use crate::source::open_sources;

/// A block as a database keeps it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptBlock {
    /// Number, hash, and the record of the block.
    pub block: BlockRef,
    /// The state root in its header; `None` if the database has no header of it.
    pub state_root: Option<B256>,
}

impl KeptBlock {
    fn of(record: &BlockRecord) -> Self {
        let Ancestor { hash, header, .. } = &record.block;
        Self {
            block: BlockRef {
                number: header.number,
                hash: *hash,
                record: record.encode(),
            },
            state_root: Some(header.state_root),
        }
    }

    /// The block that a version remembers.
    pub fn kept(meta: Meta) -> Self {
        let record = BlockRecord::decode(&meta);
        Self {
            state_root: record.ok().map(|record| record.block.header.state_root),
            block: BlockRef {
                number: meta.block_number,
                hash: meta.block_hash.into(),
                record: meta.extra,
            },
        }
    }

    /// Block 0.
    pub fn genesis(genesis: &Genesis) -> Self {
        Self::of(&BlockRecord {
            block: Ancestor {
                hash: genesis.hash,
                header: genesis.header.clone(),
                ommers: Vec::new(),
            },
            total_difficulty: Some(genesis.header.difficulty),
        })
    }
}

/// Reads the header of the block that a version remembers.
///
/// # Errors
/// A version without a header, or with a damaged one.
pub fn kept_header(meta: &Meta) -> Result<Header, ReplayError> {
    Ok(BlockRecord::decode(meta)?.block.header)
}

/// The block of a version and up to 256 blocks before it, as far as the database has records of them.
///
/// # Errors
/// The store's errors.
pub fn blocks_up_to(state: Head<'_>, version: Version) -> Result<Vec<KeptBlock>, ReplayError> {
    let versions = version.0.saturating_sub(ANCESTORS)..=version.0;
    let metas = versions.map(|number| {
        let meta = state.view().meta(Version(number));
        meta.map_err(|error| ReplayError::State {
            number,
            error: error.into(),
        })
    });
    let blocks = metas.filter_map(|meta| Some(meta.transpose()?.map(KeptBlock::kept)));
    blocks.collect()
}

/// A block of a chain, `at` or the last one, and up to 256 blocks before it. A proof-of-work block has its total difficulty
/// if the chain begins with block 0 or 1.
///
/// # Errors
/// A chain that cannot be read, that is not the genesis's, or that has no block with this number.
pub fn blocks_of_chain(
    chain: &[PathBuf],
    genesis: &Genesis,
    at: Option<u64>,
) -> Result<Vec<KeptBlock>, ReplayError> {
    let mut input = open_sources(chain)?;
    genesis.check_chain(&input)?;
    let first = input.first().number;
    // Which of the last blocks there are, and what is known of the difficulties up to each.
    let mut last_blocks = VecDeque::new();
    let mut total = (first <= 1).then_some(genesis.header.difficulty);
    let mut last = 0;
    while at.is_none_or(|at| last < at)
        && let Some(raw) = input.next_raw()?
    {
        last = raw.header.number;
        if last == 0 {
            continue;
        }
        total = total
            .filter(|_| !genesis.spec.is_proof_of_stake(&raw.header))
            .map(|total| total.saturating_add(raw.header.difficulty));
        last_blocks.push_back((raw, total));
        if last_blocks.len() as u64 > ANCESTORS + 1 {
            last_blocks.pop_front();
        }
    }
    let is_short = last_blocks.len() as u64 <= ANCESTORS && first <= 1;
    let mut blocks = Vec::from_iter(is_short.then(|| KeptBlock::genesis(genesis)));
    for (raw, total) in last_blocks {
        let decoded = raw.decode()?;
        let (hash, header) = (decoded.hash, decoded.block.header);
        let ommers = decoded.block.body.ommers.iter();
        let total = (decoded.total_difficulty)
            .filter(|_| !genesis.spec.is_proof_of_stake(&header))
            .or(total);
        blocks.push(KeptBlock::of(&BlockRecord {
            block: Ancestor {
                ommers: ommers.map(Header::hash_slow).collect(),
                hash,
                header,
            },
            total_difficulty: total,
        }));
    }
    match at {
        Some(at) if at != last => Err(ReplayError::BeyondChain { at, first, last }),
        _ => Ok(blocks),
    }
}

/// The place of a state root among the blocks of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RootInChain {
    /// The number of the last block whose header has the root, if one has it.
    pub block: Option<u64>,
    /// The number of the chain's last block.
    pub last: u64,
}

/// Looks for the block whose header has a state root, in all of a chain.
///
/// # Errors
/// A chain that cannot be read.
pub fn find_root(
    chain: &[PathBuf],
    genesis: &Genesis,
    root: B256,
) -> Result<RootInChain, ReplayError> {
    let mut input = open_sources(chain)?;
    let mut found = RootInChain {
        block: (genesis.header.state_root == root).then_some(0),
        last: 0,
    };
    while let Some(raw) = input.next_raw()? {
        found.last = raw.header.number;
        if raw.header.state_root == root {
            found.block = Some(found.last);
        }
    }
    Ok(found)
}

//! Which blocks of a database can be read: from the name of a block to its version.

use alloy_primitives::B256;
use anyhow::{Result, bail};
use arbor_state::Head;
use arbor_versions::{Meta, Version};

use crate::block_choice::BlockChoice;
use crate::database;

impl BlockChoice {
    /// Returns the number of the block. A block named by its number is not looked up.
    ///
    /// # Errors
    /// A database without blocks; more blocks back than there are; a hash that no retained block has.
    pub(crate) fn number(self, state: Head<'_>) -> Result<u64> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Latest => Ok(database::head(state)?.block_number),
            Self::Back(blocks) => {
                let head = database::head(state)?.block_number;
                match head.checked_sub(blocks) {
                    Some(number) => Ok(number),
                    None => bail!("{self} is before block 0: the latest block is {head}"),
                }
            }
            Self::Hash(hash) => Ok(by_hash(state, hash)?.block_number),
        }
    }

    /// Returns the retained version of the block.
    ///
    /// # Errors
    /// Those of [`number`](Self::number); a block whose state cannot be read.
    pub(crate) fn version(self, state: Head<'_>) -> Result<Version> {
        match self {
            Self::Latest => Ok(database::head(state)?.version),
            Self::Hash(hash) => Ok(by_hash(state, hash)?.version),
            Self::Back(_) | Self::Number(_) => version_of(state, self.number(state)?),
        }
    }
}

/// The retained version of a block.
///
/// # Errors
/// A block that is not there, or not retained. The error names the blocks that are, and how to keep more.
pub(crate) fn version_of(state: Head<'_>, number: u64) -> Result<Version> {
    let head = database::head(state)?;
    let view = state.view();
    let oldest = view.oldest().unwrap_or(head.version);
    if let Some(version) = view
        .version_of_block(number)?
        .filter(|found| *found >= oldest)
    {
        return Ok(version);
    }
    let range = retained_range(state)?;
    if number > head.block_number {
        bail!(
            "block {number} is not in the database: its latest block is {}; {range}",
            head.block_number
        );
    }
    bail!(
        "block {number} is not retained: {range}. `arbor replay --retain N` (or `--retain all`) keeps more of the blocks that it adds"
    )
}

/// Says of which blocks the state can be read.
fn retained_range(state: Head<'_>) -> Result<String> {
    let newest = database::head(state)?.block_number;
    Ok(match database::oldest_block(state)? {
        oldest if oldest == newest => format!("the state of block {newest} alone can be read"),
        oldest => format!("the states of blocks {oldest} to {newest} can be read"),
    })
}

/// Finds the retained block with a hash, from the latest to the oldest. Nothing is indexed by hash.
fn by_hash(state: Head<'_>, hash: B256) -> Result<Meta> {
    let head = database::head(state)?;
    let view = state.view();
    let oldest = view.oldest().unwrap_or(head.version);
    for version in (oldest.0..=head.version.0).rev() {
        if let Some(meta) = view.meta(Version(version))?
            && meta.block_hash == hash.0
        {
            return Ok(meta);
        }
    }
    bail!(
        "no retained block has the hash {hash}: {}",
        retained_range(state)?
    )
}

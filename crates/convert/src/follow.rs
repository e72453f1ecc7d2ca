//! Keeping a converted database level with its source, which goes on.
//!
//! What later blocks changed comes from the source's history, so nothing is executed. Each block becomes a version of the target, with
//! a root under the target's tree.

use alloy_primitives::B256;
use arbor_state::{BlockRef, Head, RootPlace, State};
use arbor_versions::{Meta, Version};

use crate::ConvertError;

/// What following calls on the way.
pub struct FollowHooks<'a> {
    /// Returns the state root in the header that a version of the source keeps, if it keeps one.
    pub state_root: &'a dyn Fn(&Meta) -> Option<B256>,
    /// Called after each block with its number, and the number of the source's latest one.
    pub progress: &'a dyn Fn(u64, u64),
    /// Returns whether to stop after this block.
    pub stop: &'a dyn Fn() -> bool,
}

/// A target that has the source's latest block, or was asked to stop before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// The version of the source that the target has.
    pub version: Version,
    /// Its block.
    pub block: u64,
    /// Blocks that were taken over.
    pub blocks: u64,
    /// Whether it is the source's latest one.
    pub is_level: bool,
}

/// Takes over the blocks of a source that come after the target's latest one, and makes them durable.
///
/// # Errors
/// A source that does not have the target's block, or whose history begins after it; a tree whose history does not lead to names; a
/// root that a header does not have; the errors of both stores.
pub fn catch_up(
    source: Head<'_>,
    target: &mut State,
    hooks: &FollowHooks<'_>,
) -> Result<Level, ConvertError> {
    let mut version = place(source, target)?;
    let head = source.meta().map_or(version, |meta| meta.version);
    let last = source.meta().map_or(0, |meta| meta.block_number);
    let (begin, mut block) = (version, target.head().map_or(0, |meta| meta.block_number));
    let is_in_headers = target.tree().kind().roots == RootPlace::InHeaders;
    while version < head && !(hooks.stop)() {
        version = Version(version.0 + 1);
        let meta = source
            .view()
            .meta(version)
            .map_err(arbor_state::StateError::from)?;
        let meta = meta.ok_or(ConvertError::Follow(format!(
            "the source has no record of version {}",
            version.0
        )))?;
        let changes = source.changes_of(version)?;
        let changes = changes.ok_or_else(|| cannot_be_followed(source))?;
        let computed = target.compute(&changes)?;
        let expected = (hooks.state_root)(&meta).filter(|_| is_in_headers);
        if let Some(expected) = expected.filter(|root| *root != computed.root()) {
            return Err(ConvertError::Follow(format!(
                "block {} has the root {} here, and the state root {expected} in its header",
                meta.block_number,
                computed.root()
            )));
        }
        block = meta.block_number;
        let of_block = BlockRef {
            number: block,
            hash: meta.block_hash.into(),
            record: meta.extra,
        };
        target.commit(&of_block, computed)?;
        (hooks.progress)(block, last);
    }
    target.flush()?;
    Ok(Level {
        version,
        block,
        blocks: version.0 - begin.0,
        is_level: version >= head,
    })
}

/// Checks that the history of a source leads to the names of what changed.
///
/// # Errors
/// A source whose history does not.
pub fn check_source(source: Head<'_>) -> Result<(), ConvertError> {
    match source.has_changed_names()? {
        true => Ok(()),
        false => Err(cannot_be_followed(source)),
    }
}

fn cannot_be_followed(source: Head<'_>) -> ConvertError {
    let tree = source.tree().kind().name;
    ConvertError::Follow(format!(
        "the history of a database with the tree {tree} does not have the names of what changed. Convert without --follow, and replay the later blocks over the new database"
    ))
}

/// Finds the version of the source that has the target's latest block, and looks whether the versions after it are retained.
fn place(source: Head<'_>, target: &State) -> Result<Version, ConvertError> {
    let refuse = |why: String| Err(ConvertError::Follow(why));
    let Some(head) = target.head() else {
        return refuse("the target has no block yet".to_owned());
    };
    let (number, hash) = (head.block_number, B256::from(head.block_hash));
    let view = source.view();
    let found = view
        .version_of_block(number)
        .map_err(arbor_state::StateError::from)?;
    let Some(version) = found else {
        return refuse(format!(
            "the source does not have block {number}, which is the latest one of the target"
        ));
    };
    let meta = view.meta(version).map_err(arbor_state::StateError::from)?;
    if let Some(other) = meta.filter(|meta| meta.block_hash != hash.0) {
        return refuse(format!(
            "block {number} is {hash} in the target and {} in the source: the source was rolled back. Roll the target back to a block that both have (arbor rollback)",
            B256::from(other.block_hash)
        ));
    }
    match view.retained(version) {
        Ok(()) => Ok(version),
        Err(_) => refuse(format!(
            "the source no longer has what the blocks after {number} changed: its history was pruned meanwhile. Convert again, and let the source keep more (--retain)"
        )),
    }
}

//! Updates applied to a tree.

use crate::work::Work;
use crate::{Hash, LeafUpdate, NodeHash, Packing, Path, Reader, TreeError, TreeUpdate};

/// Applies updates, ascending by key, to the tree that the reader has.
///
/// # Errors
/// [`TreeError`].
pub fn apply<H: NodeHash>(
    reader: &impl Reader,
    hash: H,
    packing: Packing,
    updates: &[LeafUpdate<H::Value>],
) -> Result<TreeUpdate, TreeError> {
    check(updates)?;
    let mut work = Work::begin(reader, hash, packing)?;
    work.descend(updates)?;
    work.merge(updates)?;
    let root = work.hash()?;
    let nodes = work.changes();
    let stats = work.stats;
    Ok(TreeUpdate { root, nodes, stats })
}

/// Computes the root of the tree that the reader has.
///
/// # Errors
/// [`TreeError`] when the record of the root cannot be read.
pub fn root<H: NodeHash>(
    reader: &impl Reader,
    hash: H,
    packing: Packing,
) -> Result<Hash, TreeError> {
    Work::begin(reader, hash, packing)?.hash()
}

pub(crate) fn check<V>(updates: &[LeafUpdate<V>]) -> Result<(), TreeError> {
    let is_whole = |key: &Path| !key.is_empty() && key.len().is_multiple_of(8);
    if let Some(update) = updates.iter().find(|update| !is_whole(&update.key)) {
        return Err(TreeError::NoKey(update.key));
    }
    let pairs = updates.iter().zip(updates.iter().skip(1));
    match pairs.into_iter().find(|(a, b)| a.key >= b.key) {
        Some((_, second)) => Err(TreeError::Order(second.key)),
        None => Ok(()),
    }
}

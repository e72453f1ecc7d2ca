//! Updates applied to a tree.

use crate::work::Work;
use crate::{Hash, Hasher, LeafUpdate, Packing, Path, Reader, TreeError, TreeUpdate};

/// Applies updates, ascending by key, to the tree that the reader has.
///
/// # Errors
/// [`TreeError`].
pub fn apply(
    reader: &impl Reader,
    hasher: Hasher,
    packing: Packing,
    updates: &[LeafUpdate],
) -> Result<TreeUpdate, TreeError> {
    check(updates)?;
    let mut work = Work::begin(reader, packing)?;
    work.descend(updates)?;
    work.merge(updates)?;
    let root = work.hash(hasher)?;
    let nodes = work.changes();
    let stats = work.stats;
    Ok(TreeUpdate { root, nodes, stats })
}

/// Computes the root of the tree that the reader has.
///
/// # Errors
/// [`TreeError`] when the record of the root cannot be read.
pub fn root(reader: &impl Reader, hasher: Hasher, packing: Packing) -> Result<Hash, TreeError> {
    Work::begin(reader, packing)?.hash(hasher)
}

pub(crate) fn check(updates: &[LeafUpdate]) -> Result<(), TreeError> {
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

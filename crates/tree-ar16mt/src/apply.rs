//! Applying updates.

use arbor_tree::Path;
use rayon::prelude::*;

use crate::work::{Done, Place, Row, Visit, Work, decode, height, up};
use crate::{Child, Hash, Hasher, LeafUpdate, Reader, TreeError, TreeUpdate};

/// Updates from which on the tree is split between threads, by the first nibble of their keys.
const SPLIT: usize = 1 << 9;
/// From which on by the first two: the parts fit into a core's cache.
const SPLIT_FINELY: usize = 1 << 14;

/// Applies updates, whose keys ascend, to the tree that the reader has.
///
/// The nodes on the way to what changes are read level by level. Then all leaves that come or change are folded side by side, and the nodes hashed
/// level by level, the deepest first. Many updates are shared by the first nibbles of their keys between the threads of the current rayon pool.
///
/// # Errors
/// [`TreeError`]: keys that do not ascend, an index 0, leaves that are there or not otherwise than said, missing or malformed nodes, a reader that fails.
pub fn apply<H: Hasher>(
    reader: &impl Reader,
    hasher: H,
    updates: &[LeafUpdate],
) -> Result<TreeUpdate, TreeError> {
    apply_to(reader, hasher, updates, false)
}

/// As [`apply`], for updates of whose keys nobody has looked whether they are there: `existed` is not looked at. The nodes mostly tell, without a look at the leaves; those that are
/// found are returned with what they held.
///
/// # Errors
/// As [`apply`].
pub fn apply_unread<H: Hasher>(
    reader: &impl Reader,
    hasher: H,
    updates: &[LeafUpdate],
) -> Result<TreeUpdate, TreeError> {
    apply_to(reader, hasher, updates, true)
}

fn apply_to<H: Hasher>(
    reader: &impl Reader,
    hasher: H,
    updates: &[LeafUpdate],
    unread: bool,
) -> Result<TreeUpdate, TreeError> {
    check(updates)?;
    let root = reader.nodes(&[Path::ROOT])?.pop().flatten();
    let known = root.map(|_| Child::Internal([0; 32]));
    let visit = Visit {
        place: Place::Top,
        path: Path::ROOT,
        child: known,
        updates: 0..updates.len(),
    };
    let done = match updates.len() {
        0..SPLIT => part(reader, hasher, updates, visit, unread)?,
        SPLIT..SPLIT_FINELY => split(reader, hasher, updates, visit, (1, unread))?,
        _ => split(reader, hasher, updates, visit, (2, unread))?,
    };
    let mut found = done.found;
    found.sort_unstable_by_key(|(key, _)| *key);
    Ok(TreeUpdate {
        root: top_hash(hasher, done.top),
        nodes: done.nodes,
        found,
        stats: done.stats,
    })
}

/// Applies the updates below a child.
pub(crate) fn part<H: Hasher>(
    reader: &impl Reader,
    hasher: H,
    updates: &[LeafUpdate],
    visit: Visit,
    unread: bool,
) -> Result<Done, TreeError> {
    let (work, _) = Work::descend(reader, hasher, updates, visit, None, unread)?;
    Ok(work.finish())
}

fn split<H: Hasher>(
    reader: &impl Reader,
    hasher: H,
    updates: &[LeafUpdate],
    visit: Visit,
    (nibbles, unread): (usize, bool),
) -> Result<Done, TreeError> {
    let stop = Some(nibbles);
    let (mut work, visits) = Work::descend(reader, hasher, updates, visit, stop, unread)?;
    let parts = visits.into_par_iter().map(|visit| {
        let place = visit.place;
        let visit = Visit {
            place: Place::Top,
            ..visit
        };
        Ok((place, part(reader, hasher, updates, visit, unread)?))
    });
    let parts: Result<Vec<_>, TreeError> = parts.collect();
    let (mut nodes, mut found) = (Vec::new(), Vec::new());
    for (place, done) in parts? {
        work.put(place, done.top);
        work.count(&done.stats);
        nodes.push(done.nodes);
        found.extend(done.found);
    }
    let mut done = work.finish();
    nodes.push(done.nodes);
    done.nodes = nodes.into_iter().flatten().collect();
    done.found = found;
    Ok(done)
}

/// The root of a tree without leaves.
pub fn empty_root<H: Hasher>(hasher: H) -> Hash {
    hasher.empty()[crate::DEPTH]
}

/// The root of the tree that the reader has.
///
/// # Errors
/// [`TreeError`] when the root could not be read.
pub fn root<H: Hasher>(reader: &impl Reader, hasher: H) -> Result<Hash, TreeError> {
    let Some(record) = reader.nodes(&[Path::ROOT])?.pop().flatten() else {
        return Ok(empty_root(hasher));
    };
    let mut row = Row::default();
    for (nibble, child) in decode(&Path::ROOT, &record)?.children {
        row.set(nibble, *child.hash());
    }
    up(hasher, height(1), std::slice::from_mut(&mut row));
    Ok(row.hashes[0])
}

pub(crate) fn top_hash<H: Hasher>(hasher: H, top: Option<Child>) -> Hash {
    top.map_or(empty_root(hasher), |child| *child.hash())
}

pub(crate) fn check(updates: &[LeafUpdate]) -> Result<(), TreeError> {
    let pairs = updates.iter().zip(updates.iter().skip(1));
    if let Some((_, second)) = pairs.into_iter().find(|(a, b)| a.key >= b.key) {
        return Err(TreeError::Order(second.key));
    }
    let zero = |update: &&LeafUpdate| update.new.is_some_and(|entry| entry.index == 0);
    match updates.iter().find(zero) {
        Some(update) => Err(TreeError::Index(update.key)),
        None => Ok(()),
    }
}

//! Applying updates.

use arbor_cpu::threads::prelude::*;
use std::ops::Range;

use arbor_tree::Path;

use crate::row::{Row, Scratch, height, up};
use crate::work::{Batch, Done, Hashed, Place, Visit, Work, by_key, decode};
use crate::{Child, Hash, Hasher, LeafUpdate, NodeChange, Reader, TreeError, TreeUpdate};

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
    let reads = &[];
    let batch = Batch {
        updates,
        reads,
        unread,
        counted: true,
    };
    let (update, ()) = change(reader, hasher, batch, &|_| Ok(Default::default()))?;
    Ok(update)
}

/// A part of the tree after it was changed and its leaves hashed, for whoever wants to see more of it than is written.
pub(crate) struct Seen<'w, 'a, R, H, S> {
    pub(crate) work: &'w Work<'a, R, H>,
    /// Of which updates it is.
    pub(crate) updates: Range<usize>,
    /// What was at its top before.
    pub(crate) old: Option<Child>,
    /// What was seen of the parts below, ascending. All ways go through one of them, if there are any.
    pub(crate) below: Vec<S>,
}

/// Applies a batch of updates that were [checked](check): whole, or in parts on the threads of the pool. `look` is called on each part, and then on what is above them; the hashes of nodes that it comes to know need not be computed again.
pub(crate) fn change<H: Hasher, R: Reader, S: Send>(
    reader: &R,
    hasher: H,
    batch: Batch<'_>,
    look: &(impl Fn(Seen<'_, '_, R, H, S>) -> Result<(S, Hashed), TreeError> + Sync),
) -> Result<(TreeUpdate, S), TreeError> {
    let root = reader.nodes(&[Path::ROOT])?.pop().flatten();
    let visit = Visit {
        place: Place::Top,
        path: Path::ROOT,
        child: root.map(|_| Child::Internal([0; 32])),
        updates: 0..batch.updates.len(),
    };
    let stop = match batch.updates.len() {
        0..SPLIT => None,
        SPLIT..SPLIT_FINELY => Some(1),
        _ => Some(2),
    };
    let (updates, old) = (visit.updates.clone(), visit.child);
    let (mut work, visits) = Work::descend(reader, hasher, batch, visit, stop)?;
    let parts = visits.into_par_iter().map(|visit| {
        let (place, updates, old) = (visit.place, visit.updates.clone(), visit.child);
        let visit = Visit {
            place: Place::Top,
            ..visit
        };
        let (mut work, _) = Work::descend(reader, hasher, batch, visit, None)?;
        work.fold();
        let (seen, hashed) = look(Seen {
            work: &work,
            updates: updates.clone(),
            old,
            below: Vec::new(),
        })?;
        work.hash_rest(&hashed);
        Ok((updates.start, place, work.finish(), seen))
    });
    let parts: Result<Vec<_>, TreeError> = parts.collect();
    let mut parts = parts?;
    parts.sort_unstable_by_key(|(start, ..)| *start);
    let (mut nodes, mut found, mut below) = (Vec::new(), Vec::new(), Vec::new());
    for (_, place, done, seen) in parts {
        work.put(place, done.top);
        work.count(&done.stats);
        nodes.push(done.nodes);
        found.extend(done.found);
        below.push(seen);
    }
    work.fold();
    let (seen, hashed) = look(Seen {
        work: &work,
        updates,
        old,
        below,
    })?;
    work.hash_rest(&hashed);
    let done = work.finish();
    nodes.push(done.nodes);
    let mut all = Vec::with_capacity(nodes.iter().map(Vec::len).sum());
    nodes.iter_mut().for_each(|nodes| all.append(nodes));
    found.extend(done.found);
    // Each part's ascend, and so do the parts.
    found.sort_by(|a, b| by_key(&a.0, &b.0));
    let update = TreeUpdate {
        root: top_hash(hasher, done.top),
        nodes: all,
        found,
        stats: done.stats,
    };
    Ok((update, seen))
}

/// Applies updates as [`apply`] does, but to the subtree at a path alone, which `top` stands for: so that a tree can be gone through by parts. All
/// their keys begin with the path. Returns what then stands for the subtree, and its nodes written and deleted.
///
/// # Errors
/// As [`apply`]; a key that does not begin with the path.
pub fn apply_below<H: Hasher>(
    reader: &impl Reader,
    hasher: H,
    (path, top): (Path, Option<Child>),
    updates: &[LeafUpdate],
) -> Result<(Option<Child>, Vec<NodeChange>), TreeError> {
    check(updates)?;
    if let Some(other) = updates
        .iter()
        .find(|update| !path.is_prefix_of(&update.key))
    {
        return Err(TreeError::OtherPart(other.key));
    }
    let visit = Visit {
        place: Place::Top,
        path,
        child: top,
        updates: 0..updates.len(),
    };
    let batch = Batch {
        updates,
        reads: &[],
        unread: false,
        counted: false,
    };
    let Done { top, nodes, .. } = part(reader, hasher, batch, visit)?;
    Ok((top, nodes))
}

/// Applies a batch below a child.
pub(crate) fn part<H: Hasher>(
    reader: &impl Reader,
    hasher: H,
    batch: Batch<'_>,
    visit: Visit,
) -> Result<Done, TreeError> {
    let (mut work, _) = Work::descend(reader, hasher, batch, visit, None)?;
    work.hash();
    Ok(work.finish())
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
    let subtrees = subtrees(reader)?;
    let hashes = subtrees.map(|child| child.map(|child| *child.hash()));
    Ok(root_above(hasher, &hashes))
}

/// What stands for the subtrees of the tree that the reader has, by the first nibble of their keys.
///
/// # Errors
/// [`TreeError`] when the root could not be read.
pub fn subtrees(reader: &impl Reader) -> Result<[Option<Child>; 16], TreeError> {
    let mut subtrees = [None; 16];
    if let Some(record) = reader.nodes(&[Path::ROOT])?.pop().flatten() {
        for (nibble, child) in decode(&Path::ROOT, &record)?.children {
            subtrees[usize::from(nibble)] = Some(child);
        }
    }
    Ok(subtrees)
}

/// The root of the tree with these subtrees by the first nibble of their keys; `None` is one without leaves.
pub fn root_above<H: Hasher>(hasher: H, subtrees: &[Option<Hash>; 16]) -> Hash {
    let mut row = Row::default();
    for (nibble, hash) in (0..).zip(subtrees) {
        hash.iter().for_each(|hash| row.set(nibble, *hash));
    }
    if row.present == 0 {
        return empty_root(hasher);
    }
    let rows = std::slice::from_mut(&mut row);
    up(hasher, height(1), rows, &mut Scratch::default());
    row.hashes[0]
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

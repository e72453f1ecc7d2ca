//! Applying updates.

use crate::{
    NodeChange, NodeKey, NodeReader, Settings, StemUpdate, TreeError, TreeStats, TreeUpdate,
    commit::{Commit, Part},
    plan::{self, Plan, Root, Source, Stored},
    tools::Tools,
};
use arbor_ipa::{Committer, Point};
use rayon::prelude::*;

/// Applies updates, whose stems ascend, to the tree that the reader has.
///
/// All nodes of a level are computed together, of large updates those below some of the root's children: their sums, then their images. A commitment is changed by what the changes below add to it, so that nothing is
/// read but the nodes on the way. Changes that change nothing are ignored.
///
/// Uses the current rayon pool's threads for large levels.
///
/// # Errors
/// [`TreeError`]: unsorted updates, old values that the tree has otherwise, missing or malformed nodes, a reader that fails.
pub fn apply(
    reader: &impl NodeReader,
    committer: &Committer,
    updates: &[StemUpdate],
    settings: &Settings,
) -> Result<TreeUpdate, TreeError> {
    check_order(updates)?;
    let effective: Vec<StemUpdate>;
    let updates = if updates.iter().all(changes_all) {
        updates
    } else {
        effective = updates.iter().filter_map(only_changes).collect();
        &effective
    };
    let tools = Tools::new(committer, settings);
    apply_to(&Stored(reader), tools, updates)
}

/// Updates below some of the root's children that are planned and computed together: enough to share inversions, few enough to stay small beside the tree. What has its
/// first byte in common stays together, however much it is.
const MOST: usize = 16_384;
/// The least for one thread, which gains nothing by more parts.
const LEAST_ALONE: usize = 4096;
/// The least for several threads, which plan and compute parts of their own side by side.
const LEAST_SHARED: usize = 256;

/// Applies updates that change something, wherever the nodes come from.
///
/// The parts of the tree below different children of the root are independent of each other: they are computed one after another, or side by side, and only their
/// records and the root's terms are kept.
pub(crate) fn apply_to(
    source: &impl Source,
    tools: Tools,
    updates: &[StemUpdate],
) -> Result<TreeUpdate, TreeError> {
    let root = Root::read(source)?;
    let parts: Result<Vec<Part>, TreeError> = parts(updates)
        .into_par_iter()
        .map(|updates| {
            let plan = plan::plan(source, &root, updates)?;
            let mut part = Commit::new(tools, updates, &plan).run()?;
            add_deletions(&plan, &mut part.nodes);
            Ok(part)
        })
        .collect();
    let parts = parts?;
    let (commitment, change) = root.after(tools, &parts);
    let mut stats = TreeStats {
        internals_read: usize::from(root.existed()),
        internals_written: usize::from(change.iter().any(|change| change.record.is_some())),
        ..TreeStats::default()
    };
    parts.iter().for_each(|part| stats += part.stats);
    let count = parts.iter().map(|part| part.nodes.len()).sum::<usize>();
    let mut nodes = Vec::with_capacity(count + 1);
    nodes.extend(change);
    // Keys ascend by depth first, and among those of one depth from part to part.
    let parts = parts
        .into_iter()
        .map(|part| part.nodes.into_iter().peekable());
    let mut parts: Vec<_> = parts.collect();
    for depth in 1..=NodeKey::MAX_DEPTH {
        for part in &mut parts {
            nodes.extend(std::iter::from_fn(|| {
                part.next_if(|node| node.key.depth() == depth)
            }));
        }
    }
    Ok(TreeUpdate {
        nodes,
        root: commitment,
        stats,
    })
}

/// Cuts updates where their first bytes change, into parts for all threads.
fn parts(updates: &[StemUpdate]) -> Vec<&[StemUpdate]> {
    let threads = rayon::current_num_threads();
    let least = match threads {
        1 => LEAST_ALONE,
        _ => LEAST_SHARED,
    };
    let least = (updates.len() / (2 * threads)).clamp(least, MOST);
    // As many as come near that, of the same size: no thread waits long for another.
    let count = (updates.len() + least / 2) / least;
    let least = updates.len().div_ceil(count.max(1));
    let (mut parts, mut rest) = (Vec::new(), updates);
    while rest.len() > least {
        let first = rest[least - 1].stem[0];
        let (part, others) = rest.split_at(rest.partition_point(|update| update.stem[0] <= first));
        parts.push(part);
        rest = others;
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

/// Sorts the nodes written below the root and adds those that are gone.
fn add_deletions(plan: &Plan, nodes: &mut Vec<NodeChange>) {
    let internals = plan
        .internals
        .iter()
        .filter(|node| node.key != NodeKey::ROOT && node.goes())
        .map(|node| node.key);
    let leaves = plan.leaves.iter().filter_map(|leaf| {
        let (old, _) = leaf.old()?;
        (leaf.new_key() != Some(old)).then_some(old)
    });
    let gone: Vec<_> = internals.chain(leaves).collect();
    nodes.extend(gone.into_iter().map(|key| NodeChange { key, record: None }));
    // Where a node is gone and another one written, the sort keeps the written one first.
    nodes.sort_by(|a, b| {
        a.key
            .cmp(&b.key)
            .then(a.record.is_none().cmp(&b.record.is_none()))
    });
    nodes.dedup_by(|later, earlier| later.key == earlier.key);
}

fn check_order(updates: &[StemUpdate]) -> Result<(), TreeError> {
    let stems = updates.windows(2).find(|pair| pair[0].stem >= pair[1].stem);
    if let Some(pair) = stems {
        return Err(TreeError::Order(pair[1].stem));
    }
    let suffixes = |update: &&StemUpdate| !update.changes.is_sorted_by(|a, b| a.suffix < b.suffix);
    match updates.iter().find(suffixes) {
        Some(update) => Err(TreeError::Order(update.stem)),
        None => Ok(()),
    }
}

fn changes_all(update: &StemUpdate) -> bool {
    !update.changes.is_empty() && update.changes.iter().all(|change| change.old != change.new)
}

fn only_changes(update: &StemUpdate) -> Option<StemUpdate> {
    let changes: Vec<_> = update
        .changes
        .iter()
        .filter(|change| change.old != change.new)
        .copied()
        .collect();
    (!changes.is_empty()).then_some(StemUpdate {
        stem: update.stem,
        changes,
    })
}

/// The root of a tree.
///
/// # Errors
/// [`TreeError`] when the root could not be read.
pub fn root(reader: &impl NodeReader) -> Result<Point, TreeError> {
    let key = crate::NodeKey::ROOT;
    let Some(record) = reader.nodes(&[key])?.pop().flatten() else {
        return Ok(Point::IDENTITY);
    };
    crate::Record::internal(&key, &record)
        .map(|record| record.commitment)
        .map_err(|error| TreeError::Record { key, error })
}

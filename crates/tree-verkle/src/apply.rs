//! Applying updates.

use crate::{
    NodeChange, NodeKey, NodeReader, Settings, StemUpdate, StepsUpdate, TreeError, TreeStats,
    TreeUpdate,
    commit::{Commit, Part},
    plan::{self, Plan, Root, Source, Stored},
    steps::{Steps, check_order, effective},
    tools::Tools,
};
use arbor_cpu::threads::{self, prelude::*};
use arbor_ipa::{Committer, Point};
use std::ops::Range;

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
    apply_together(reader, committer, &[updates], settings).map(TreeUpdate::of_steps)
}

/// Applies updates that follow each other, as [`apply`] would one by one, but computes them together: the root after each, and the nodes after the last.
///
/// Every node is read and written once, and of all updates those sums are computed side by side that do not need each other, so that small updates share what large ones
/// have enough of themselves: inversions and lanes.
///
/// # Errors
/// As [`apply`]; of several updates also one that removes a value. The tree is then as it was before the first.
pub fn apply_together(
    reader: &impl NodeReader,
    committer: &Committer,
    updates: &[&[StemUpdate]],
    settings: &Settings,
) -> Result<StepsUpdate, TreeError> {
    for update in updates {
        check_order(update)?;
    }
    let updates: Vec<_> = updates.iter().map(|update| effective(update)).collect();
    let updates: Vec<&[StemUpdate]> = updates.iter().map(|update| &**update).collect();
    let tools = Tools::new(committer, settings);
    apply_to(&Stored(reader), tools, &updates)
}

/// Updates below some of the root's children that are planned and computed together: enough to share inversions, few enough to stay small beside the tree. What has its
/// first byte in common stays together, however much it is.
const MOST: usize = 16_384;
/// The least for one thread, which gains nothing by more parts.
const LEAST_ALONE: usize = 4096;
/// The least for several threads, which plan and compute parts of their own side by side.
const LEAST_SHARED: usize = 256;

/// Applies updates that change something and follow each other, wherever the nodes come from.
///
/// The parts of the tree below different children of the root are independent of each other: they are computed one after another, or side by side, and only their
/// records and the root's terms are kept.
pub(crate) fn apply_to(
    source: &impl Source,
    tools: Tools,
    updates: &[&[StemUpdate]],
) -> Result<StepsUpdate, TreeError> {
    let steps = Steps::new(updates)?;
    let root = Root::read(source)?;
    let parts: Result<Vec<Part>, TreeError> = parts(&steps)
        .into_par_iter()
        .map(|stems| {
            let stems = steps.range(stems);
            let plan = plan::plan(source, &root, stems.merged)?;
            let mut part = Commit::new(tools, stems, &plan).run()?;
            add_deletions(&plan, &mut part.nodes);
            Ok(part)
        })
        .collect();
    let parts = parts?;
    let (roots, change) = root.after(tools, &parts, updates.len());
    let mut stats = TreeStats {
        internals_read: usize::from(root.existed()),
        values: steps.values(),
        ..TreeStats::default()
    };
    if change.iter().any(|change| change.record.is_some()) {
        stats.internals_written = updates.iter().filter(|update| !update.is_empty()).count();
    }
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
    Ok(StepsUpdate {
        nodes,
        roots,
        stats,
    })
}

/// Cuts stems where their first bytes change, into parts for all threads.
fn parts(steps: &Steps) -> Vec<Range<usize>> {
    let threads = threads::current_num_threads();
    let least = match threads {
        1 => LEAST_ALONE,
        _ => LEAST_SHARED,
    };
    let least = (steps.len() / (2 * threads)).clamp(least, MOST);
    // As many as come near that, of the same size: no thread waits long for another.
    let count = (steps.len() + least / 2) / least;
    let least = steps.len().div_ceil(count.max(1));
    let (mut parts, mut start) = (Vec::new(), 0);
    while steps.len() - start > least {
        let end = steps.above(start, steps.first_byte(start + least - 1));
        parts.push(start..end);
        start = end;
    }
    if start < steps.len() {
        parts.push(start..steps.len());
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

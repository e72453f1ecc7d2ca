//! Applying updates.

use crate::{
    NodeChange, NodeReader, Settings, StemUpdate, TreeError, TreeUpdate,
    commit::Commit,
    plan::{self, Plan, Source, Stored},
    tools::Tools,
};
use arbor_ipa::{Committer, Point};

/// Applies updates, whose stems ascend, to the tree that the reader has.
///
/// All nodes of a level are computed together: their sums, then their images. A commitment is changed by what the changes below add to it, so that nothing is
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

/// Applies updates that change something, wherever the nodes come from.
pub(crate) fn apply_to(
    source: &impl Source,
    tools: Tools,
    updates: &[StemUpdate],
) -> Result<TreeUpdate, TreeError> {
    let plan = plan::plan(source, updates)?;
    let (mut nodes, root, stats) = Commit::new(tools, updates, &plan).run()?;
    add_deletions(&plan, &mut nodes);
    Ok(TreeUpdate { nodes, root, stats })
}

/// Sorts the nodes written and adds those that are gone.
fn add_deletions(plan: &Plan, nodes: &mut Vec<NodeChange>) {
    let internals = plan
        .internals
        .iter()
        .filter(|node| node.goes())
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

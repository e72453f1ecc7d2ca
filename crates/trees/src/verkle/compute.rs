//! What a block's changes make of the tree and of the flat tables beside it.

use std::time::Instant;

use arbor_ipa::Point;
use arbor_tree_verkle::{StemUpdate, TreeStats, apply_together};
use arbor_versions::{Changes, View};

use super::failed;
use super::nodes::AtHead;
use super::updates::updates;
use super::{NODES, Verkle};
use crate::stems::{flat_changes, leaf_changes_together, stored_code};
use arbor_state_tree::Ahead;
use arbor_state_tree::code_writes;
use arbor_state_tree::{Computed, Counts, Published, StateChanges, StateError, Timings, Work};

/// What changes on top of the head, which follow each other, make of the state: roots and flat changes after each, the nodes and what it took with the last. Uses the threads of
/// the current rayon pool.
pub(crate) fn compute(
    verkle: &Verkle,
    view: View<'_>,
    changes: &[&StateChanges],
) -> Result<Vec<Computed>, StateError> {
    let start = Instant::now();
    let (settings, stems) = (verkle.settings(), verkle.stems());
    let at_start = Counts::now();
    let code = |hash| {
        let mut new = changes
            .iter()
            .filter_map(|changes| changes.codes.get(&hash));
        match new.next() {
            Some(code) => Ok(code.clone()),
            None => stored_code(view, hash),
        }
    };
    let mut ahead = Ahead::of(view);
    let mut versions: Vec<Changes> = Vec::with_capacity(changes.len());
    for of_version in changes {
        versions.last().into_iter().for_each(|last| ahead.put(last));
        versions.push(flat_changes(&ahead, of_version, &code)?);
    }
    let leaves = leaf_changes_together(&versions, settings.layout, stems, &code)?;
    let updates: Vec<Vec<StemUpdate>> = leaves.into_iter().map(updates).collect();
    let updates: Vec<&[StemUpdate]> = updates.iter().map(|updates| &updates[..]).collect();
    let keyed = Instant::now();
    let at_keyed = Counts::now();
    let update = apply_together(&AtHead(view), stems.committer(), &updates, &settings.tree)
        .map_err(failed)?;
    let applied = Instant::now();
    let work = Work {
        keys: at_keyed - at_start,
        tree: Counts::now() - at_keyed,
        leaves_filled: update.stats.filled.map(|leaves| leaves as u64),
        published: published(&update.stats),
    };
    for (version, changes) in versions.iter_mut().zip(changes) {
        version.blobs = code_writes(changes.codes.iter());
    }
    if let Some(last) = versions.last_mut() {
        for change in update.nodes {
            last.put_shared_node(NODES, change.key.encode(), change.record);
        }
    }
    let roots = Point::to_bytes_batch(&update.roots).into_iter();
    let roots = roots.map(|root| root.into());
    let mut computed = Computed::run(view, roots.zip(versions));
    if let Some(last) = computed.last_mut() {
        last.work = work;
        last.timings = Timings {
            keys: keyed - start,
            tree: applied - keyed,
            writes: applied.elapsed(),
        };
    }
    Ok(computed)
}

/// An internal node: a byte, a bit for each child, the commitment.
const PUBLISHED_INTERNAL: u64 = 1 + 32 + 64;

/// What the nodes written take in go-verkle's form.
fn published(stats: &TreeStats) -> Published {
    Published {
        internals: PUBLISHED_INTERNAL * stats.internals_written as u64,
        leaves: stats.published_leaves as u64,
        values: stats.published_values as u64,
    }
}

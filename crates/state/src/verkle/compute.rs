//! What a block's changes make of the tree and of the flat tables beside it.

use std::time::Instant;

use arbor_tree_verkle::{TreeStats, apply};
use arbor_versions::View;

use super::changes::{LeafChanges, flat_changes, leaf_changes};
use super::nodes::AtHead;
use super::{NODES, Verkle, stored_code};
use crate::state::code_writes;
use crate::{Computed, Counts, Published, StateChanges, StateError, Timings, Work};

/// What changes on top of the head make of the state. Uses the threads of the current rayon pool.
pub(crate) fn compute(
    verkle: &Verkle,
    view: View<'_>,
    changes: &StateChanges,
) -> Result<Computed, StateError> {
    let start = Instant::now();
    let (settings, stems) = (verkle.settings(), verkle.stems());
    let at_start = Counts::now();
    let code = |hash| match changes.codes.get(&hash) {
        Some(code) => Ok(code.clone()),
        None => stored_code(view, hash),
    };
    let mut written = flat_changes(&view, changes, &code)?;
    let LeafChanges { updates, .. } = leaf_changes(written.flat(), settings.layout, stems, &code)?;
    let keyed = Instant::now();
    let at_keyed = Counts::now();
    let update = apply(&AtHead(view), stems.committer(), &updates, &settings.tree)?;
    let applied = Instant::now();
    let work = Work {
        keys: at_keyed - at_start,
        tree: Counts::now() - at_keyed,
        leaves_filled: update.stats.filled.map(|leaves| leaves as u64),
        published: published(&update.stats),
    };
    let root = update.root_hash().into();
    for change in update.nodes {
        written.put_shared_node(NODES, change.key.encode(), change.record);
    }
    written.blobs = code_writes(changes.codes.iter());
    Ok(Computed {
        root,
        changes: written,
        timings: Timings {
            keys: keyed - start,
            tree: applied - keyed,
            writes: applied.elapsed(),
        },
        work,
    })
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

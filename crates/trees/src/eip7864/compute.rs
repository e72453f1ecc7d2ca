//! What a block's changes make of the tree and of the flat tables beside it.

use std::time::Instant;

use arbor_state_tree::{Computed, StateChanges, StateError, Timings, code_writes};
use arbor_tree_eip7864::apply;
use arbor_versions::View;

use super::updates::updates;
use super::{Eip7864, failed};
use crate::binary::{AtHead, NODES};
use crate::stems::{flat_changes, leaf_changes, stored_code};

/// What changes on top of the head make of the state.
pub(super) fn compute(
    tree: Eip7864,
    view: View<'_>,
    changes: &StateChanges,
) -> Result<Computed, StateError> {
    let start = Instant::now();
    let code = |hash| match changes.codes.get(&hash) {
        Some(code) => Ok(code.clone()),
        None => stored_code(view, hash),
    };
    let mut flat = flat_changes(&view, changes, &code)?;
    let leaves = leaf_changes(flat.flat(), Eip7864::LAYOUT, &tree.stems(), &code)?;
    let updates = updates(&leaves);
    let keyed = Instant::now();
    let update = apply(&AtHead(view), tree.hasher, tree.packing, &updates).map_err(failed)?;
    let applied = Instant::now();
    flat.blobs = code_writes(changes.codes.iter());
    for change in update.nodes {
        flat.put_shared_node(NODES, &change.path.database_key(), change.record);
    }
    let mut computed = Computed::on_head(view, update.root.into(), flat);
    computed.timings = Timings {
        keys: keyed - start,
        tree: applied - keyed,
        writes: applied.elapsed(),
    };
    Ok(computed)
}

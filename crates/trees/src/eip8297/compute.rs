//! What a block's changes make of the tree and of the flat tables beside it.

use std::time::Instant;

use arbor_state_tree::{Computed, StateChanges, StateError, code_writes};
use arbor_versions::View;

use super::Eip8297;
use super::changes::flat_changes;
use super::leaves::leaf_updates;
use crate::binary::computed;
use crate::stems::code_after;

/// What changes on top of the head make of the state.
pub(super) fn compute(
    tree: Eip8297,
    view: View<'_>,
    changes: &StateChanges,
) -> Result<Computed, StateError> {
    let start = Instant::now();
    let code = code_after(view, changes);
    let mut flat = flat_changes(&view, changes, &code)?;
    let updates = leaf_updates(flat.flat(), tree.embedding(), &code)?;
    flat.blobs = code_writes(changes.codes.iter());
    computed(&tree, view, start, flat, &updates)
}

//! What a block's changes make of the tree and of the flat tables beside it.

use std::time::Instant;

use arbor_state_tree::{Computed, StateChanges, StateError, code_writes};
use arbor_versions::View;

use super::Eip7864;
use super::updates::updates;
use crate::binary::computed;
use crate::stems::{code_after, flat_changes, leaf_changes};

/// What changes on top of the head make of the state.
pub(super) fn compute(
    tree: Eip7864,
    view: View<'_>,
    changes: &StateChanges,
) -> Result<Computed, StateError> {
    let start = Instant::now();
    let code = code_after(view, changes);
    let mut flat = flat_changes(&view, changes, &code)?;
    let leaves = leaf_changes(flat.flat(), Eip7864::LAYOUT, &tree.stems(), &code)?;
    flat.blobs = code_writes(changes.codes.iter());
    computed(&tree, view, start, flat, &updates(&leaves))
}

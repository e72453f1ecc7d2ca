//! Changes of leaves as the tree takes them.

use arbor_state_tree::{StateError, StateTree};
use arbor_tree_eip7864::{Hasher, LeafUpdate, Packing, key};
use arbor_versions::View;

use super::Eip7864;
use crate::binary::{FlatChanges, Undo};
use crate::stems::{StemChanges, leaf_changes, stored_code};

/// Returns the updates that changes of leaves come to, in their order.
pub(super) fn updates(changes: &[StemChanges]) -> Vec<LeafUpdate> {
    let updates = changes.iter().flat_map(|of| {
        of.changes.iter().map(|change| LeafUpdate {
            key: key(&of.stem, change.suffix),
            value: change.new,
        })
    });
    updates.collect()
}

impl Undo for Eip7864 {
    type Hash = Hasher;

    fn name(&self) -> &'static str {
        self.kind().name
    }

    fn nodes(&self) -> (Hasher, Packing) {
        (self.hasher, self.packing)
    }

    fn updates(
        &self,
        view: View<'_>,
        flat: FlatChanges<'_, '_>,
    ) -> Result<Vec<LeafUpdate>, StateError> {
        let code = |hash| stored_code(view, hash);
        let changes = leaf_changes(flat, Self::LAYOUT, &self.stems(), &code)?;
        Ok(updates(&changes))
    }
}

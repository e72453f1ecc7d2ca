//! Changes of leaves as the tree takes them.

use arbor_tree_verkle::{StemUpdate, ValueChange};

use crate::stems::StemChanges;

/// Returns the updates that changes of leaves come to, in their order.
pub(super) fn updates(changes: Vec<StemChanges>) -> Vec<StemUpdate> {
    let changes = changes.into_iter();
    let updates = changes.map(|of| StemUpdate {
        stem: of.stem,
        // Both have the same size, so that the changes stay where they are.
        changes: of
            .changes
            .into_iter()
            .map(|change| ValueChange {
                suffix: change.suffix,
                old: change.old,
                new: change.new,
            })
            .collect(),
    });
    updates.collect()
}

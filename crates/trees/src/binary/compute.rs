//! What updates of leaves make of a database.

use std::time::Instant;

use arbor_state_tree::{Computed, StateError, Timings};
use arbor_tree_binary::{LeafUpdate, NodeHash, apply};
use arbor_versions::{Changes, View};

use super::NODES;
use super::nodes::{AtHead, Undo};

/// Applies updates on top of the head, and adds the changed nodes to the changes that the updates follow from. Both were made
/// since an instant.
pub(crate) fn computed<T: Undo>(
    tree: &T,
    view: View<'_>,
    begun: Instant,
    mut changes: Changes,
    updates: &[LeafUpdate<<T::Hash as NodeHash>::Value>],
) -> Result<Computed, StateError> {
    let keyed = Instant::now();
    let (hash, packing) = tree.nodes();
    let update = apply(&AtHead(view), hash, packing, updates)
        .map_err(|error| StateError::of_tree(tree.name(), error))?;
    let applied = Instant::now();
    for change in update.nodes {
        changes.put_shared_node(NODES, &change.path.database_key(), change.record);
    }
    let mut computed = Computed::on_head(view, update.root.into(), changes);
    computed.timings = Timings {
        keys: keyed - begun,
        tree: applied - keyed,
        writes: applied.elapsed(),
    };
    Ok(computed)
}

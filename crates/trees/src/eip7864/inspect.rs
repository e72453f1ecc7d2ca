//! What a stored record of the tree stands for.

use arbor_state_tree::{Seen, StateError, StoredRecord};
use arbor_tree_eip7864::Hasher;

use super::Eip7864;
use crate::binary::{NODES, inspect_nodes};
use crate::stems::inspect_flat;

/// Reports an account that exists, a slot, or the branches and leaves of a record. A slot that is
/// zero again keeps its record.
pub(super) fn inspect(
    tree: Eip7864,
    record: StoredRecord<'_>,
    see: &mut dyn FnMut(Seen<'_>),
) -> Result<(), StateError> {
    match record.table {
        NODES => inspect_nodes::<Hasher>(tree.packing, (record.key, record.value), see),
        _ => inspect_flat(record, see),
    }
}

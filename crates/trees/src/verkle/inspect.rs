//! What a stored record of a Verkle tree stands for.

use arbor_state_tree::{Seen, SeenNodes, StateError, StoredRecord, corrupt};
use arbor_tree_verkle::{NodeKey, Record};

use super::NODES;
use crate::stems::inspect_flat;

/// Reports an account that exists, a slot, or a node. A slot that is zero again keeps its record.
pub(super) fn inspect(
    record: StoredRecord<'_>,
    see: &mut dyn FnMut(Seen<'_>),
) -> Result<(), StateError> {
    let StoredRecord { table, key, value } = record;
    match table {
        NODES => {
            let at = NodeKey::decode(key);
            let at = at.map_err(|_| corrupt("nodes", key, "not a node's place"))?;
            let node = Record::decode(&at, value);
            let node = node.map_err(|_| corrupt("nodes", key, "not a node's record"))?;
            let (kind, values) = match node {
                Record::Internal(_) => ("internal", None),
                Record::Leaf(leaf) => ("leaf", Some(leaf.suffixes.len() as u16)),
            };
            see(Seen::Nodes(SeenNodes {
                trie: "state",
                kind,
                depth: at.depth(),
                count: 1,
                values,
            }));
            Ok(())
        }
        _ => inspect_flat(record, see),
    }
}

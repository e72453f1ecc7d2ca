//! What a stored record of AR16MT (amortized radix-16 Merkle tree) stands for.

use arbor_state_tree::{Seen, SeenNodes, StateError, StoredRecord, corrupt};
use arbor_tree::Position;
use arbor_tree_ar16mt::{Child, Record};

use super::names::Named;
use super::{NAMES, NODES};

/// Reports an account or slot by its name, or the nodes of a node record: itself, and the leaves below it.
///
/// Names stay, so an account that is gone and a slot that is zero again are reported, too. A name does not have the
/// hash of an account's code.
pub(super) fn inspect(
    record: StoredRecord<'_>,
    see: &mut dyn FnMut(Seen<'_>),
) -> Result<(), StateError> {
    let StoredRecord { table, key, value } = record;
    match table {
        NAMES => {
            match Named::decode(key)? {
                Named::Account(address) => see(Seen::Account {
                    address,
                    code_hash: None,
                }),
                Named::Slot(address, _) => see(Seen::Slot {
                    owner: address.as_slice(),
                }),
            }
            Ok(())
        }
        NODES => nodes(key, value, see),
        _ => Ok(()),
    }
}

fn nodes(key: &[u8], value: &[u8], see: &mut dyn FnMut(Seen<'_>)) -> Result<(), StateError> {
    let position = Position::decode_outer(key);
    let path = position
        .map_err(|_| corrupt("nodes", key, "not a node's place"))?
        .path;
    let node = Record::decode(&path, value);
    let node = node.map_err(|_| corrupt("nodes", key, "not a node's record"))?;
    let leaves = node.children.iter();
    let leaves = leaves.filter(|(_, child)| matches!(child, Child::Leaf(_)));
    let leaves = leaves.count() as u64;
    let mut put = |kind, depth, count| {
        if count > 0 {
            see(Seen::Nodes(SeenNodes {
                trie: "state",
                kind,
                depth,
                count,
                values: None,
            }));
        }
    };
    put("internal", path.len(), 1);
    put("leaf", path.len() + 1, leaves);
    Ok(())
}

//! What a stored record of a Verkle tree stands for.

use crate::named_records::{account_key, slot_name};
use alloy_primitives::KECCAK256_EMPTY;
use arbor_state_tree::{ACCOUNTS, SLOTS, Seen, SeenNodes, StateError, StoredRecord, corrupt};
use arbor_tree_verkle::{NodeKey, Record};

use super::NODES;
use crate::stems::AccountRecord;

/// Reports an account that exists, a slot, or a node. A slot that is zero again keeps its record.
pub(super) fn inspect(
    record: StoredRecord<'_>,
    see: &mut dyn FnMut(Seen<'_>),
) -> Result<(), StateError> {
    let StoredRecord { table, key, value } = record;
    match table {
        ACCOUNTS => {
            let address = account_key(key)?;
            if let Some(account) = AccountRecord::decode(key, value)?.account {
                let code_hash = account.code_hash;
                see(Seen::Account {
                    address,
                    code_hash: Some(code_hash).filter(|hash| *hash != KECCAK256_EMPTY),
                });
            }
            Ok(())
        }
        SLOTS => {
            let (address, _) = slot_name(key)?;
            see(Seen::Slot {
                owner: address.as_slice(),
            });
            Ok(())
        }
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
        _ => Ok(()),
    }
}

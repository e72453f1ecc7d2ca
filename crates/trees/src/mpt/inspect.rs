//! What a stored record of Merkle-Patricia tries stands for.

use alloy_primitives::KECCAK256_EMPTY;
use arbor_state_tree::{Seen, SeenNodes, StateError, StoredRecord, corrupt};
use arbor_tree::Position;
use arbor_tree_mpt::Record;

use super::keys::{ACCOUNT_NODES, ACCOUNTS, SLOTS, STORAGE_NODES};
use super::records::{AccountRecord, FlatRecord};

/// Reports an account, a slot, or the nodes of a node record: an extension, the branch below it, and its leaves.
///
/// Leaves have no record, so they are told by their parents. A trie that is one leaf has no record at all.
pub(super) fn inspect(
    record: StoredRecord<'_>,
    see: &mut dyn FnMut(Seen<'_>),
) -> Result<(), StateError> {
    let StoredRecord { table, key, value } = record;
    match table {
        ACCOUNTS => {
            let AccountRecord {
                address, account, ..
            } = AccountRecord::decode(key, value)?;
            see(Seen::Account {
                address,
                code_hash: Some(account.code_hash).filter(|hash| *hash != KECCAK256_EMPTY),
            });
            Ok(())
        }
        SLOTS => {
            let owner = key.get(..32);
            let owner =
                owner.ok_or_else(|| corrupt("slots", key, "shorter than an account's key"))?;
            see(Seen::Slot { owner });
            Ok(())
        }
        ACCOUNT_NODES => {
            let position = Position::decode_outer(key);
            nodes("accounts", ("account nodes", position.ok()), record, see)
        }
        STORAGE_NODES => {
            let position = Position::decode_inner(key);
            nodes("storage", ("storage nodes", position.ok()), record, see)
        }
        _ => Ok(()),
    }
}

fn nodes(
    trie: &'static str,
    (table, position): (&'static str, Option<Position>),
    record: StoredRecord<'_>,
    see: &mut dyn FnMut(Seen<'_>),
) -> Result<(), StateError> {
    let position = position.ok_or_else(|| corrupt(table, record.key, "not a node's position"))?;
    let node = Record::decode(record.value);
    let node = node.map_err(|_| corrupt(table, record.key, "not a node's record"))?;
    let mut put = |kind, depth, count: u32| {
        if count > 0 {
            see(Seen::Nodes(SeenNodes {
                trie,
                kind,
                depth,
                count: count.into(),
                values: None,
            }));
        }
    };
    let depth = position.path.len();
    let below = depth + node.prefix().len();
    put("extension", depth, u32::from(below > depth));
    put("branch", below, 1);
    put("leaf", below + 1, node.leaves().count_ones());
    Ok(())
}

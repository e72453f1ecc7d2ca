//! What a stored record of the tree stands for.

use crate::named_records::{account_key, slot_name};
use alloy_primitives::KECCAK256_EMPTY;
use arbor_state_tree::{ACCOUNTS, SLOTS, Seen, StateError, StoredRecord};
use arbor_tree_eip8297::Hasher;

use super::Eip8297;
use super::records::{AccountRecord, decode_slot};
use crate::binary::{NODES, inspect_nodes};

/// Reports an account, a slot, or the branches and leaves of a record, each at its depth in bits.
pub(super) fn inspect(
    tree: Eip8297,
    record: StoredRecord<'_>,
    see: &mut dyn FnMut(Seen<'_>),
) -> Result<(), StateError> {
    let StoredRecord { table, key, value } = record;
    match table {
        ACCOUNTS => {
            let address = account_key(key)?;
            let code_hash = AccountRecord::decode(key, value)?.account.code_hash;
            see(Seen::Account {
                address,
                code_hash: Some(code_hash).filter(|hash| *hash != KECCAK256_EMPTY),
            });
        }
        SLOTS => {
            let (address, _) = slot_name(key)?;
            decode_slot(key, value)?;
            see(Seen::Slot {
                owner: address.as_slice(),
            });
        }
        NODES => {
            inspect_nodes::<Hasher>(tree.packing, (key, value), see)?;
        }
        _ => {}
    }
    Ok(())
}

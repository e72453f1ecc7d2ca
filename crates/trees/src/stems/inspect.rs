//! What a flat record stands for.

use alloy_primitives::KECCAK256_EMPTY;
use arbor_state_tree::{ACCOUNTS, SLOTS, Seen, StateError, StoredRecord};

use super::records::AccountRecord;
use crate::named_records::{account_key, slot_name};

/// Reports an account that exists, or a slot. A slot that is zero again keeps its record. A record
/// of another table stands for nothing.
pub(crate) fn inspect_flat(
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
        }
        SLOTS => {
            let (address, _) = slot_name(key)?;
            see(Seen::Slot {
                owner: address.as_slice(),
            });
        }
        _ => {}
    }
    Ok(())
}

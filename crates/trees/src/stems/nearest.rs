//! Names near a key.

use alloy_primitives::{Address, U256};
use arbor_tree::Hash;
use arbor_versions::View;

use super::records::{AccountRecord, account_key, slot_name};
use crate::plain::slot_near;
use arbor_state_tree::StateError;
use arbor_state_tree::{ACCOUNTS, SLOTS};

/// The first account that exists whose address is not below the first bytes of `from`.
pub(crate) fn account_from(view: View<'_>, from: &Hash) -> Result<Option<Address>, StateError> {
    for entry in view.scan(ACCOUNTS, &[], &from[..20])? {
        let (key, bytes) = entry?;
        if AccountRecord::decode(&key, &bytes)?.account.is_some() {
            return Ok(Some(account_key(&key)?));
        }
    }
    Ok(None)
}

/// As [`StateTree::slot_from`](arbor_state_tree::StateTree::slot_from): of the slots that are not zero.
pub(crate) fn slot_from(
    view: View<'_>,
    account: &Hash,
    slot: &Hash,
) -> Result<Option<(Address, U256)>, StateError> {
    let set = |prefix: &[u8], from: &[u8]| -> Result<Option<(Address, U256)>, StateError> {
        for entry in view.scan(SLOTS, prefix, from)? {
            let (key, bytes) = entry?;
            if !bytes.is_empty() {
                return Ok(Some(slot_name(&key)?));
            }
        }
        Ok(None)
    };
    slot_near(account, slot, set)
}

//! Names near a key.

use alloy_primitives::{Address, U256};
use arbor_tree::Hash;
use arbor_versions::View;

use super::NAMES;
use super::names::Named;
use super::reader::{account, storage};
use crate::plain::slot_near;
use arbor_state_tree::StateError;

/// The first account that exists whose address is not below the first bytes of `from`.
pub(crate) fn account_from(view: View<'_>, from: &Hash) -> Result<Option<Address>, StateError> {
    for entry in view.scan(NAMES, &[], &from[..20])? {
        if let Named::Account(address) = Named::decode(&entry?.0)?
            && account(&view, address)?.is_some()
        {
            return Ok(Some(address));
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
        for entry in view.scan(NAMES, prefix, from)? {
            if let Named::Slot(address, slot) = Named::decode(&entry?.0)?
                && !storage(&view, address, slot)?.is_zero()
            {
                return Ok(Some((address, slot)));
            }
        }
        Ok(None)
    };
    slot_near(account, slot, set)
}

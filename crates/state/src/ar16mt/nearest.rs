//! Names near a key.

use alloy_primitives::{Address, U256};
use arbor_tree::Hash;
use arbor_versions::View;

use super::NAMES;
use super::names::Named;
use super::reader::{account, storage};
use crate::StateError;

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

/// A slot that is not zero of the first account with storage whose address is not below the first bytes of `account`: the first from `slot` on, else
/// the account's first.
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
    let Some(first) = set(&[], &account[..20])? else {
        return Ok(None);
    };
    let owner = first.0.as_slice();
    let found = set(owner, &[owner, slot].concat())?;
    Ok(found.or(Some(first)))
}

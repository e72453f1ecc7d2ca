//! Names near a key.

use alloy_primitives::{Address, U256};
use arbor_tree::Hash;
use arbor_versions::View;

use super::keys::{ACCOUNTS, SLOTS};
use super::reader::account_record;
use super::records::{AccountRecord, FlatRecord, SlotRecord};
use arbor_state_tree::StateError;
use arbor_state_tree::corrupt;

/// The first account whose key is `from` or above.
pub(crate) fn account_from(view: View<'_>, from: &Hash) -> Result<Option<Address>, StateError> {
    let Some(entry) = view.scan(ACCOUNTS, &[], from)?.next() else {
        return Ok(None);
    };
    let (key, bytes) = entry?;
    Ok(Some(AccountRecord::decode(&key, &bytes)?.address))
}

/// A slot of the first account with storage whose key is `account` or above.
pub(crate) fn slot_from(
    view: View<'_>,
    account: &Hash,
    slot: &Hash,
) -> Result<Option<(Address, U256)>, StateError> {
    let Some(first) = view.scan(SLOTS, &[], account)?.next() else {
        return Ok(None);
    };
    let first = first?;
    let corrupt = |why| corrupt("slots", &first.0, why);
    let owner = first.0.first_chunk::<32>();
    let owner = owner.ok_or_else(|| corrupt("key of the wrong length"))?;
    let account = account_record(&view, owner)?.ok_or_else(|| corrupt("no such account"))?;
    let from = [&owner[..], slot].concat();
    let mut from_slot = view.scan(SLOTS, owner, &from)?;
    let (key, bytes) = from_slot.next().unwrap_or_else(|| Ok(first.clone()))?;
    let slot = SlotRecord::decode(&key, &bytes)?.slot;
    Ok(Some((account.address, slot)))
}

//! Names near a key.

use alloy_primitives::{Address, U256};
use arbor_state_tree::{ACCOUNTS, SLOTS, StateError};
use arbor_tree::Hash;
use arbor_versions::View;

use crate::plain::slot_near;
use crate::stems::{account_key, slot_name};

/// The first account whose address is not below the first bytes of `from`.
pub(super) fn account_from(view: View<'_>, from: &Hash) -> Result<Option<Address>, StateError> {
    let first = view.scan(ACCOUNTS, &[], &from[..20])?.next();
    let key = first.transpose()?.map(|(key, _)| key);
    key.map(|key| account_key(&key)).transpose()
}

/// As [`StateTree::slot_from`](arbor_state_tree::StateTree::slot_from).
pub(super) fn slot_from(
    view: View<'_>,
    account: &Hash,
    slot: &Hash,
) -> Result<Option<(Address, U256)>, StateError> {
    slot_near(account, slot, |prefix, from| {
        let first = view.scan(SLOTS, prefix, from)?.next();
        let key = first.transpose()?.map(|(key, _)| key);
        key.map(|key| slot_name(&key)).transpose()
    })
}

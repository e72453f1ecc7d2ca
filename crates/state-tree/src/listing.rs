//! Accounts as they are listed.

use alloy_primitives::{Address, B256, U256};

use arbor_accounts::{Account, FullAccount};

/// An account with its slots that are not zero.
pub struct WithSlots {
    /// The account's address.
    pub address: Address,
    /// The account itself.
    pub account: Account,
    /// Slots and values, in the order of the flat table.
    pub slots: Vec<(U256, U256)>,
    /// The root of the account's storage trie, if the tree keeps it.
    pub storage_root: Option<B256>,
}

impl From<WithSlots> for FullAccount {
    fn from(listed: WithSlots) -> Self {
        let WithSlots {
            address,
            account,
            slots,
            ..
        } = listed;
        Self {
            address,
            account,
            slots,
        }
    }
}

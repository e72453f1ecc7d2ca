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

/// An account with all slots that the flat tables have a record for, also those of what is gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptAccount {
    /// The account's address.
    pub address: Address,
    /// The account itself; `None` if only its leaves are left, as zeros.
    pub account: Option<Account>,
    /// The number of chunks of code that have leaves, if it is more than the code has.
    pub past_chunks: Option<u32>,
    /// Slots and values, ascending in the order of the flat table; zero for a slot whose leaf stays.
    pub slots: Vec<(U256, U256)>,
}

impl From<WithSlots> for KeptAccount {
    fn from(listed: WithSlots) -> Self {
        Self {
            address: listed.address,
            account: Some(listed.account),
            past_chunks: None,
            slots: listed.slots,
        }
    }
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

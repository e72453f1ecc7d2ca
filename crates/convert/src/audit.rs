//! Which hashed keys lack a name.

use std::fmt;

use alloy_primitives::{Address, B256};

use crate::counts::Counts;

/// A hashed key without a name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MissingName {
    /// Keccak-256 of the account's address.
    pub account: B256,
    /// The account's address, if it has a name.
    pub address: Option<Address>,
    /// Keccak-256 of the slot's number; `None` if the account's own name is missing.
    pub slot: Option<B256>,
}

impl fmt::Display for MissingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let account = match self.address {
            Some(address) => format!("account {address:#x}"),
            None => format!("the account with the hashed address {}", self.account),
        };
        match self.slot {
            Some(slot) => write!(f, "{account}: the slot with the hashed number {slot}"),
            None => f.write_str(&account),
        }
    }
}

/// What an audit of hashed keys found.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Audit {
    /// Accounts and slots of the source.
    pub counts: Counts,
    /// Names in the files of preimages, each counted as often as it is there.
    pub names: u64,
    /// Accounts without a name.
    pub missing_accounts: u64,
    /// Slots without a name.
    pub missing_slots: u64,
    /// The first thousand hashed keys without a name, by account.
    pub missing: Vec<MissingName>,
}

impl Audit {
    /// Whether every hashed key has a name.
    pub fn is_complete(&self) -> bool {
        self.missing_accounts + self.missing_slots == 0
    }

    /// The first hashed key without a name, in words.
    pub(crate) fn first(&self) -> String {
        self.missing
            .first()
            .map_or_else(String::new, ToString::to_string)
    }
}

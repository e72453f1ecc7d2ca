//! Names of accounts and slots.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, U256};
use serde::{Deserialize, Serialize};

/// An account and slots of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountSlots {
    /// Whose they are.
    pub address: Address,
    /// The slots' numbers.
    pub slots: Vec<U256>,
}

/// What a block read: accounts, and slots of accounts.
pub type Reads = BTreeMap<Address, BTreeSet<U256>>;

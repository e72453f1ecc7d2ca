//! How much of a state was read.

use serde::{Deserialize, Serialize};

/// Accounts and slots.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Counts {
    /// Accounts.
    pub accounts: u64,
    /// Slots.
    pub slots: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, more: Self) {
        self.accounts += more.accounts;
        self.slots += more.slots;
    }
}

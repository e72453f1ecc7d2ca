//! How much of a state was read.

use serde::Serialize;

/// Accounts and slots.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub struct Counts {
    /// Accounts.
    pub accounts: u64,
    /// Slots.
    pub slots: u64,
}

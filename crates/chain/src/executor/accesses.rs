//! What each transaction of a block reads and writes.

use alloy_primitives::{Address, U256};

/// An account's own fields, or a slot of it.
pub type Place = (Address, Option<U256>);

/// The places that a transaction reads and writes. The fees of the block's beneficiary are left out: they add up in any
/// order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TransactionAccess {
    /// Places read, those written among them.
    pub reads: Vec<Place>,
    /// Places that are other than before.
    pub writes: Vec<Place>,
    /// Its gas.
    pub gas: u64,
}

//! Which chain a state belongs to.

use alloy_primitives::B256;

/// Which chain a state belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// The chain id of EIP-155.
    pub chain_id: u64,
    /// The hash of block 0.
    pub genesis_hash: B256,
}

//! An account of a genesis.

use alloy_primitives::{Address, B256, Bytes, U256};

/// An account that exists from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenesisAccount {
    /// Its address.
    pub address: Address,
    /// Wei.
    pub balance: U256,
    /// Transactions sent, or 1 for a contract of EIP-161.
    pub nonce: u64,
    /// Its code, empty for none.
    pub code: Bytes,
    /// Its slots in ascending order, without those that are zero.
    pub storage: Vec<(B256, U256)>,
}

impl GenesisAccount {
    /// An account as a genesis that is being made has it.
    pub fn new(address: Address, account: alloy_genesis::GenesisAccount) -> Self {
        let storage = account
            .storage_slots()
            .filter(|(_, value)| !value.is_zero())
            .collect();
        Self {
            address,
            balance: account.balance,
            nonce: account.nonce.unwrap_or_default(),
            code: account.code.unwrap_or_default(),
            storage,
        }
    }
}

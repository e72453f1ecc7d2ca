//! What a call may change of the state and the block that it sees (the third and fourth parameter of
//! `eth_call`).

use std::collections::BTreeMap;

use alloy_consensus::Header;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use arbor_state::{Account, ReadError, StateView};

/// Changes that hold for one call.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Overrides {
    /// Changed accounts. One that does not exist begins empty.
    pub accounts: BTreeMap<Address, AccountOverride>,
    /// Changes of the block.
    pub block: BlockOverride,
}

/// Changes of an account.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AccountOverride {
    /// The nonce.
    pub nonce: Option<u64>,
    /// The balance in wei.
    pub balance: Option<U256>,
    /// The code.
    pub code: Option<Bytes>,
    /// The whole storage: all other slots are zero.
    pub state: Option<BTreeMap<U256, U256>>,
    /// Single slots, over the storage.
    pub state_diff: BTreeMap<U256, U256>,
}

/// Changes of the block in which a call runs. The fork follows from the changed number and time.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BlockOverride {
    /// The number.
    pub number: Option<u64>,
    /// The difficulty. From the merge on no call sees it.
    pub difficulty: Option<U256>,
    /// The time in seconds.
    pub time: Option<u64>,
    /// The gas limit.
    pub gas_limit: Option<u64>,
    /// The beneficiary.
    pub fee_recipient: Option<Address>,
    /// The randomness, which is the mix hash of the header.
    pub prev_randao: Option<B256>,
    /// The base fee in wei.
    pub base_fee: Option<u64>,
    /// The price of a unit of blob gas in wei, which no header has.
    pub blob_base_fee: Option<u128>,
}

impl BlockOverride {
    pub(crate) fn apply(&self, header: &mut Header) {
        header.number = self.number.unwrap_or(header.number);
        if !header.difficulty.is_zero() {
            header.difficulty = self.difficulty.unwrap_or(header.difficulty);
        }
        header.timestamp = self.time.unwrap_or(header.timestamp);
        header.gas_limit = self.gas_limit.unwrap_or(header.gas_limit);
        header.beneficiary = self.fee_recipient.unwrap_or(header.beneficiary);
        header.mix_hash = self.prev_randao.unwrap_or(header.mix_hash);
        header.base_fee_per_gas = self.base_fee.or(header.base_fee_per_gas);
    }
}

/// A state under changes.
pub(crate) struct Overridden<'a> {
    base: Box<dyn StateView + 'a>,
    accounts: BTreeMap<Address, AccountOverride>,
    codes: BTreeMap<B256, Bytes>,
}

impl<'a> Overridden<'a> {
    pub(crate) fn new(
        base: Box<dyn StateView + 'a>,
        accounts: BTreeMap<Address, AccountOverride>,
    ) -> Self {
        let codes = accounts.values().filter_map(|account| account.code.clone());
        let codes = codes.map(|code| (keccak256(&code), code)).collect();
        Self {
            base,
            accounts,
            codes,
        }
    }
}

impl StateView for Overridden<'_> {
    fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
        let found = self.base.account(address)?;
        let Some(change) = self.accounts.get(&address) else {
            return Ok(found);
        };
        let found = found.unwrap_or(Account {
            nonce: 0,
            balance: U256::ZERO,
            code_hash: KECCAK256_EMPTY,
        });
        Ok(Some(Account {
            nonce: change.nonce.unwrap_or(found.nonce),
            balance: change.balance.unwrap_or(found.balance),
            code_hash: change.code.as_ref().map_or(found.code_hash, keccak256),
        }))
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError> {
        let Some(change) = self.accounts.get(&address) else {
            return self.base.storage(address, slot);
        };
        match (change.state_diff.get(&slot), &change.state) {
            (Some(value), _) => Ok(*value),
            (None, Some(state)) => Ok(state.get(&slot).copied().unwrap_or_default()),
            (None, None) => self.base.storage(address, slot),
        }
    }

    fn has_storage(&self, address: Address) -> Result<bool, ReadError> {
        let Some(change) = self.accounts.get(&address) else {
            return self.base.has_storage(address);
        };
        let mut set = change.state.iter().flatten().chain(&change.state_diff);
        Ok(set.any(|(_, value)| !value.is_zero())
            || change.state.is_none() && self.base.has_storage(address)?)
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        match self.codes.get(&code_hash) {
            Some(code) => Ok(code.clone()),
            None => self.base.code(code_hash),
        }
    }
}

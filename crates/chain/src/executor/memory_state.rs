//! A state in memory without a tree: what execution alone costs is measured over it.

use alloy_primitives::map::{AddressMap, B256Map, U256Map};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use arbor_state::{Account, ReadError, StateChanges, StateView};

use crate::genesis::Alloc;

/// Accounts, slots and code in hash maps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MemoryState {
    accounts: AddressMap<(Account, U256Map<U256>)>,
    codes: B256Map<Bytes>,
}

impl MemoryState {
    /// Creates the state of a genesis.
    pub fn from_genesis(accounts: &Alloc) -> Self {
        let mut state = Self::default();
        for account in accounts.iter() {
            let code_hash = if account.code.is_empty() {
                KECCAK256_EMPTY
            } else {
                keccak256(&account.code)
            };
            if !account.code.is_empty() {
                state.codes.insert(code_hash, account.code.clone());
            }
            let slots = account
                .storage
                .iter()
                .filter(|(_, value)| !value.is_zero())
                .map(|(slot, value)| (U256::from_be_bytes(slot.0), *value))
                .collect();
            let info = Account {
                nonce: account.nonce,
                balance: account.balance,
                code_hash,
            };
            state.accounts.insert(account.address, (info, slots));
        }
        state
    }

    /// Moves on by one block, or by one transaction.
    pub fn apply(&mut self, changes: &StateChanges) {
        for (hash, code) in &changes.codes {
            self.codes.insert(*hash, code.clone());
        }
        for (address, change) in &changes.accounts {
            let Some(account) = change.new else {
                self.accounts.remove(address);
                continue;
            };
            let (info, slots) = self
                .accounts
                .entry(*address)
                .or_insert_with(|| (account, U256Map::default()));
            *info = account;
            if change.storage_cleared {
                slots.clear();
            }
            for (slot, value) in &change.slots {
                if value.new.is_zero() {
                    slots.remove(slot);
                } else {
                    slots.insert(*slot, value.new);
                }
            }
        }
    }

    /// Returns every account, in no order.
    pub fn accounts(&self) -> impl Iterator<Item = (Address, Account)> {
        self.accounts
            .iter()
            .map(|(address, (account, _))| (*address, *account))
    }

    /// Returns an account's slots that are not zero, in no order.
    pub fn slots(&self, address: Address) -> impl Iterator<Item = (U256, U256)> {
        let slots = self.accounts.get(&address).map(|(_, slots)| slots);
        slots
            .into_iter()
            .flatten()
            .map(|(slot, value)| (*slot, *value))
    }
}

impl StateView for MemoryState {
    fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
        Ok(self.accounts.get(&address).map(|(account, _)| *account))
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError> {
        let slots = self.accounts.get(&address).map(|(_, slots)| slots);
        Ok(slots
            .and_then(|slots| slots.get(&slot))
            .copied()
            .unwrap_or_default())
    }

    fn has_storage(&self, address: Address) -> Result<bool, ReadError> {
        let slots = self.accounts.get(&address).map(|(_, slots)| slots);
        Ok(slots.is_some_and(|slots| !slots.is_empty()))
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        self.codes
            .get(&code_hash)
            .cloned()
            .ok_or_else(|| ReadError::new(format!("no code with hash {code_hash}")))
    }
}

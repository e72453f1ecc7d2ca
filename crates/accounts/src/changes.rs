//! What a block changes.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};

/// An account without its storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account {
    /// Number of transactions sent, or contracts created.
    pub nonce: u64,
    /// Balance in wei.
    pub balance: U256,
    /// Keccak-256 of the code; that of the empty string for an account without code.
    pub code_hash: B256,
}

impl Account {
    /// An account with a balance, without code, that has sent nothing yet.
    #[must_use]
    pub fn with_balance(balance: U256) -> Self {
        Self {
            balance,
            ..Self::default()
        }
    }
}

impl Default for Account {
    /// The account that nothing was done to yet: nonce and balance are zero, and it has no code.
    fn default() -> Self {
        Self {
            nonce: 0,
            balance: U256::ZERO,
            code_hash: KECCAK256_EMPTY,
        }
    }
}

/// One storage slot's change. Zero means absent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotChange {
    /// Value before the block; zero in storage that the block clears first.
    pub old: U256,
    /// Value after the block.
    pub new: U256,
}

/// One account's change within a block (or a transaction, for intermediate roots).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccountChange {
    /// The account before; `None`: it did not exist.
    pub old: Option<Account>,
    /// The account after; `None`: it does not exist.
    pub new: Option<Account>,
    /// Whether all storage present before was cleared first (self-destruct, re-creation).
    /// `slots` then lists what stands after the clearing, with `old` as zero.
    pub storage_cleared: bool,
    /// The slots whose values differ, by plain slot number. Empty when `new` is `None`.
    pub slots: BTreeMap<U256, SlotChange>,
}

/// All that a block changes, by plain address.
///
/// Old values are compared with the state when the changes are computed, and one that is wrong is refused.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StateChanges {
    /// Accounts that differ in any way, storage included.
    pub accounts: BTreeMap<Address, AccountChange>,
    /// Code deployed, by its hash. Every code hash that an account gets has its code here, unless it is stored already.
    pub codes: BTreeMap<B256, Bytes>,
}

impl StateChanges {
    /// Adds what changes after this, so that both together lead from the state before to the state after.
    pub fn extend(&mut self, later: &Self) {
        for (address, later) in &later.accounts {
            let change = self
                .accounts
                .entry(*address)
                .or_insert_with(|| AccountChange {
                    old: later.old,
                    new: later.old,
                    ..AccountChange::default()
                });
            change.extend(later);
            if change.changes_nothing() {
                self.accounts.remove(address);
            }
        }
        let codes = later.codes.iter().map(|(hash, code)| (*hash, code.clone()));
        self.codes.extend(codes);
    }
}

impl AccountChange {
    fn extend(&mut self, later: &Self) {
        if later.storage_cleared || later.new.is_none() {
            self.storage_cleared |= self.old.is_some();
            self.slots.clear();
        }
        self.new = later.new;
        for (slot, later) in &later.slots {
            let change = self.slots.entry(*slot).or_insert(*later);
            change.new = later.new;
            if change.old == change.new {
                self.slots.remove(slot);
            }
        }
    }

    fn changes_nothing(&self) -> bool {
        self.old == self.new && !self.storage_cleared && self.slots.is_empty()
    }
}

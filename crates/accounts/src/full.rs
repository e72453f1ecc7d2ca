//! Accounts with all their slots.

use alloy_primitives::{Address, U256};

use crate::{Account, ReadError};

/// A key by which accounts, or the slots of an account, are sorted.
pub type SortKey = [u8; 32];

/// An account with all its slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FullAccount {
    /// The account's address.
    pub address: Address,
    /// Nonce, balance and code hash.
    pub account: Account,
    /// Slot numbers with their values. No value is zero, and no slot is listed twice.
    pub slots: Vec<(U256, U256)>,
}

/// An account with all its slots, and the keys that an [order](crate::AccountOrder) gives them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyedAccount {
    /// The key that accounts are sorted by.
    pub key: SortKey,
    /// The account's address.
    pub address: Address,
    /// Nonce, balance and code hash.
    pub account: Account,
    /// The slots, ascending by key.
    pub slots: Vec<KeyedSlot>,
}

/// A slot that is not zero, and its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyedSlot {
    /// The key that the slots of an account are sorted by.
    pub key: SortKey,
    /// The slot's number.
    pub slot: U256,
    /// The slot's value.
    pub value: U256,
}

/// Accounts that are read one after another.
pub type KeyedAccounts<'a> = Box<dyn Iterator<Item = Result<KeyedAccount, ReadError>> + 'a>;

/// Accounts without keys, that are read one after another.
pub type FullAccounts<'a> = Box<dyn Iterator<Item = Result<FullAccount, ReadError>> + 'a>;

impl From<KeyedAccount> for FullAccount {
    fn from(keyed: KeyedAccount) -> Self {
        let slots = keyed.slots.into_iter();
        Self {
            address: keyed.address,
            account: keyed.account,
            slots: slots.map(|slot| (slot.slot, slot.value)).collect(),
        }
    }
}

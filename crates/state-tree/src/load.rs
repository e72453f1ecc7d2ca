//! A whole state as it is loaded.

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_tree::Hash;
use arbor_verify::mpt::{account_key, slot_key};

use crate::{Account, StateError};

/// An account with all its storage, as it is loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadAccount {
    /// Keccak-256 of the address, by which accounts are sorted.
    pub key: Hash,
    /// The address.
    pub address: Address,
    /// Nonce, balance, code.
    pub account: Account,
    /// Its slots, ascending by key.
    pub slots: Vec<LoadSlot>,
}

/// A slot that is not zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadSlot {
    /// Keccak-256 of the slot's number (32 bytes, big-endian).
    pub key: Hash,
    /// The number.
    pub slot: U256,
    /// The value; not zero.
    pub value: U256,
}

impl LoadAccount {
    /// An account with its keys; slots come in any order, each once. Those with zero are absent.
    pub fn new(
        address: Address,
        account: Account,
        slots: impl IntoIterator<Item = (U256, U256)>,
    ) -> Self {
        let slots = slots.into_iter().filter(|(_, value)| !value.is_zero());
        let slots = slots.map(|(slot, value)| LoadSlot {
            key: slot_key(slot),
            slot,
            value,
        });
        let mut slots: Vec<LoadSlot> = slots.collect();
        slots.sort_unstable_by_key(|slot| slot.key);
        Self {
            key: account_key(address),
            address,
            account,
            slots,
        }
    }
}

/// Where a state to be loaded comes from. It is read in the order that the tree's tables have: once by hashed key, range by range and by several
/// threads, or several times by address.
pub trait LoadSource: Sync {
    /// All accounts whose keys have this first byte, ascending by key.
    ///
    /// # Errors
    /// Whatever keeps them from being had; the load ends with it.
    fn range(&self, first: u8) -> Result<Vec<LoadAccount>, StateError>;

    /// All accounts, ascending by address.
    fn by_address(&self) -> Box<dyn Iterator<Item = Result<LoadAccount, StateError>> + '_>;

    /// The codes of all accounts, by their hashes.
    fn codes(&self) -> Vec<(B256, Bytes)>;
}

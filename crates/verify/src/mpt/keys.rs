//! Names to tree keys.

use alloy_primitives::{Address, U256};
use arbor_accounts::AccountOrder;
use arbor_hashing::keccak256_fixed;
use arbor_tree::Hash;

/// Ascending by Keccak-256 of the address, and of the slot's number: the order of the tries'
/// leaves.
pub static BY_KECCAK: AccountOrder = AccountOrder {
    name: "by Keccak-256 of the name",
    account_keys: |addresses, keys| {
        let addresses: Vec<[u8; 20]> = addresses.iter().map(|address| address.0.0).collect();
        keccak256_fixed(&addresses, keys);
    },
    slot_keys: |slots, keys| {
        let slots: Vec<[u8; 32]> = slots.iter().map(|slot| slot.to_be_bytes()).collect();
        keccak256_fixed(&slots, keys);
    },
};

/// The key of an account in the account trie: Keccak-256 of its address.
pub fn account_key(address: Address) -> Hash {
    arbor_hashing::keccak256(address.as_slice())
}

/// The key of a slot in its account's storage trie: Keccak-256 of its number (32 bytes, big-endian).
pub fn slot_key(slot: U256) -> Hash {
    arbor_hashing::keccak256(&slot.to_be_bytes::<32>())
}

//! Names to tree keys.

use alloy_primitives::{Address, U256};
use arbor_tree::Hash;

/// The key of an account in the account trie: Keccak-256 of its address.
pub fn account_key(address: Address) -> Hash {
    arbor_hashing::keccak256(address.as_slice())
}

/// The key of a slot in its account's storage trie: Keccak-256 of its number (32 bytes, big-endian).
pub fn slot_key(slot: U256) -> Hash {
    arbor_hashing::keccak256(&slot.to_be_bytes::<32>())
}

//! Ethereum state in Merkle-Patricia tries: storage tries below the accounts of one trie, keyed by Keccak-256.

mod at_head;
mod at_version;
mod build;
mod compute;
mod flat_records;
mod inspect;
mod keys;
mod load;
#[cfg(feature = "conformance")]
pub(crate) mod model;
mod prove;
mod reader;
mod rebuild;
mod records;
mod tree;
mod undo;
mod verify;

pub(crate) use at_head::AtHead;
pub(crate) use at_version::AtVersion;
#[cfg(test)]
pub(crate) use keys::TABLES;
pub(crate) use prove::prove_account;
pub use tree::{MPT, MerklePatricia};

use arbor_state_tree::StateError;

/// An error of the pure tree, as the state has it.
pub(crate) fn failed(error: impl std::error::Error + Send + Sync + 'static) -> StateError {
    StateError::of_tree(MPT.name, error)
}

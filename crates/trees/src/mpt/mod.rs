//! Ethereum state in Merkle-Patricia tries: storage tries below the accounts of one trie, keyed by Keccak-256.

mod compute;
mod inspect;
mod keys;
mod load;
#[cfg(feature = "conformance")]
pub(crate) mod model;
mod nearest;
mod prove;
mod reader;
mod rebuild;
mod records;
mod tree;
mod undo;
mod verify;

#[cfg(test)]
pub(crate) use keys::TABLES;
pub(crate) use prove::{prove_account, witness_nodes};
pub(crate) use reader::{AtHead, AtVersion};
pub use tree::{MPT, MerklePatricia};

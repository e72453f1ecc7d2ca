//! Ethereum state in Merkle-Patricia tries: storage tries below the accounts of one trie, keyed by Keccak-256.

mod compute;
mod embedding;
mod keys;
mod leaves;
mod load;
mod nearest;
mod pending;
mod proof;
mod reader;
mod rebuild;
mod records;
mod tree;
mod undo;
mod verify;
mod witness;

#[cfg(test)]
pub(crate) use keys::TABLES;
pub(crate) use leaves::{account_leaves, root_of_leaves, storage_root};
pub use load::{LoadAccount, LoadSlot, LoadSource, state_root};
pub(crate) use pending::PendingRoots;
pub use proof::{AccountProof, FalseProof, SlotProof};
pub(crate) use reader::{AtHead, AtVersion};
pub use tree::{MPT, MerklePatricia};
pub use witness::{MissingAccounts, Reads, WitnessState};

//! Ethereum state in Merkle-Patricia tries: storage tries below the accounts of one trie, keyed by Keccak-256.

mod compute;
mod dump;
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
mod undo;
mod verify;
mod witness;

pub(crate) use compute::compute;
pub(crate) use dump::dump;
pub(crate) use keys::{LAYOUT, TABLES};
pub(crate) use leaves::{account_leaves, root_of_leaves, storage_root};
pub use load::{LoadAccount, LoadSlot, LoadSource, state_root};
pub(crate) use nearest::{account_from, slot_from};
pub(crate) use pending::PendingRoots;
pub use proof::{AccountProof, FalseProof, SlotProof};
pub(crate) use reader::{
    AtHead, AtVersion, account, accounts_named, flat_keys, has_storage, storage,
};
pub(crate) use rebuild::flat_root;
pub(crate) use undo::{Undone, writes_back};
pub(crate) use verify::check_state;
pub use witness::{MissingAccounts, Reads, WitnessState};

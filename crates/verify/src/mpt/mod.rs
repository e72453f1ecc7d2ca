//! Merkle-Patricia: keys are Keccak-256 of names, an account's leaf is the RLP of its fields and its storage root
//! (Yellow Paper 4.1), proofs have the form of `eth_getProof` (EIP-1186).

mod compact;
mod embedding;
mod forms;
mod keys;
mod leaf;
mod pending;
mod proof;
mod references;
mod state_root;
mod witness;
mod witness_nodes;

pub use arbor_tree::{Path, Position};
pub use arbor_tree_mpt::shortened;
pub use embedding::{KeyedChange, KeyedSlot, keyed, tree_updates};
pub use forms::{ManyAccounts, VERIFY};
pub use keys::{BY_KECCAK, account_key, slot_key};
pub use leaf::{AccountRecord, SlotRecord};
pub use pending::{Base, PendingRoots};
pub use proof::{AccountProof, FalseProof, SlotProof};
pub use references::References;
pub use state_root::{
    account_leaves, account_part, records, root_of_leaves, state_root, storage_root,
};
pub use witness::{CorruptLeaf, MissingAccounts, MissingNode, UnreadWitness, WitnessState};
pub use witness_nodes::{TouchedNames, witness_nodes};

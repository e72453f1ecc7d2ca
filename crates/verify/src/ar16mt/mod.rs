//! Ethereum state in zkSync's tree, AR16MT: the keys of accounts and slots, and the proofs of what they hold.
//!
//! The tree maps keys of 256 bits to values of 32 bytes, and gives each leaf an index. A key is zkSync's hash of a
//! contract's address and a slot of its storage, so a slot needs no embedding of its own. What else an account has lies
//! beside the storage of those system contracts that zkSync has for it, each under the account's address as the slot; a
//! byte before it tells it from that storage, since on other chains these addresses are anybody's:
//!
//! ```text
//! key           H(t, 11 zero bytes, contract, slot), read with the least significant byte first: its last byte comes first in the tree;
//!               t is 0 for a slot and 1 for the others
//! nonce         contract 0x8003: byte 0 is 1 while the account exists, byte 1 is 1 if it has code, bytes 24 to 31 are the nonce
//! balance       contract 0x800a
//! code hash     contract 0x8002: Keccak-256 of the code, zero without code
//! slot          the account itself is the contract
//! ```
//!
//! - [`LeafName`] names a leaf; [`LeafName::key`] is its place in the tree.
//! - [`StateProof`] proves an account and slots with a path for each leaf, [`StateMultiproof`] several accounts by one
//!   proof, [`RangeProof`] all leaves between two keys, [`KeysProof`] keys without accounts.

mod fields;
mod forms;
mod keys;
mod multi;
mod names;
mod proof;
mod range;
mod record;

pub use arbor_tree_ar16mt::{
    Blake2s, Entry, LogsError, MultiproofError, RangeError, StorageLog, StorageLogs,
};
pub use fields::{Header, account_of, fields};
pub use forms::VERIFY;
pub use keys::KeysProof;
pub use multi::{MalformedMultiproof, StateMultiproof, leaves_of};
pub use names::LeafName;
pub use proof::{ABSENT, FalseLeaf, LeafProof, MalformedProof, SlotProof, StateProof};
pub use range::{RangeEntry, RangeProof};
pub use record::{LeafRecord, leaf_record, padded, read_leaf, trimmed};

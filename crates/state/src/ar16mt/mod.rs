//! Ethereum state in zkSync's tree, AR16MT.
//!
//! The tree maps keys of 256 bits to values of 32 bytes, and gives each leaf an index. A key is zkSync's hash of a contract's address and a
//! slot of its storage, so a slot needs no embedding of its own. What else an account has lies beside the storage of those system contracts that zkSync has for
//! it, each under the account's address as the slot; a byte before it tells it from that storage, since on other chains these addresses are anybody's:
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
//! Integers are big-endian. A leaf comes into being when it gets a value other than zero first, and stays: what is removed from the state leaves zeros behind.
//! Leaves that a block brings are numbered on from the leaves before, by ascending address, and of one address as listed above, slots ascending. zkSync's own
//! chain packs other fields into some of these slots, and hashes the address for its balance and nonce; the commitment to code is in
//! its tree likewise, the code beside it.
//!
//! - [`LeafName`] names a leaf; [`LeafName::key`] is its place in the tree.
//! - [`StateProof`] proves an account and slots with a path for each leaf, [`StateMultiproof`] several accounts by one proof, [`RangeProof`] all leaves between two keys.
//! - [`LeafWrite`] writes a leaf by its key alone, below any account: see [`State::compute_leaves`](crate::State::compute_leaves).
//!
//! One flat table has the leaves by key, so that reading a slot takes one hash. A table of names leads from addresses to the slots that have leaves.

mod compute;
mod history;
mod load;
mod multi;
mod names;
mod nearest;
mod nodes;
mod parts;
mod prove;
mod range;
mod reader;
mod records;
pub mod recovery;
mod settings;
mod tree;
mod verify;

use arbor_store::Table;
use arbor_versions::{TableKind, TableSpec};

use crate::tables::COMMON;

pub use arbor_tree_ar16mt::{
    Blake2s, Entry, LogsError, MultiproofError, OperationProof, OperationProofs, RangeError,
    StorageLog, StorageLogs, TreeStats,
};
pub use compute::LeafWrite;
pub(crate) use compute::{compute_leaves, compute_proven};
pub use multi::{AccountSlots, MalformedMultiproof, ProvenAccount, StateMultiproof};
pub(crate) use multi::{prove_many, storage_logs};
pub use names::LeafName;
pub(crate) use prove::prove_account;
pub use prove::{FalseLeaf, LeafProof, MalformedProof, SlotProof, StateProof};
pub(crate) use range::prove_range;
pub use range::{RangeEntry, RangeProof};
use reader::flat_root;
pub use settings::{Ar16mt, HashChoice};
pub use tree::AR16MT;

/// Leaves by key.
const LEAVES: Table = Table(1);
/// The names of accounts and slots that have leaves: an address, or an address and a slot (32 bytes big-endian). Under them are the
/// first bytes of the leaf's key, to tell damage by.
const NAMES: Table = Table(2);
/// Bytes of a leaf's key that are kept under its name.
const KEY_BYTES: usize = 4;
/// Nodes by length and path.
const NODES: Table = Table(3);
/// The number of the next leaf.
const COUNTER: Table = Table(4);
/// The only key there.
const NEXT_INDEX: &[u8] = b"next";

/// The tables of the state.
pub(crate) const TABLES: [TableSpec; 5] = [
    TableSpec {
        table: LEAVES,
        name: "leaves",
        kind: TableKind::Flat,
    },
    TableSpec {
        table: NAMES,
        name: "names",
        kind: TableKind::Blobs,
    },
    TableSpec {
        table: NODES,
        name: "nodes",
        kind: TableKind::Nodes,
    },
    TableSpec {
        table: COUNTER,
        name: "counter",
        kind: TableKind::Flat,
    },
    COMMON[2],
];

//! Ethereum state in zkSync's tree, AR16MT.
//!
//! The keys of accounts and slots, and their values, are told in [`arbor_verify::ar16mt`].
//!
//! Integers are big-endian. A leaf comes into being when it gets a value other than zero first, and stays: what is removed from the state leaves zeros behind.
//! Leaves that a block brings are numbered on from the leaves before, by ascending address, and of one address as listed above, slots ascending. zkSync's own
//! chain packs other fields into some of these slots, and hashes the address for its balance and nonce; the commitment to code is in
//! its tree likewise, the code beside it.
//!
//! - [`LeafWrite`] writes a leaf by its key alone, below any account: see [`Leaves`](arbor_state_tree::Leaves).
//!
//! One flat table has the leaves by key, so that reading a slot takes one hash. A table of names leads from addresses to the slots that have leaves.

mod build;
mod by_name;
mod compute;
mod history;
mod inspect;
mod key_value;
mod load;
#[cfg(feature = "conformance")]
mod model;
mod multi;
mod named_groups;
mod names;
mod nodes;
mod parts;
mod prove;
mod range;
mod reader;
mod records;
mod settings;
mod tree;
mod verify;

use arbor_store::Table;
use arbor_versions::{TableKind, TableSpec};

use arbor_state_tree::{COMMON, StateError};

pub use arbor_accounts::AccountSlots;
pub use arbor_state_tree::LeafWrite;
pub use arbor_verify::ar16mt::*;
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
pub(crate) const TABLES: [TableSpec; 6] = [
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
    COMMON[3],
];

/// An error of the pure tree, as the state has it.
pub(crate) fn failed(error: impl std::error::Error + Send + Sync + 'static) -> StateError {
    StateError::of_tree(AR16MT.name, error)
}

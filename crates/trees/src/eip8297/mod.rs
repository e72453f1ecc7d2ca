//! Ethereum state in the partitioned binary tree of EIP-8297 (revision of 6 August 2026).
//!
//! Where accounts, slots and code lie is written in [`arbor_verify::eip8297`], what is stored of
//! the tree in `arbor_tree_eip8297`. The flat tables are keyed by plain names, so that execution
//! reads without any hash. Zero is absence, so what is gone has no record, and the tree is a
//! function of the flat tables.
//!
//! Code belongs to its hash, and its leaves are there as long as an account has it. A flat table
//! has the number of accounts for each such code: the first one brings the leaves, the last one
//! takes them away. Delegations have no leaves of code and are not counted.

mod build;
mod changes;
mod compute;
mod entries;
mod inspect;
mod key_value;
mod leaves;
mod load;
#[cfg(feature = "conformance")]
mod model;
mod ordered;
mod prove;
mod reader;
mod records;
mod settings;
mod tree;
mod verify;

use arbor_state_tree::{COMMON, StateError};
use arbor_store::Table;
use arbor_versions::{TableKind, TableSpec};

use crate::binary::NODES_TABLE;

pub use arbor_tree_eip8297::{Packing, TreeError};
pub use arbor_verify::eip8297::*;
pub use settings::Eip8297;
pub use tree::EIP8297;

/// Codes that have leaves, with the numbers of accounts that have them.
const CODE_USERS: Table = Table(4);

/// The tables of the state. Accounts are keyed by address; slots by address and slot number (32
/// bytes, big-endian); users of a code by its hash.
pub(crate) const TABLES: [TableSpec; 6] = [
    COMMON[0],
    COMMON[1],
    NODES_TABLE,
    TableSpec {
        table: CODE_USERS,
        name: "code users",
        kind: TableKind::Flat,
    },
    COMMON[2],
    COMMON[3],
];

/// An error of the pure tree, as the state has it.
pub(crate) fn failed(error: impl std::error::Error + Send + Sync + 'static) -> StateError {
    StateError::of_tree(settings::NAME, error)
}

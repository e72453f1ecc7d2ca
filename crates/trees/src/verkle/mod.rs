//! Ethereum state in a Verkle tree, after EIP-6800.
//!
//! Where accounts, slots and code lie, the flat records and the leaves that follow from them are
//! those of all trees of stems: [`arbor_verify::stems`], and the folder `stems/` beside this one.
//! Here are nodes, proofs and settings.

mod build;
mod compute;
mod inspect;
mod load;
#[cfg(feature = "conformance")]
mod model;
mod nodes;
mod prove;
mod settings;
mod tree;
mod updates;
mod verify;

use arbor_store::Table;
pub use arbor_tree_verkle::{Form, TreeError};
pub use arbor_verify::verkle::*;
use arbor_versions::{TableKind, TableSpec};

use arbor_state_tree::{COMMON, StateError};

pub use arbor_state_tree::Touched;
pub use settings::{Verkle, VerkleSettings};
pub use tree::{VERKLE, VERKLE_2023};

/// Nodes by depth and path.
const NODES: Table = Table(3);
/// Layout of flat records and node records; a change of either raises it. Databases of layout 1 had the names of stems besides, those of layout 2 both
/// coordinates and the image of internal nodes.
pub(crate) const LAYOUT: u32 = 3;

/// The tables of a Verkle state. Accounts are keyed by address; slots by address and slot number (32 bytes big-endian).
pub(crate) const TABLES: [TableSpec; 5] = [
    COMMON[0],
    COMMON[1],
    TableSpec {
        table: NODES,
        name: "nodes",
        kind: TableKind::Nodes,
    },
    COMMON[2],
    COMMON[3],
];

/// An error of the pure tree, as the state has it.
pub(crate) fn failed(error: impl std::error::Error + Send + Sync + 'static) -> StateError {
    StateError::of_tree(VERKLE.name, error)
}

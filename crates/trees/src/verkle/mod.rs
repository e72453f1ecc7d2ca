//! Ethereum state in a Verkle tree, after EIP-6800.
//!
//! Where accounts, slots and code lie is told in [`arbor_verify::verkle`].
//!
//! The tree cannot forget: what is removed from the state leaves zeros behind. The flat tables are keyed by plain names, so that execution
//! reads without any hash, and have a record for whatever has a leaf; so changes of leaves follow from changes of flat records alone, forwards
//! and backwards. Nothing stored leads from a stem back to its name: no update and no proof asks for that, and whoever wants the leaves in the tree's order
//! hashes all names and sorts them (`verify`).
mod changes;
mod compute;
mod inspect;
mod load;
#[cfg(feature = "conformance")]
mod model;
mod nearest;
mod nodes;
mod ordered;
mod prove;
mod reader;
mod records;
mod settings;
mod stems;
mod tree;
mod values;
mod verify;

use arbor_store::Table;
pub use arbor_tree_verkle::{Form, TreeError};
pub use arbor_verify::verkle::*;
use arbor_versions::{TableKind, TableSpec};

use arbor_state_tree::COMMON;

pub use arbor_state_tree::BlockLeaves;
pub use arbor_state_tree::Touched;
use reader::flat_root;
use reader::stored_code;
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

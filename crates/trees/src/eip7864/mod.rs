//! Ethereum state in the unified binary tree of EIP-7864.
//!
//! Where accounts, slots and code lie, the flat records and the leaves that follow from them are
//! those of all trees of stems: [`arbor_verify::stems`], and the folder `stems/` beside this one.
//! Records of nodes are those of all binary trees: the folder `binary/`. Here are what joins the
//! two, proofs, and the rows of the revisions.

mod build;
mod compute;
mod inspect;
mod load;
#[cfg(feature = "conformance")]
mod model;
mod prove;
mod settings;
mod tree;
mod updates;
mod verify;

use arbor_state_tree::{COMMON, StateError};
use arbor_versions::TableSpec;

use crate::binary::NODES_TABLE;

pub use arbor_tree_eip7864::{Packing, TreeError};
pub use arbor_verify::eip7864::*;
pub use settings::Eip7864;
pub use tree::{EIP7864, EIP7864_A};

/// The tables of the state. Accounts are keyed by address; slots by address and slot number (32
/// bytes, big-endian).
pub(crate) const TABLES: [TableSpec; 5] = [COMMON[0], COMMON[1], NODES_TABLE, COMMON[2], COMMON[3]];

/// An error of the pure tree, as the state has it.
pub(crate) fn failed(error: impl std::error::Error + Send + Sync + 'static) -> StateError {
    StateError::of_tree(EIP7864.stored_as.tree, error)
}

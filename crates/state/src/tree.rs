//! The trees that a state can be committed to.

use alloy_primitives::{Address, B256, U256};
use arbor_tree_mpt::EMPTY_ROOT;
use arbor_versions::{Identity, TableSpec};

use crate::flat::Flat;
use crate::{Account, Network, StateError, mpt};

/// The tree that commits to a state.
///
/// Everything of a state that depends on the tree is reached through this choice: how flat records are keyed, what changes make of
/// nodes, how nodes are checked and rebuilt.
#[derive(Clone, Debug)]
pub enum Tree {
    /// Merkle-Patricia tries, hashed with Keccak-256: what headers commit to.
    MerklePatricia,
}

/// Layout of the flat records and node records; a change of either raises it.
const LAYOUT: u32 = 1;

impl Tree {
    /// What a database of this tree says that it is.
    pub(crate) fn identity(&self, network: Network) -> Identity {
        let (tree, revision, hash) = match self {
            Self::MerklePatricia => ("merkle-patricia", "yellow-paper", "keccak256"),
        };
        Identity {
            tree: tree.into(),
            revision: revision.into(),
            hash: hash.into(),
            layout: LAYOUT,
            chain_id: network.chain_id,
            genesis: network.genesis_hash.0,
        }
    }

    pub(crate) fn tables(&self) -> &'static [TableSpec] {
        match self {
            Self::MerklePatricia => &mpt::TABLES,
        }
    }

    pub(crate) fn empty_root(&self) -> B256 {
        match self {
            Self::MerklePatricia => EMPTY_ROOT.into(),
        }
    }

    pub(crate) fn account(
        &self,
        flat: &dyn Flat,
        address: Address,
    ) -> Result<Option<Account>, StateError> {
        match self {
            Self::MerklePatricia => mpt::account(flat, address),
        }
    }

    pub(crate) fn storage(
        &self,
        flat: &dyn Flat,
        address: Address,
        slot: U256,
    ) -> Result<U256, StateError> {
        match self {
            Self::MerklePatricia => mpt::storage(flat, address, slot),
        }
    }

    pub(crate) fn has_storage(
        &self,
        flat: &dyn Flat,
        address: Address,
    ) -> Result<bool, StateError> {
        match self {
            Self::MerklePatricia => mpt::has_storage(flat, address),
        }
    }
}

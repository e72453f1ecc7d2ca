//! The trees that a state can be committed to.

use alloy_primitives::{Address, B256, U256};
use arbor_store::Table;
use arbor_tree_mpt::EMPTY_ROOT;
use arbor_versions::{Identity, TableSpec};

use crate::ar16mt::{self, Ar16mt};
use crate::flat::{Ahead, Flat, FlatKey};
use crate::verkle::{self, HeaderLayout, Verkle, VerkleSettings};
use crate::{Account, Network, StateError, mpt};

/// The tree that commits to a state.
///
/// Everything of a state that depends on the tree is reached through this choice: how flat records are keyed, what changes make of
/// nodes, how nodes are checked and rebuilt.
#[derive(Clone, Debug)]
pub enum Tree {
    /// Merkle-Patricia tries, hashed with Keccak-256: what headers commit to.
    MerklePatricia,
    /// The tree of EIP-6800, committed to with Pedersen commitments. Its roots are in no header.
    Verkle(Verkle),
    /// zkSync's binary tree, hashed with BLAKE2s. Its roots are in no header.
    Ar16mt(Ar16mt),
}

pub(crate) const MERKLE_PATRICIA: &str = "merkle-patricia";
const YELLOW_PAPER: &str = "yellow-paper";
pub(crate) const VERKLE: &str = "verkle";
pub(crate) const AR16MT: &str = "ar16mt";
/// How accounts and slots lie in AR16MT: the tree itself has one form.
const ACCOUNTS_BESIDE_STORAGE: &str = "accounts-beside-storage-1";

/// Layout of the flat records and node records; a change of either raises it.
const LAYOUT: u32 = 1;

impl Tree {
    /// The tree of a database with this identity, a Verkle tree with these settings but for its layout; `None` for a tree or a revision that
    /// is not known here.
    pub fn of(identity: &Identity, settings: VerkleSettings) -> Option<Self> {
        let mut layouts = HeaderLayout::ALL.into_iter();
        match (&identity.tree[..], &identity.revision[..]) {
            (MERKLE_PATRICIA, YELLOW_PAPER) => Some(Self::MerklePatricia),
            (VERKLE, revision) => {
                let layout = layouts.find(|layout| layout.name() == revision)?;
                Some(Self::Verkle(Verkle::new(VerkleSettings {
                    layout,
                    ..settings
                })))
            }
            (AR16MT, ACCOUNTS_BESIDE_STORAGE) => {
                let hash = identity.hash.parse().ok()?;
                Some(Self::Ar16mt(Ar16mt {
                    hash,
                    ..Ar16mt::default()
                }))
            }
            _ => None,
        }
    }

    /// Whether headers carry this tree's roots, and receipts from before Byzantium.
    pub fn is_in_headers(&self) -> bool {
        matches!(self, Self::MerklePatricia)
    }

    /// Whether the roots of consecutive blocks are computed faster together than one by one. A node's commitment changes by a sum that needs no other node's as long as its images
    /// are known, so that all blocks' sums of a level are one batch; a hash has to be computed after each block.
    pub(crate) fn computes_together(&self) -> bool {
        matches!(self, Self::Verkle(verkle) if verkle.settings().together)
    }

    /// What a database of this tree says that it is.
    pub(crate) fn identity(&self, network: Network) -> Identity {
        let (tree, revision, hash) = match self {
            Self::MerklePatricia => (MERKLE_PATRICIA, YELLOW_PAPER, "keccak256"),
            Self::Verkle(verkle) => (VERKLE, verkle.settings().layout.name(), "pedersen"),
            Self::Ar16mt(ar16mt) => (AR16MT, ACCOUNTS_BESIDE_STORAGE, ar16mt.hash.name()),
        };
        Identity {
            tree: tree.into(),
            revision: revision.into(),
            hash: hash.into(),
            layout: match self {
                Self::MerklePatricia => mpt::LAYOUT,
                Self::Ar16mt(_) => LAYOUT,
                Self::Verkle(_) => verkle::LAYOUT,
            },
            chain_id: network.chain_id,
            genesis: network.genesis_hash.0,
        }
    }

    pub(crate) fn tables(&self) -> &'static [TableSpec] {
        match self {
            Self::MerklePatricia => &mpt::TABLES,
            Self::Verkle(_) => &verkle::TABLES,
            Self::Ar16mt(_) => &ar16mt::TABLES,
        }
    }

    pub(crate) fn empty_root(&self) -> B256 {
        match self {
            Self::MerklePatricia => EMPTY_ROOT.into(),
            Self::Verkle(_) => B256::ZERO,
            Self::Ar16mt(ar16mt) => ar16mt.empty_root(),
        }
    }

    pub(crate) fn account(
        &self,
        flat: &dyn Flat,
        address: Address,
    ) -> Result<Option<Account>, StateError> {
        match self {
            Self::MerklePatricia => mpt::account(flat, address),
            Self::Verkle(_) => verkle::account(flat, address),
            Self::Ar16mt(_) => ar16mt::account(flat, address),
        }
    }

    /// Accounts in the order of their addresses, whose records are read together.
    pub(crate) fn accounts(
        &self,
        flat: &dyn Flat,
        addresses: &[Address],
    ) -> Result<Vec<Option<Account>>, StateError> {
        match self {
            Self::MerklePatricia => mpt::accounts_named(flat, addresses),
            Self::Verkle(_) => verkle::accounts_named(flat, addresses),
            Self::Ar16mt(_) => ar16mt::accounts_named(flat, addresses),
        }
    }

    /// The keys of what is known of these accounts and slots in the flat tables.
    pub(crate) fn flat_keys(
        &self,
        accounts: &[Address],
        slots: &[(Address, U256)],
    ) -> [(Table, Vec<FlatKey>); 2] {
        match self {
            Self::MerklePatricia => mpt::flat_keys(accounts, slots),
            Self::Verkle(_) => verkle::flat_keys(accounts, slots),
            Self::Ar16mt(_) => ar16mt::flat_keys(accounts, slots),
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
            Self::Verkle(_) => verkle::storage(flat, address, slot),
            Self::Ar16mt(_) => ar16mt::storage(flat, address, slot),
        }
    }

    /// The Merkle-Patricia root of the flat tables, computed on the threads of the caller's pool.
    pub(crate) fn flat_root(&self, flat: &Ahead<'_>) -> Result<B256, StateError> {
        match self {
            Self::MerklePatricia => mpt::flat_root(flat),
            Self::Verkle(_) => verkle::flat_root(flat),
            Self::Ar16mt(_) => ar16mt::flat_root(flat),
        }
    }

    pub(crate) fn has_storage(
        &self,
        flat: &dyn Flat,
        address: Address,
    ) -> Result<bool, StateError> {
        match self {
            Self::MerklePatricia => mpt::has_storage(flat, address),
            Self::Verkle(_) => verkle::has_storage(flat, address),
            Self::Ar16mt(_) => ar16mt::has_storage(flat, address),
        }
    }
}

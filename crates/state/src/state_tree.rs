//! What a tree supplies to the state over it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use arbor_store::{Table, Write};
use arbor_tree::Hash;
use arbor_versions::{Identity, Meta, Version, Versions, View};

use crate::flat::{Ahead, Flat, FlatKey, Lookup};
use crate::plain::WithSlots;
use crate::verify::Check;
use crate::{Account, Computed, Head, LoadSource, Network, StateChanges, StateError, TreeKind};

/// A tree that commits to accounts, shared by everything that reads or writes one state.
pub type Tree = Arc<dyn StateTree>;

/// Nodes of an older version as far as they differ from those of the latest, in a form that only the
/// tree knows.
pub type Nodes = Box<dyn Any + Send + Sync>;

/// The state at a retained version, as a tree reads it.
pub trait Then: Flat + Sync {
    /// The version's block and root.
    fn meta(&self) -> &Meta;

    /// The latest version, which this one's records and nodes lie over.
    fn view(&self) -> View<'_>;

    /// The nodes of this version, rebuilt at the first call.
    fn nodes(&self) -> Result<&Nodes, StateError>;

    /// Whether the nodes are rebuilt already, or worth being rebuilt: at the first call it is not known
    /// whether there will be a second proof.
    fn is_proven_again(&self) -> bool;
}

/// Accounts with their slots, in the order of a tree's flat tables.
pub type Accounts<'a> = Box<dyn Iterator<Item = Result<WithSlots, StateError>> + 'a>;

/// A commitment scheme over accounts: where records lie in flat tables, what changes make of the
/// nodes, and how nodes are checked and rebuilt. Nothing else of a state depends on the tree.
///
/// All methods are required, so that the compiler names what a new tree lacks.
pub trait StateTree: Any + fmt::Debug + Send + Sync {
    /// The row of this tree.
    fn kind(&self) -> &'static TreeKind;

    /// The hash function of this instance, by its name in a database's identity.
    fn hash(&self) -> &'static str;

    /// The root of a tree without leaves.
    fn empty_root(&self) -> B256;

    /// Whether the roots of consecutive blocks are computed faster together than one by one.
    fn computes_together(&self) -> bool;

    /// Whether every version is to be written to the store at once.
    fn writes_through(&self) -> bool;

    /// Makes the tables that computing needs, if there are any. `placed` is called once all their
    /// memory is allocated, before they are filled.
    fn prepare(&self, placed: Box<dyn FnOnce() + '_>);

    /// Reads an account.
    fn account(&self, flat: &dyn Flat, address: Address) -> Result<Option<Account>, StateError>;

    /// Reads accounts, in the order of their addresses, all records together.
    fn accounts(
        &self,
        flat: &dyn Flat,
        addresses: &[Address],
    ) -> Result<Vec<Option<Account>>, StateError>;

    /// Returns the keys of what the flat tables have of these accounts and slots.
    fn flat_keys(
        &self,
        accounts: &[Address],
        slots: &[(Address, U256)],
    ) -> [(Table, Vec<FlatKey>); 2];

    /// Reads a slot, zero if absent.
    fn storage(&self, flat: &dyn Flat, address: Address, slot: U256) -> Result<U256, StateError>;

    /// Returns whether an account has a slot that is not zero.
    fn has_storage(&self, flat: &dyn Flat, address: Address) -> Result<bool, StateError>;

    /// Lists all accounts with their slots that are not zero, in the order of the flat tables.
    fn listing<'a>(&'a self, flat: &'a dyn Flat) -> Result<Accounts<'a>, StateError>;

    /// Computes the Merkle-Patricia root of the flat tables on the threads of the caller's pool,
    /// without reading a node.
    fn flat_root(&self, flat: &Ahead<'_>) -> Result<B256, StateError>;

    /// Returns the first account whose key is `from` or above, in the order of the flat tables.
    fn account_from(&self, view: View<'_>, from: &Hash) -> Result<Option<Address>, StateError>;

    /// Returns a slot of the first account with storage whose key is `account` or above: the first
    /// slot whose key is `slot` or above, else the account's first.
    fn slot_from(
        &self,
        view: View<'_>,
        account: &Hash,
        slot: &Hash,
    ) -> Result<Option<(Address, U256)>, StateError>;

    /// Computes what the changes of consecutive blocks, the first on top of the latest version, make
    /// of the state: a root after each. A tree that [computes together](Self::computes_together) may
    /// put the nodes of all into the last; any other is given one block at a time.
    fn compute(
        &self,
        view: View<'_>,
        changes: &[&StateChanges],
    ) -> Result<Vec<Computed>, StateError>;

    /// Fills an empty database with a whole state; see [`State::load`](crate::State::load).
    fn load(
        &self,
        versions: &mut Versions,
        source: &dyn LoadSource,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Computed, StateError>;

    /// The nodes of the latest version, to be led to older ones by [`step`](Self::step).
    fn nodes(&self, view: View<'_>) -> Nodes;

    /// Leads nodes on to the version `to`, of which `then` has the flat records that differ from those
    /// here, and checks the root. `now` reads the flat records as they are here.
    ///
    /// # Errors
    /// [`StateError::RebuiltRoot`] if the root is another; the store's errors; records that cannot be
    /// read.
    fn step(
        &self,
        view: View<'_>,
        nodes: &mut Nodes,
        to: &Meta,
        then: &[Write],
        now: Lookup<'_>,
    ) -> Result<(), StateError>;

    /// Returns the writes of nodes that lead from the latest version back to the version `to`, whose
    /// flat records `undo` has, where they differ.
    fn writes_back(
        &self,
        view: View<'_>,
        to: &Meta,
        undo: &[Write],
    ) -> Result<Vec<Write>, StateError>;

    /// Rebuilds all nodes from the flat tables and compares them with the stored ones; returns the
    /// Merkle-Patricia root of the flat tables.
    fn check(&self, check: &Check<'_>, head: Head<'_>) -> Result<B256, StateError>;

    /// Rebuilds every retained version below the head from its undo records and compares the roots.
    fn check_history(
        &self,
        check: &Check<'_>,
        oldest: Version,
        newest: Version,
    ) -> Result<(), StateError>;
}

impl dyn StateTree {
    /// What a database with this tree says that it is.
    pub fn identity(&self, network: Network) -> Identity {
        let kind = self.kind();
        Identity {
            tree: kind.stored_as.tree.into(),
            revision: kind.stored_as.revision.into(),
            hash: self.hash().into(),
            layout: kind.layout,
            chain_id: network.chain_id,
            genesis: network.genesis_hash.0,
        }
    }

    /// Returns this tree as one of a given type; `None` if it is another.
    pub fn downcast<T: StateTree>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// Computes one block, for trees whose blocks are each computed alone.
pub(crate) fn one_by_one(
    changes: &[&StateChanges],
    compute: impl FnOnce(&StateChanges) -> Result<Computed, StateError>,
) -> Result<Vec<Computed>, StateError> {
    match changes {
        [] => Ok(Vec::new()),
        [changes] => Ok(vec![compute(changes)?]),
        several => Err(StateError::Read(format!(
            "{} blocks to compute at once: this tree computes them one by one",
            several.len()
        ))),
    }
}

/// Returns a tree as one of the type that something is done with alone.
///
/// # Errors
/// [`StateError::OtherTree`] if it is another.
pub(crate) fn wanted<'a, T: StateTree>(
    tree: &'a Tree,
    kind: &'static TreeKind,
) -> Result<&'a T, StateError> {
    let (wanted, found) = (kind.name, tree.kind().name);
    tree.downcast()
        .ok_or(StateError::OtherTree { wanted, found })
}

/// The nodes of an older version as the tree that made them knows them.
pub(crate) fn own<T: 'static>(nodes: &Nodes) -> &T {
    nodes
        .downcast_ref()
        .expect("invariant: nodes come back to the tree that made them")
}

/// Like [`own`], but to be changed.
pub(crate) fn own_mut<T: 'static>(nodes: &mut Nodes) -> &mut T {
    nodes
        .downcast_mut()
        .expect("invariant: nodes come back to the tree that made them")
}

//! What a tree supplies to the state over it.

mod kind;
mod moves;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes};
use arbor_store::{Table, Write};
use arbor_tree::Hash;
use arbor_verify::Proof;
use arbor_versions::{Identity, Meta, TableSpec, Version, Versions, View};

pub use kind::{
    BlockMemory, Registry, RootPlace, RootThreads, Scope, Setting, SettingError, Settings,
    StoredAs, Technique, TreeKind, Zeros,
};
pub use moves::{Cursor, Moved, Moves, OfOneTree};

use crate::Build;
use crate::check::Check;
use crate::checked_part::CheckedPart;
use crate::flat::{Flat, Lookup};
use crate::flat_records::FlatRecords;
use crate::inspect::{Seen, StoredRecord};
use crate::key_value::{KEY_VALUE_REVISION, KeyValueEntry, KeyValueWrite};
use crate::{
    AccountOrder, AccountSlots, AccountSource, Computed, IntermediateRoots, Network, Reads,
    StateChanges, StateError,
};
use crate::{LeafLogs, LeafStats, LeafWrite, ProvenLeaves};

/// A tree that commits to accounts, shared by everything that reads or writes one state.
pub type Tree = Arc<dyn StateTree>;

/// Nodes of an older version as far as they differ from those of the latest, in a form that only the
/// tree knows.
pub type Nodes = Box<dyn Any + Send + Sync>;

/// The state at a retained version, as a tree reads it.
pub trait Then: Flat + Sync {
    /// The version's block and root.
    fn meta(&self) -> &Meta;

    /// The version that this one's records and nodes lie over: the latest, or one whose nodes are kept. [`nodes`](Self::nodes) may choose
    /// another, so whoever lays them over this asks for them first.
    fn view(&self) -> View<'_>;

    /// The nodes of this version, rebuilt at the first call.
    fn nodes(&self) -> Result<&Nodes, StateError>;

    /// Whether the nodes are rebuilt already, or worth being rebuilt: at the first call it is not known
    /// whether there will be a second proof.
    fn is_proven_again(&self) -> bool;
}

/// A commitment scheme over accounts: where records lie in flat tables, what changes make of the
/// nodes, and how nodes are checked and rebuilt. Nothing else of a state depends on the tree.
///
/// What every tree has is required, so that the compiler names what a new tree lacks. What only some
/// trees have is absent unless a tree supplies it.
pub trait StateTree: Any + fmt::Debug + Send + Sync {
    /// The row of this tree.
    fn kind(&self) -> &'static TreeKind;

    /// The hash function of this instance, by its name in a database's identity.
    fn hash(&self) -> &'static str;

    /// The root of a tree without leaves.
    fn empty_root(&self) -> B256;

    /// Whether the roots of consecutive blocks are computed faster together than one by one.
    fn computes_together(&self) -> bool {
        false
    }

    /// The move to another tree, if this is a state that moves.
    fn moves(&self) -> Option<&dyn Moves> {
        None
    }

    /// Where the root of the block after the latest one of a view is found besides the database.
    fn root_place(&self, view: View<'_>) -> Result<RootPlace, StateError> {
        let _ = view;
        Ok(self.kind().roots)
    }

    /// Whether every version is to be written to the store at once.
    fn writes_through(&self) -> bool {
        false
    }

    /// Makes the tables that computing needs, if there are any. `placed` is called once all their
    /// memory is allocated, before they are filled.
    fn prepare(&self, placed: Box<dyn FnOnce() + '_>) {
        placed();
    }

    /// The way in which accounts and slots lie in flat tables.
    fn records(&self) -> &dyn FlatRecords;

    /// Returns the order in which accounts are listed and loaded: that of the flat tables.
    fn order(&self) -> &'static AccountOrder {
        self.records().order()
    }

    /// Returns the bytes of memory for accounts that are put into another order, for the Merkle-Patricia root.
    fn sort_bytes(&self) -> usize;

    /// Computes what the changes of consecutive blocks, the first on top of the latest version, make
    /// of the state: a root after each. A tree that [computes together](Self::computes_together) may
    /// put the nodes of all into the last; any other is given one block at a time.
    fn compute(
        &self,
        view: View<'_>,
        changes: &[&StateChanges],
    ) -> Result<Vec<Computed>, StateError>;

    /// Fills an empty database with a whole state, and returns what makes its first version. The
    /// source has the tree's [order](Self::order).
    fn load(
        &self,
        versions: &mut Versions,
        source: &dyn AccountSource,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Computed, StateError>;

    /// The way to build a whole state in parts, if the tree has one: an interrupted build then goes on.
    fn build(&self) -> Option<&dyn Build> {
        None
    }

    /// Proves an account and some of its slots, present or absent.
    fn prove(&self, then: &dyn Then, account: &AccountSlots) -> Result<Box<dyn Proof>, StateError> {
        self.prove_together(then, std::slice::from_ref(account))
    }

    /// Proves several accounts and slots of them, present or absent, by one proof.
    fn prove_together(
        &self,
        then: &dyn Then,
        accounts: &[AccountSlots],
    ) -> Result<Box<dyn Proof>, StateError>;

    /// Writing and proving leaves by their keys alone, if the tree can.
    fn leaves(&self) -> Option<&dyn Leaves> {
        None
    }

    /// Keys and values without accounts, if the tree can commit to them.
    fn key_value(&self) -> Option<&dyn KeyValue> {
        None
    }

    /// Witnesses of all that a block touches, if the tree has them.
    fn witnesses(&self) -> Option<&dyn Witnesses> {
        None
    }

    /// Roots inside a block, for receipts from before Byzantium, if the tree is the one that those mean.
    fn inner_roots(&self) -> Option<&dyn InnerRoots> {
        None
    }

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

    /// Whether two records of a node say the same, as far as each says anything: a tree may have more than one form of them. They may be damaged.
    ///
    /// # Errors
    /// A record that cannot be read.
    fn is_same_node(&self, _key: &[u8], records: [&[u8]; 2]) -> Result<bool, StateError> {
        Ok(records[0] == records[1])
    }

    /// Checks what belongs to some first bytes, which ascend: rebuilds their nodes from the flat tables and compares these
    /// with the stored ones, and reads every record whose key begins with one of the bytes. A record with an empty key
    /// belongs to the byte 0.
    fn check_part(&self, check: &Check<'_>, firsts: &[u8]) -> Result<CheckedPart, StateError>;

    /// Checks what all parts together must give: the nodes above them, the root, and that there are no other nodes.
    /// The parts ascend and have every first byte once. Returns the Merkle-Patricia root of the flat tables; zero if
    /// there is none.
    fn check_join(&self, check: &Check<'_>, parts: Vec<CheckedPart>) -> Result<B256, StateError>;

    /// Rebuilds every retained version below the head from its undo records and compares the roots.
    fn check_history(
        &self,
        check: &Check<'_>,
        oldest: Version,
        newest: Version,
    ) -> Result<(), StateError> {
        check.walk_back(self, oldest, newest)
    }

    /// Reports what a record of one of the tree's tables stands for: accounts, slots and nodes. A record
    /// of another kind stands for nothing.
    ///
    /// # Errors
    /// A record that is not what its table promises.
    fn inspect(
        &self,
        record: StoredRecord<'_>,
        see: &mut dyn FnMut(Seen<'_>),
    ) -> Result<(), StateError>;
}

/// Leaves with their keys and indices.
pub type LeafEntries<'a> = Box<dyn Iterator<Item = Result<LeafWrite, StateError>> + 'a>;

/// Names that lead to leaves.
pub type LeafNames<'a> = Box<dyn Iterator<Item = Result<Vec<u8>, StateError>> + 'a>;

/// A tree whose leaves can be written and proven by their keys, below any account.
pub trait Leaves {
    /// Computes what writes of leaves make of the tree, and what that takes. A key may occur once.
    fn compute(
        &self,
        view: View<'_>,
        writes: &[LeafWrite],
    ) -> Result<(Computed, LeafStats), StateError>;

    /// As [`compute`](Self::compute), with a proof of each write and then of each of some reads, and the root
    /// after each.
    fn compute_proven(
        &self,
        view: View<'_>,
        writes: &[LeafWrite],
        reads: &[Hash],
    ) -> Result<ProvenLeaves, StateError>;

    /// Proves all leaves from one key to another, both included; neither needs to be a leaf's.
    fn prove_range(
        &self,
        then: &dyn Then,
        range: (B256, B256),
    ) -> Result<Box<dyn Proof>, StateError>;

    /// As [`compute`](Self::compute), for leaves that are not there yet; the inner error is a key that is, or that comes
    /// twice.
    fn compute_new(
        &self,
        view: View<'_>,
        leaves: &[LeafWrite],
    ) -> Result<Result<Computed, Hash>, StateError>;

    /// The leaves of a version, ascending by key.
    fn entries<'a>(&self, then: &'a dyn Then) -> Result<LeafEntries<'a>, StateError>;

    /// The names that lead to leaves, as they are stored. None ever goes.
    fn names<'a>(&self, view: View<'a>) -> Result<LeafNames<'a>, StateError>;

    /// What is written for a stored name; `None` for bytes that are none.
    fn name_write(&self, name: &[u8]) -> Option<Write>;

    /// The leaves that a version writes on top of the one before, in the form that the tree's prover is given.
    fn storage_logs(&self, before: &dyn Then, then: &dyn Then) -> Result<LeafLogs, StateError>;
}

/// A tree that commits to keys and values of 32 bytes without accounts.
///
/// A database of such entries has tables of its own. Older versions are rebuilt by
/// [`StateTree::step`] and [`StateTree::writes_back`], which read the table of entries like those
/// of accounts.
pub trait KeyValue: Send + Sync {
    /// The tables of such a database.
    fn tables(&self) -> &'static [TableSpec];

    /// The flat table of the entries, by key.
    fn entries(&self) -> Table;

    /// Decodes the record of a key in that table.
    ///
    /// # Errors
    /// [`StateError::Corrupt`] for bytes that are no entry, or a key of another length than 32
    /// bytes.
    fn decode(&self, key: &[u8], record: &[u8]) -> Result<KeyValueEntry, StateError>;

    /// Whether keys can be deleted. A tree that keeps every leaf is given no deletion.
    fn can_delete(&self) -> bool;

    /// Computes what a batch on top of the latest version makes of the tree. No key occurs twice. A
    /// tree that numbers its leaves numbers new ones in the order of the batch.
    fn compute(&self, view: View<'_>, batch: &[KeyValueWrite]) -> Result<Computed, StateError>;

    /// Proves keys, present or absent, by one proof.
    fn prove(&self, then: &dyn Then, keys: &[B256]) -> Result<Box<dyn Proof>, StateError>;

    /// Rebuilds every node of the latest version from the entries, compares nodes and root with
    /// what is stored, and reads every record. Entries are counted as slots.
    fn check(&self, check: &Check<'_>) -> Result<(), StateError>;
}

/// A tree that gives witnesses of all that a block touches.
pub trait Witnesses {
    /// What its witnesses consist of.
    fn form(&self) -> WitnessForm;

    /// The witness of what a block on top of a version touches.
    fn of_block(&self, then: &dyn Then, touched: Touched<'_>) -> Result<StateWitness, StateError>;
}

/// What a block touches of its parent's state, by plain name.
#[derive(Clone, Copy, Debug)]
pub struct Touched<'a> {
    /// Accounts read, present or not, with the slots read.
    pub reads: &'a Reads,
    /// Chunks of code read, by account, for a witness of leaves; those that a code does not have are passed over.
    pub chunks: &'a BTreeMap<Address, BTreeSet<u32>>,
    /// What the block makes of the state.
    pub changes: &'a StateChanges,
    /// Before Byzantium, what each transaction changes after those before it: its receipt has the root. Else none.
    pub transactions: &'a [StateChanges],
    /// Whether leaves are added that leave no absence in doubt.
    pub guarded: bool,
}

/// What witnesses consist of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WitnessForm {
    /// Nodes, over which a block can be executed; codes are beside them.
    Nodes,
    /// Leaves with one proof; chunks of code are among them.
    Leaves,
}

/// The witness of a block's access to the state.
#[derive(Debug)]
pub enum StateWitness {
    /// The nodes that reading and changing it needs.
    Nodes {
        /// The nodes, or one packed proof, in the form that the tree has for them.
        nodes: Vec<Bytes>,
        /// The number of nodes and leaves that the block opens.
        opened: Opened,
    },
    /// The leaves that it touches.
    Leaves(BlockLeaves),
}

/// The number of nodes and leaves that a block opens in the tree, to read and to change them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opened {
    /// Nodes on the paths to the leaves; `None` if the tree does not count them.
    pub nodes: Option<u64>,
    /// Different stems of the leaves; `None` if the tree has no stems.
    pub stems: Option<u64>,
    /// Leaves, whether they exist or not.
    pub leaves: u64,
}

/// The leaves that a block touches as they are before it, with one proof, and the new values of those that it changes.
#[derive(Debug)]
pub struct BlockLeaves {
    /// Leaves, new values and proof, in the form that the tree has for them.
    pub proof: Box<dyn Proof>,
    /// The keys, stem and suffix, of chunks of code that are read. All of them are there before the block.
    pub chunks: BTreeSet<Hash>,
}

/// A tree that tells the root after each transaction.
pub trait InnerRoots {
    /// Roots of changes laid over the latest version.
    fn at_head<'a>(&self, view: View<'a>) -> Box<dyn IntermediateRoots + 'a>;

    /// Roots of changes laid over an older version.
    fn at_version<'a>(&self, then: &'a dyn Then) -> Box<dyn IntermediateRoots + 'a>;
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
            space: 0,
            moves_to: self.moves().map(Moves::identity),
            since: None,
        }
    }

    /// Returns the identity of a database that has keys and values alone, under this tree.
    pub fn key_value_identity(&self) -> Identity {
        let kind = self.kind();
        Identity {
            tree: kind.stored_as.tree.into(),
            revision: KEY_VALUE_REVISION.into(),
            hash: self.hash().into(),
            layout: kind.layout,
            chain_id: 0,
            genesis: [0; 32],
            space: 0,
            moves_to: None,
            since: None,
        }
    }

    /// The name of the tree that a proof is of: of a state that moves, one of the two, or both together.
    pub fn name_of(&self, proof: &dyn Proof) -> &'static str {
        let Some(moves) = self.moves() else {
            return self.kind().name;
        };
        let form = proof.form().name;
        let has = |tree: &&Tree| tree.kind().verify.forms.iter().any(|of| of.name == form);
        let one = [moves.source(), moves.target()].into_iter().find(has);
        one.map_or(arbor_verify::two_trees::VERIFY.tree, |tree| {
            tree.kind().name
        })
    }

    /// Returns this tree as one of a given type; `None` if it is another.
    pub fn downcast<T: StateTree>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// Computes one block, for trees whose blocks are each computed alone.
pub fn one_by_one(
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

/// The nodes of an older version as the tree that made them knows them.
pub fn own<T: 'static>(nodes: &Nodes) -> &T {
    nodes
        .downcast_ref()
        .expect("invariant: nodes come back to the tree that made them")
}

/// Like [`own`], but to be changed.
pub fn own_mut<T: 'static>(nodes: &mut Nodes) -> &mut T {
    nodes
        .downcast_mut()
        .expect("invariant: nodes come back to the tree that made them")
}

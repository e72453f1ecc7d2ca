//! The state at an older version: flat values from the undo records, nodes rebuilt from them.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_store::{Table, Value, Write};
use arbor_tree::Hash;
use arbor_tree_verkle::Witness;
use arbor_versions::{Meta, Version};

use crate::ar16mt::Ar16mt;
use crate::flat::{Flat, FlatEntries, overlaid};
use crate::head::Head;
use crate::mpt::{self, AtHead, AtVersion};
use crate::tree::{AR16MT, MERKLE_PATRICIA, Tree, VERKLE};
use crate::verify::StepsBack;
use crate::verkle::{BlockLeaves, Touched};
use crate::{Account, IntermediateRoots, StateError, StateView, ar16mt, verkle};

/// The state of a retained version, readable and provable.
///
/// Opening costs nothing, and an account or a slot some seeks. Nodes are not stored: the first proof, scan or
/// root applies the undo records since to the head's tree in memory, which costs what changed since; after
/// that everything costs what it costs at the head. Under AR16MT the first proof does so by parts of the tree and keeps only the nodes that it takes,
/// so that its memory does not grow with what changed; the second one keeps all, for those to come.
pub struct Historical<'a> {
    head: Head<'a>,
    meta: Meta,
    undone: OnceLock<Undone<'a>>,
    /// Whether a proof was made that kept only its own nodes.
    proved: AtomicBool,
}

/// Nodes of an older version under AR16MT: those on the ways of some keys at least.
pub(crate) enum Ways<'s, 'a> {
    All(&'s ar16mt::Undone<'a>),
    Own(ar16mt::Undone<'a>),
}

impl<'a> Deref for Ways<'_, 'a> {
    type Target = ar16mt::Undone<'a>;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::All(undone) => undone,
            Self::Own(undone) => undone,
        }
    }
}

/// What lies between the head and an older version.
struct Undone<'a> {
    flat: BTreeMap<(Table, Box<[u8]>), Option<Value>>,
    nodes: UndoneNodes<'a>,
}

enum UndoneNodes<'a> {
    MerklePatricia(Box<mpt::Undone<'a>>),
    Verkle(verkle::Undone<'a>),
    Ar16mt(ar16mt::Undone<'a>),
}

impl<'a> Undone<'a> {
    fn new(head: Head<'a>, to: &Meta) -> Result<Self, StateError> {
        let undo = head.view().undo_since(to.version)?;
        let view = head.view();
        let nodes = match head.tree() {
            Tree::MerklePatricia => {
                let undone = mpt::Undone::new(AtHead(view), to, &undo)?;
                UndoneNodes::MerklePatricia(Box::new(undone))
            }
            Tree::Verkle(verkle) => {
                let mut undone = verkle::Undone::new(verkle, view);
                undone.back(to, &undo, &|table, key| Ok(view.get(table, key)?))?;
                UndoneNodes::Verkle(undone)
            }
            Tree::Ar16mt(ar16mt) => {
                let mut undone = ar16mt::Undone::new(*ar16mt, view);
                undone.back(to, &undo, &|table, key| Ok(view.get(table, key)?))?;
                UndoneNodes::Ar16mt(undone)
            }
        };
        let undo = undo.into_iter();
        let flat = undo.map(|write| ((write.table, write.key), write.value));
        Ok(Self {
            flat: flat.collect(),
            nodes,
        })
    }
}

impl<'a> Historical<'a> {
    pub(crate) fn new(head: Head<'a>, version: Version) -> Result<Self, StateError> {
        head.view().retained(version)?;
        let meta = head.view().meta(version)?.ok_or(StateError::Read(format!(
            "no record of retained version {}",
            version.0
        )))?;
        Ok(Self {
            head,
            meta,
            undone: OnceLock::new(),
            proved: AtomicBool::new(false),
        })
    }

    /// What lies between the head and this version, read and rebuilt at the first call.
    fn undone(&self) -> Result<&Undone<'a>, StateError> {
        if let Some(undone) = self.undone.get() {
            return Ok(undone);
        }
        let undone = Undone::new(self.head, &self.meta)?;
        Ok(self.undone.get_or_init(|| undone))
    }

    /// The rebuilt tries of a Merkle-Patricia state.
    pub(crate) fn undone_tries(&self) -> Result<&mpt::Undone<'a>, StateError> {
        match &self.undone()?.nodes {
            UndoneNodes::MerklePatricia(undone) => Ok(undone),
            _ => Err(StateError::OtherTree(MERKLE_PATRICIA)),
        }
    }

    /// The rebuilt nodes of a Verkle state.
    pub(crate) fn undone_nodes(&self) -> Result<&verkle::Undone<'a>, StateError> {
        match &self.undone()?.nodes {
            UndoneNodes::Verkle(undone) => Ok(undone),
            _ => Err(StateError::OtherTree(VERKLE)),
        }
    }

    /// The nodes on the ways of some keys of a state in AR16MT. The first call keeps no others, which would take memory for all that changed since;
    /// from the second on they are rebuilt once for all.
    pub(crate) fn ways(&self, ar16mt: Ar16mt, keys: &[Hash]) -> Result<Ways<'_, 'a>, StateError> {
        if self.undone.get().is_none() && !self.proved.swap(true, Ordering::Relaxed) {
            let view = self.head.view();
            return ar16mt::Undone::on_ways((ar16mt, view), &self.meta, keys).map(Ways::Own);
        }
        match &self.undone()?.nodes {
            UndoneNodes::Ar16mt(undone) => Ok(Ways::All(undone)),
            _ => Err(StateError::OtherTree(AR16MT)),
        }
    }

    /// Proves an account's fields and some of its slots under a Verkle tree, present or absent: a witness without new values.
    ///
    /// # Errors
    /// Another tree; the store's errors.
    pub fn prove_leaves(&self, address: Address, slots: &[U256]) -> Result<Witness, StateError> {
        match self.tree() {
            Tree::Verkle(verkle) => {
                verkle::prove_account(verkle, self, self.head.view(), (address, slots))
            }
            _ => Err(StateError::OtherTree(VERKLE)),
        }
    }

    /// Proves an account and some of its slots under AR16MT, present or absent.
    ///
    /// # Errors
    /// Another tree; the store's errors.
    pub fn prove_paths(
        &self,
        address: Address,
        slots: &[U256],
    ) -> Result<ar16mt::StateProof, StateError> {
        match self.tree() {
            Tree::Ar16mt(ar16mt) => ar16mt::prove_account(*ar16mt, self, address, slots),
            _ => Err(StateError::OtherTree(AR16MT)),
        }
    }

    /// Proves several accounts and slots of them by one multiproof under AR16MT, present or absent.
    ///
    /// # Errors
    /// Another tree; the store's errors.
    pub fn prove_many(
        &self,
        accounts: &[ar16mt::AccountSlots],
    ) -> Result<ar16mt::StateMultiproof, StateError> {
        match self.tree() {
            Tree::Ar16mt(ar16mt) => ar16mt::prove_many(*ar16mt, self, accounts),
            _ => Err(StateError::OtherTree(AR16MT)),
        }
    }

    /// Proves all leaves of AR16MT from one key to another, both included; neither needs to be a leaf's. They are held in memory.
    ///
    /// # Errors
    /// Another tree; the store's errors.
    pub fn prove_range(&self, from: B256, to: B256) -> Result<ar16mt::RangeProof, StateError> {
        match self.tree() {
            Tree::Ar16mt(ar16mt) => ar16mt::prove_range(*ar16mt, self, (from, to)),
            _ => Err(StateError::OtherTree(AR16MT)),
        }
    }

    /// The leaves of AR16MT that this version writes, in the form that zkSync's prover is given: first those that were there, then new ones, both ascending by index.
    /// Reads are not kept, so there are none. The version before must be retained.
    ///
    /// # Errors
    /// Another tree, a version whose predecessor is not retained; the store's errors.
    pub fn storage_logs(&self) -> Result<ar16mt::StorageLogs, StateError> {
        let Tree::Ar16mt(ar16mt) = self.tree() else {
            return Err(StateError::OtherTree(AR16MT));
        };
        let Some(before) = self.meta.version.0.checked_sub(1) else {
            return Err(StateError::Read(
                "the first version has none before it, on which its leaves were written".into(),
            ));
        };
        let oldest = self.head.view().oldest();
        if oldest.is_some_and(|oldest| before < oldest.0) {
            return Err(StateError::Read(format!(
                "block {} is the oldest that the database retains, and what it writes is proven on top of the one before: that was pruned, or the database was recovered, which begins without history",
                self.meta.block_number
            )));
        }
        let before = Self::new(self.head, Version(before))?;
        ar16mt::storage_logs(*ar16mt, (&before, self))
    }

    /// Proves under a Verkle tree all that a block on top of this version touches, with the values that it leaves.
    ///
    /// # Errors
    /// Another tree; the store's errors.
    pub fn block_leaves(&self, touched: Touched<'_>) -> Result<BlockLeaves, StateError> {
        match self.tree() {
            Tree::Verkle(verkle) => verkle::block_leaves(verkle, self, self.head.view(), touched),
            _ => Err(StateError::OtherTree(VERKLE)),
        }
    }

    /// The head's tables, which this version's flat records lie over.
    pub(crate) fn view(&self) -> arbor_versions::View<'a> {
        self.head.view()
    }

    /// The version's block and root.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The tree that commits to the state.
    pub fn tree(&self) -> &'a Tree {
        self.head.tree()
    }

    /// Roots of changes laid over this version, for receipts from before Byzantium; none of a tree other than the one that
    /// those receipts mean.
    pub fn intermediate_roots(&self) -> Option<impl IntermediateRoots + use<'_, 'a>> {
        match self.tree() {
            Tree::MerklePatricia => Some(mpt::PendingRoots::new(AtVersion(self))),
            Tree::Verkle(_) | Tree::Ar16mt(_) => None,
        }
    }

    /// The writes that make this version the head again.
    pub(crate) fn into_writes(self) -> Result<(Vec<Write>, Vec<Write>), StateError> {
        let undone = match self.undone.into_inner() {
            Some(undone) => undone,
            None => Undone::new(self.head, &self.meta)?,
        };
        let flat = undone
            .flat
            .into_iter()
            .map(|((table, key), value)| Write { table, key, value })
            .collect();
        let nodes = match undone.nodes {
            UndoneNodes::MerklePatricia(undone) => undone.into_writes()?,
            UndoneNodes::Verkle(undone) => undone.into_writes(),
            UndoneNodes::Ar16mt(undone) => undone.into_writes(),
        };
        Ok((flat, nodes))
    }
}

impl Flat for Historical<'_> {
    fn value(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StateError> {
        let view = self.head.view();
        let Some(undone) = self.undone.get() else {
            return Ok(view.get_at(self.meta.version, table, key)?);
        };
        match undone.flat.get(&(table, Box::from(key))) {
            Some(value) => Ok(value.clone()),
            None => Ok(view.get(table, key)?),
        }
    }

    fn entries(&self, table: Table, prefix: &[u8]) -> Result<FlatEntries<'_>, StateError> {
        let undone = self.undone()?;
        let head = self.head.view().scan(table, prefix, prefix)?;
        let head = head.map(|entry| entry.map_err(StateError::from));
        let prefix: Box<[u8]> = prefix.into();
        let start = (table, prefix.clone());
        let undone = undone
            .flat
            .range(start..)
            .take_while(move |((t, key), _)| *t == table && key.starts_with(&prefix))
            .map(|((_, key), value)| (key.clone(), value.clone()));
        Ok(overlaid(head, undone))
    }
}

impl StateView for Historical<'_> {
    fn account(&self, address: Address) -> Result<Option<Account>, StateError> {
        self.tree().account(self, address)
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, StateError> {
        self.tree().storage(self, address, slot)
    }

    fn has_storage(&self, address: Address) -> Result<bool, StateError> {
        self.tree().has_storage(self, address)
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, StateError> {
        self.head.code(code_hash)
    }
}

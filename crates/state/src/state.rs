//! A chain's state: flat tables, a tree over them, and their history.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_store::{Store, Write};
use arbor_tree::Hash;
use arbor_tree_ar16mt::TreeStats;
use arbor_versions::{
    Changes, DirLock, Meta, Options, PruneStats, Retain, TableSpec, Version, Versions,
    stored_identity,
};

use crate::ar16mt::{LeafWrite, OperationProofs};
use crate::flat::Ahead;
use crate::head::Head;
use crate::history::Historical;
use crate::mpt::{self, AtHead};
use crate::snapshot::StateSnapshot;
use crate::tables::CODE;
use crate::tree::{AR16MT, Tree, VERKLE};
use crate::{
    Account, IntermediateRoots, StateChanges, StateError, StateView, Work, ar16mt, verkle,
};

/// Which chain a state belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// The chain id of EIP-155.
    pub chain_id: u64,
    /// The hash of block 0.
    pub genesis_hash: B256,
}

/// The block that a version belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockRef {
    /// Its number.
    pub number: u64,
    /// Its hash.
    pub hash: B256,
    /// What the caller wants to find beside the version: the header's RLP.
    pub header: Vec<u8>,
}

/// What a block's changes make of the state: computed, not yet applied.
#[derive(Debug)]
pub struct Computed {
    pub(crate) root: B256,
    pub(crate) changes: Changes,
    pub(crate) timings: Timings,
    pub(crate) work: Work,
}

/// Where the time of [`State::compute`] went.
#[derive(Clone, Copy, Default, Debug)]
pub struct Timings {
    /// Hashing names, reading old account records, forming tree updates.
    pub keys: Duration,
    /// The tree: reading nodes, restructuring, hashing.
    pub tree: Duration,
    /// Forming flat and node writes.
    pub writes: Duration,
}

impl Computed {
    /// The state root after the block.
    pub fn root(&self) -> B256 {
        self.root
    }

    /// Where the time went.
    pub fn timings(&self) -> Timings {
        self.timings
    }

    /// What it took.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Keys and records of the nodes written (`None`: deleted), for a diagnosis.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (&[u8], Option<&[u8]>)> {
        self.changes.nodes()
    }
}

/// A chain's state: flat tables, nodes and history over a store.
pub struct State {
    store: Arc<dyn Store>,
    pub(crate) versions: Versions,
    tree: Tree,
}

impl State {
    /// Opens or creates the state of a network in a store. `lock` is that of the directory in which
    /// the head record lies; `None` for a store in memory.
    ///
    /// # Errors
    /// A store of another tree, chain, hash or layout; an older copy of the store than the head
    /// record knows; a directory that another process writes.
    pub fn open(
        store: Arc<dyn Store>,
        lock: Option<DirLock>,
        tree: Tree,
        network: Network,
        options: Options,
    ) -> Result<Self, StateError> {
        let (identity, tables) = (tree.identity(network), tree.tables());
        let versions = match stored_identity(&*store)? {
            None => Versions::create(Arc::clone(&store), lock, &identity, tables, options)?,
            Some(_) => Versions::open(Arc::clone(&store), lock, &identity, tables, options)?,
        };
        Ok(Self {
            store,
            versions,
            tree,
        })
    }

    /// The latest version: its block, its root.
    pub fn head(&self) -> Option<&Meta> {
        self.versions.head()
    }

    /// The latest version and the retained ones before it.
    pub fn reader(&self) -> Head<'_> {
        Head::new(self.versions.view(), &self.tree)
    }

    /// Freezes what can be read now, for other threads, while later blocks are committed, flushed and pruned.
    pub fn snapshot(&mut self) -> Result<StateSnapshot, StateError> {
        Ok(StateSnapshot {
            versions: self.versions.snapshot()?,
            tree: self.tree.clone(),
        })
    }

    /// The versioned tables below.
    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    /// The root of the latest version; that of the empty tree before genesis.
    pub fn root(&self) -> B256 {
        self.reader().root()
    }

    /// Computes what changes on top of the latest version would make of the state. Called on a thread of a rayon pool,
    /// it spreads large changes over the pool.
    pub fn compute(&self, changes: &StateChanges) -> Result<Computed, StateError> {
        let view = self.versions.view();
        match &self.tree {
            Tree::MerklePatricia => mpt::compute(AtHead(view), changes),
            Tree::Verkle(verkle) => {
                let mut computed = verkle::compute(verkle, view, &[changes])?;
                Ok(computed.pop().expect("invariant: one for each"))
            }
            Tree::Ar16mt(ar16mt) => ar16mt::compute(*ar16mt, view, changes),
        }
    }

    /// Whether a replay is to compute the roots of consecutive blocks together: whether the tree gains by that, and nobody asked for a flush of each version.
    pub fn computes_together(&self) -> bool {
        let options = self.versions.options();
        self.tree.computes_together() && !options.durable_each && options.dirty_bytes > 0
    }

    /// Computes what changes that follow each other would make of the state, beginning at the latest version: the roots after each, all nodes with the last, for
    /// [`commit_together`](Self::commit_together).
    ///
    /// # Errors
    /// Another tree than Verkle; the store's errors.
    pub fn compute_together(&self, changes: &[&StateChanges]) -> Result<Vec<Computed>, StateError> {
        match &self.tree {
            Tree::Verkle(verkle) => verkle::compute(verkle, self.versions.view(), changes),
            Tree::MerklePatricia | Tree::Ar16mt(_) => Err(StateError::OtherTree(VERKLE)),
        }
    }

    /// Computes the root that [`Head::flat_root`] gives once changes are committed that were computed on top of the latest version and follow each other.
    ///
    /// # Errors
    /// As there.
    pub fn flat_root_after(&self, computed: &[Computed]) -> Result<B256, StateError> {
        let mut ahead = Ahead::of(self.versions.view());
        computed
            .iter()
            .for_each(|computed| ahead.put(&computed.changes));
        self.tree.flat_root(&ahead)
    }

    /// Computes what writes of leaves by their keys, below any account, would make of an AR16MT state, and what that takes. A key may occur once.
    ///
    /// # Errors
    /// Another tree; index 0; a key that occurs twice; the store's errors.
    pub fn compute_leaves(
        &self,
        writes: &[LeafWrite],
    ) -> Result<(Computed, TreeStats), StateError> {
        match &self.tree {
            Tree::Ar16mt(ar16mt) => ar16mt::compute_leaves(*ar16mt, self.versions.view(), writes),
            Tree::MerklePatricia | Tree::Verkle(_) => Err(StateError::OtherTree(AR16MT)),
        }
    }

    /// As [`compute_leaves`](Self::compute_leaves), with a proof of each write and then of each of some reads, and the root after each.
    ///
    /// # Errors
    /// As there.
    pub fn compute_leaves_proven(
        &self,
        writes: &[LeafWrite],
        reads: &[Hash],
    ) -> Result<(Computed, TreeStats, OperationProofs), StateError> {
        match &self.tree {
            Tree::Ar16mt(ar16mt) => {
                ar16mt::compute_proven(*ar16mt, self.versions.view(), writes, reads)
            }
            Tree::MerklePatricia | Tree::Verkle(_) => Err(StateError::OtherTree(AR16MT)),
        }
    }

    /// Makes computed changes the latest version. They reach the disk with the next flush.
    pub fn commit(&mut self, block: &BlockRef, computed: Computed) -> Result<(), StateError> {
        let root = computed.root;
        self.commit_as_one([(block.clone(), root)], computed)
    }

    /// Makes the changes of consecutive blocks, computed together, one version after the other, of which only the last
    /// can be read: see [`Versions::apply_as_one`]. With each block comes the root that it claims; the last one's is the
    /// computed one.
    pub fn commit_as_one(
        &mut self,
        blocks: impl IntoIterator<Item = (BlockRef, B256)>,
        computed: Computed,
    ) -> Result<(), StateError> {
        let metas = (self.next_version()..).zip(blocks);
        let metas = metas.map(|(version, (block, root))| meta(version, block, root));
        Ok(self
            .versions
            .apply_as_one(metas.collect(), computed.changes)?)
    }

    /// Makes consecutive blocks, computed together, one version after the other, or none of them.
    ///
    /// # Errors
    /// As [`Versions::apply_together`].
    pub fn commit_together(
        &mut self,
        blocks: impl IntoIterator<Item = (BlockRef, Computed)>,
    ) -> Result<(), StateError> {
        let versions = (self.next_version()..).zip(blocks);
        let versions = versions.map(|(version, (block, computed))| {
            (meta(version, block, computed.root), computed.changes)
        });
        Ok(self.versions.apply_together(versions.collect())?)
    }

    fn next_version(&self) -> u64 {
        self.head().map_or(0, |head| head.version.0 + 1)
    }

    /// Roots of changes laid over the latest version, as [`Head::intermediate_roots`] gives them.
    pub fn intermediate_roots(&self) -> Option<impl IntermediateRoots + '_> {
        self.reader().intermediate_roots()
    }

    /// The tree that commits to the state.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The tables that the state is kept in.
    pub fn tables(&self) -> &'static [TableSpec] {
        self.tree.tables()
    }

    /// Writes all versions to the store and makes them durable.
    pub fn flush(&mut self) -> Result<(), StateError> {
        self.versions.flush()?;
        Ok(())
    }

    /// Merges the store's files, so that the space of overwritten data is given back.
    pub fn compact(&self) -> Result<(), StateError> {
        Ok(self.store.compact()?)
    }

    /// Bytes of the store's files; `None` for a store without files.
    pub fn disk_bytes(&self) -> Result<Option<u64>, StateError> {
        Ok(self.store.disk_bytes()?)
    }

    /// The state as it was at a retained version.
    pub fn at(&self, version: Version) -> Result<Historical<'_>, StateError> {
        self.reader().at(version)
    }

    /// Returns to a retained version; later ones are gone.
    pub fn rollback(&mut self, to: Version) -> Result<(), StateError> {
        let (flat, nodes) = self.at(to)?.writes_back()?;
        self.versions.rollback(to, flat, nodes)?;
        Ok(())
    }

    /// Forgets the history that `retain` does not cover.
    pub fn prune(&mut self, retain: Retain) -> Result<PruneStats, StateError> {
        Ok(self.versions.prune(retain)?)
    }
}

fn meta(version: u64, block: BlockRef, root: B256) -> Meta {
    Meta {
        version: Version(version),
        block_number: block.number,
        block_hash: block.hash.0,
        root: root.0,
        extra: block.header,
    }
}

/// Writes of codes, by their hashes.
pub(crate) fn code_writes<'a>(codes: impl Iterator<Item = (&'a B256, &'a Bytes)>) -> Vec<Write> {
    let writes = codes.map(|(hash, code)| Write {
        table: CODE,
        key: hash.as_slice().into(),
        value: Some(code.as_ref().into()),
    });
    writes.collect()
}

impl StateView for State {
    fn account(&self, address: Address) -> Result<Option<Account>, StateError> {
        self.reader().account(address)
    }

    fn accounts(&self, addresses: &[Address]) -> Result<Vec<Option<Account>>, StateError> {
        self.reader().accounts(addresses)
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, StateError> {
        self.reader().storage(address, slot)
    }

    fn has_storage(&self, address: Address) -> Result<bool, StateError> {
        self.reader().has_storage(address)
    }

    fn expect(&self, accounts: &[Address], slots: &[(Address, U256)]) {
        self.reader().expect(accounts, slots);
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, StateError> {
        self.reader().code(code_hash)
    }
}

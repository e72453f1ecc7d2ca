//! A chain's state: flat tables, a tree over them, and their history.

use std::fmt;
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use arbor_store::Store;
use arbor_tree::Hash;
use arbor_verify::Proof;
use arbor_versions::{
    DirLock, Identity, Meta, Options, PruneStats, Retain, Snapshot, TableSpec, Version, Versions,
    VersionsError, stored_identity,
};

use crate::block_ref::{BlockRef, block_meta};
use crate::head::Head;
use crate::history::{Historical, way_to_before};
use crate::recovery::check_recovered;
use crate::rewinds::{Scratch, Steps};
use crate::roots;
use crate::session::{Session, Step};
use crate::snapshot::StateSnapshot;
use crate::state_reader::StateReader;
use crate::{AccountSource, HeadId, IntermediateRoots, Network, StateChanges, StateError, Tree};
use arbor_state_tree::Ahead;
use arbor_state_tree::Leaves;
use arbor_state_tree::{Computed, Unfinished, check_run};
use arbor_state_tree::{LeafStats, LeafWrite, ProvenLeaves};
use arbor_state_tree::{check_consistent, check_order};

/// Blocks before the oldest readable version whose records are kept: `BLOCKHASH` (yellow paper, appendix H) and the check of ommers look back as far, and
/// a block can be executed on top of every readable version, after a rollback or for a witness.
pub const ANCESTORS: u64 = 256;

/// Has versions keep the records of [`ANCESTORS`].
fn with_ancestors(mut options: Options) -> Options {
    options.metas_below = ANCESTORS;
    options
}

/// A chain's state: flat tables, nodes and history over a store.
///
/// What is [committed](Self::commit) is durable with the next [flush](Self::flush). Dropping a state does not flush: versions since the last flush are then lost, as in a
/// crash.
pub struct State {
    store: Arc<dyn Store>,
    pub(crate) versions: Versions,
    tree: Tree,
    /// Whether a load began and its version was not committed.
    is_loading: bool,
    /// Temporary stores for older versions in snapshots, if there are any.
    scratch: Option<Scratch>,
    /// Where other threads read the latest state, if any of them do.
    published: Option<StateReader>,
}

/// Versions after which the index of old nodes is brought up to date.
const NODES_INDEXED_TOGETHER: u64 = 1 << 10;

impl State {
    /// Opens or creates the state of a network in a store. `lock` is that of the directory in which
    /// the head record lies; `None` for a store in memory.
    ///
    /// # Errors
    /// A store of another tree, chain, hash or layout; an older copy of the store than the head
    /// record knows; a directory that another process writes; a database whose load or recovery did not finish.
    pub fn open(
        store: Arc<dyn Store>,
        lock: Option<DirLock>,
        tree: Tree,
        network: Network,
        options: Options,
    ) -> Result<Self, StateError> {
        let state = Self::open_to_recover(store, lock, tree, network, options)?;
        state.check_finished()?;
        Ok(state)
    }

    /// Like [`open`](Self::open), but opens a database whose recovery did not finish, too, for a
    /// [`Recovery`](crate::recovery::Recovery) to go on with. Until that has finished, nothing else is computed on it.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_to_recover(
        store: Arc<dyn Store>,
        lock: Option<DirLock>,
        tree: Tree,
        network: Network,
        options: Options,
    ) -> Result<Self, StateError> {
        let made_as = (tree.identity(network), tree.kind().tables);
        Self::open_as(store, lock, tree, made_as, with_ancestors(options))
    }

    /// Opens or creates a database with an identity and tables.
    pub(crate) fn open_as(
        store: Arc<dyn Store>,
        lock: Option<DirLock>,
        tree: Tree,
        (identity, tables): (Identity, &'static [TableSpec]),
        options: Options,
    ) -> Result<Self, StateError> {
        let versions = match stored_identity(&*store)? {
            None => Versions::create(Arc::clone(&store), lock, &identity, tables, options)?,
            Some(_) => Versions::open(Arc::clone(&store), lock, &identity, tables, options)?,
        };
        Ok(Self {
            store,
            versions,
            tree,
            is_loading: false,
            scratch: None,
            published: None,
        })
    }

    /// Like [`open`](Self::open), but opens a database in which a load was interrupted, too, for
    /// [`load_part`](Self::load_part) to go on with. Until its first version is committed, nothing else is computed on it.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_to_load(
        store: Arc<dyn Store>,
        lock: Option<DirLock>,
        tree: Tree,
        network: Network,
        options: Options,
    ) -> Result<Self, StateError> {
        let (identity, tables) = (tree.identity(network), tree.kind().tables);
        let options = with_ancestors(options);
        let (versions, is_loading) = match stored_identity(&*store)? {
            None => {
                let store = Arc::clone(&store);
                (
                    Versions::create(store, lock, &identity, tables, options)?,
                    false,
                )
            }
            Some(_) => {
                let store = Arc::clone(&store);
                Versions::open_to_load(store, lock, &identity, tables, options)?
            }
        };
        let state = Self {
            store,
            versions,
            tree,
            is_loading,
            scratch: None,
            published: None,
        };
        check_recovered(state.head())?;
        Ok(state)
    }

    /// Makes all durable and opens the database with another tree: one that moves, the one that it has moved to, or the one before a move that has moved nothing yet. What only
    /// another tree has is dropped. A crash leaves the database as the one or the other; after an error it is to be opened anew.
    ///
    /// # Errors
    /// A tree that is none of these; those of [`flush`](Self::flush) and [`open`](Self::open).
    pub fn open_again(mut self, tree: Tree) -> Result<Self, StateError> {
        self.flush()?;
        let stored = stored_identity(&*self.store)?.ok_or(VersionsError::NotCreated)?;
        let network = Network {
            chain_id: stored.chain_id,
            genesis_hash: stored.genesis.into(),
        };
        let (identity, tables) = (tree.identity(network), tree.kind().tables);
        let versions = self.versions.open_again(&identity, tables)?;
        Ok(Self {
            versions,
            tree,
            ..self
        })
    }

    /// Checks that the database has a whole state, or none.
    fn check_finished(&self) -> Result<(), StateError> {
        self.check_loaded()?;
        check_recovered(self.head())
    }

    fn check_loaded(&self) -> Result<(), StateError> {
        match self.is_loading {
            true => Err(StateError::Unfinished(Unfinished::Load)),
            false => Ok(()),
        }
    }

    /// Begins a load, after which the database is not whole until what the load computes is committed.
    ///
    /// # Errors
    /// A database that has a version, or in which a load began before; code that has another hash than it is given.
    fn begin_load(&mut self) -> Result<(), StateError> {
        self.check_finished()?;
        if let Some(head) = self.head().map(|head| head.version) {
            return Err(VersionsError::AlreadyLoaded { head }.into());
        }
        self.is_loading = true;
        Ok(())
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
    ///
    /// # Errors
    /// A database whose load did not finish; the store's errors.
    pub fn snapshot(&mut self) -> Result<StateSnapshot, StateError> {
        self.check_loaded()?;
        let versions = self.versions.snapshot()?;
        Ok(self.frozen(versions))
    }

    fn frozen(&self, versions: Snapshot) -> StateSnapshot {
        let snapshot = StateSnapshot {
            versions,
            tree: self.tree.clone(),
            rewinds: None,
        };
        match &self.scratch {
            Some(scratch) => snapshot.with_scratch(scratch.clone()),
            None => snapshot,
        }
    }

    /// Has snapshots make versions that lie too far back for memory in temporary stores, and long ways [back](Self::rollback) go in steps.
    #[must_use]
    pub fn with_scratch(self, scratch: Scratch) -> Self {
        Self {
            scratch: Some(scratch),
            ..self
        }
    }

    /// Keeps the nodes of the latest version and of all later ones, so that proofs of retained versions are look-ups. The next flush makes that durable, and it stays so
    /// until it is [ended](Self::forget_nodes).
    pub fn keep_nodes(&mut self) {
        self.versions.keep_nodes();
    }

    /// The version from which on nodes are kept; `None` if they are not.
    pub fn keeps_nodes_since(&self) -> Option<Version> {
        self.versions.keeps_nodes_since()
    }

    /// Forgets the nodes of older versions, and keeps none from here on. Durable on return.
    ///
    /// # Errors
    /// Those of [`flush`](Self::flush).
    pub fn forget_nodes(&mut self) -> Result<(), StateError> {
        Ok(self.versions.forget_nodes()?)
    }

    /// Keeps the nodes of all retained versions: those from before [keeping](Self::keep_nodes) began are computed, from the latest one on back, each from its undo
    /// record. `go_on` is given how many of how many are done, and may end it: what is done then is kept, and the next call goes on. Durable on return.
    ///
    /// # Errors
    /// Undo that does not lead to a version's root; those of [`flush`](Self::flush).
    pub fn keep_nodes_back(
        &mut self,
        go_on: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<(), StateError> {
        self.check_finished()?;
        self.versions.keep_nodes();
        self.versions.flush()?;
        let Some(newest) = self.versions.keeps_nodes_since() else {
            return Ok(());
        };
        let oldest = self.versions.view().oldest().unwrap_or(newest);
        let (mut since, of) = (newest, newest.0 - oldest.0);
        while since > oldest && go_on(newest.0 - since.0, of) {
            let before = Version(since.0 - 1);
            let way = way_to_before(self.reader(), since)?;
            self.versions.keep_nodes_before(vec![way])?;
            since = before;
            if since.0.is_multiple_of(NODES_INDEXED_TOGETHER) {
                self.versions.index_nodes()?;
            }
        }
        self.versions.index_nodes()?;
        self.versions.announce()?;
        go_on(newest.0 - since.0, of);
        Ok(())
    }

    /// Begins a session: blocks on top of the head that are not committed.
    ///
    /// # Errors
    /// Those of [`snapshot`](Self::snapshot) and of [`StateSnapshot::session`].
    pub fn session(&mut self) -> Result<Session, StateError> {
        self.snapshot()?.session()
    }

    /// Returns a reader of the latest state for other threads. As long as it or a clone of it lives, every commit and every rollback
    /// publishes a snapshot.
    ///
    /// # Errors
    /// Those of [`snapshot`](Self::snapshot).
    pub fn shared_reader(&mut self) -> Result<StateReader, StateError> {
        if let Some(reader) = &self.published {
            return Ok(reader.clone());
        }
        let reader = StateReader::new(self.snapshot()?);
        Ok(self.published.insert(reader).clone())
    }

    /// Hands the latest state to those that read it in other threads, if there are any. An error leaves them the state before.
    fn publish(&mut self) -> Result<(), StateError> {
        match self.published.take_if(|reader| !reader.is_alone()) {
            None => self.published = None,
            Some(reader) => {
                let snapshot = self.versions.snapshot_at_once();
                self.published = Some(reader.clone());
                let snapshot = self.frozen(snapshot?);
                reader.publish(snapshot);
            }
        }
        Ok(())
    }

    /// The versioned tables below.
    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    /// The root of the latest version; that of the empty tree before genesis.
    pub fn root(&self) -> B256 {
        self.reader().root()
    }

    /// Computes what changes on top of the latest version would make of the state.
    ///
    /// Called on a thread of a rayon pool, it spreads large changes over the pool: `pool.install(|| state.compute(&changes))`. On a thread
    /// outside of a pool, Merkle-Patricia uses that thread alone, and the other trees use rayon's global pool.
    ///
    /// # Errors
    /// [`WrongChanges`](crate::WrongChanges): old values that the state does not have, slots of an absent account, code
    /// that is missing or has another hash; a database whose load or recovery did not finish; the store's errors.
    pub fn compute(&self, changes: &StateChanges) -> Result<Computed, StateError> {
        let mut computed = self.compute_together(&[changes])?;
        Ok(computed.pop().expect("invariant: one for each"))
    }

    /// Whether a replay is to compute the roots of consecutive blocks together: whether the tree gains by that, and nobody asked for a flush of each version.
    pub fn computes_together(&self) -> bool {
        let options = self.versions.options();
        self.tree.computes_together() && !options.durable_each && options.dirty_bytes > 0
    }

    /// Computes what the changes of consecutive blocks make of the state, beginning at the latest
    /// version: the root after each, for [`commit_together`](Self::commit_together).
    ///
    /// # Errors
    /// A tree that does not [compute together](Self::computes_together), if there is more than one
    /// block; those of [`compute`](Self::compute).
    pub fn compute_together(&self, changes: &[&StateChanges]) -> Result<Vec<Computed>, StateError> {
        self.check_finished()?;
        let view = self.versions.view();
        check_consistent(view, changes)?;
        self.tree.compute(view, changes)
    }

    /// Computes the root that [`Head::flat_root`] gives once changes are committed that were computed on top of the latest version and follow each other.
    ///
    /// # Errors
    /// Those of [`Head::flat_root`] and of [`commit_together`](Self::commit_together).
    pub fn flat_root_after(&self, computed: &[Computed]) -> Result<B256, StateError> {
        self.check_run(&computed.iter().collect::<Vec<_>>())?;
        let mut ahead = Ahead::of(self.versions.view());
        computed
            .iter()
            .for_each(|computed| ahead.put(&computed.changes));
        self.tree.records().root(&ahead, self.tree.sort_bytes())
    }

    /// Writing leaves by their keys alone, below any account; none of a tree that has no such leaves.
    pub fn leaves(&self) -> Option<StateLeaves<'_>> {
        let leaves = self.tree.leaves()?;
        Some(StateLeaves {
            state: self,
            leaves,
        })
    }

    /// Makes computed changes the latest version. They reach the disk with the next flush.
    ///
    /// # Errors
    /// [`StateError::OtherDatabase`] if they were not computed on this database since it was opened;
    /// [`StateError::Stale`] if they were computed on another head than the present one;
    /// [`StateError::PartOfRun`] if they are some of several computed together; a database whose load
    /// or recovery did not finish; the store's errors.
    pub fn commit(&mut self, block: &BlockRef, computed: Computed) -> Result<(), StateError> {
        let root = computed.root();
        self.commit_as_one([(block.clone(), root)], computed)
    }

    /// Makes the changes of consecutive blocks, computed together, one version after the other, of which only the last
    /// can be read: see [`Versions::apply_as_one`]. With each block comes the root that it claims; the last one's is the
    /// computed one.
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit).
    pub fn commit_as_one(
        &mut self,
        blocks: impl IntoIterator<Item = (BlockRef, B256)>,
        computed: Computed,
    ) -> Result<(), StateError> {
        self.check_run(&[&computed])?;
        let blocks: Vec<(BlockRef, B256)> = blocks.into_iter().collect();
        let mut computed = computed;
        if let Some((block, root)) = blocks.last()
            && roots::are_written(&self.tree, self.versions.view())?
        {
            roots::put(&mut computed.changes, block.number, *root);
        }
        self.apply_as_one(blocks, computed)
    }

    /// Like [`commit_as_one`](Self::commit_as_one), for the caller who knows what the changes were computed on.
    pub(crate) fn apply_as_one(
        &mut self,
        blocks: impl IntoIterator<Item = (BlockRef, B256)>,
        computed: Computed,
    ) -> Result<(), StateError> {
        let metas = (self.next_version()..).zip(blocks);
        let metas = metas.map(|(version, (block, root))| block_meta(version, block, root));
        self.versions
            .apply_as_one(metas.collect(), computed.changes)?;
        self.is_loading = false;
        self.publish()
    }

    /// Makes consecutive blocks, computed together, one version after the other, or none of them.
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit) and of [`Versions::apply_together`].
    pub fn commit_together(
        &mut self,
        blocks: impl IntoIterator<Item = (BlockRef, Computed)>,
    ) -> Result<(), StateError> {
        let blocks: Vec<(BlockRef, Computed)> = blocks.into_iter().collect();
        self.check_run(
            &blocks
                .iter()
                .map(|(_, computed)| computed)
                .collect::<Vec<_>>(),
        )?;
        let are_written = roots::are_written(&self.tree, self.versions.view())?;
        let versions = (self.next_version()..).zip(blocks);
        let versions = versions.map(|(version, (block, mut computed))| {
            let root = computed.root();
            if are_written {
                roots::put(&mut computed.changes, block.number, root);
            }
            (block_meta(version, block, root), computed.changes)
        });
        let versions = versions.collect();
        self.versions.apply_together(versions)?;
        self.is_loading = false;
        self.publish()
    }

    /// Makes the blocks of a session the latest versions, all of them or none; those that an earlier call has committed already are left
    /// out. They reach the disk with the next flush, which this call does not wait for unless the flush before it is still running and the
    /// budget for unflushed changes is used up. [`flush`](Self::flush) makes them durable.
    ///
    /// # Errors
    /// [`StateError::OtherDatabase`] if the session does not come from a snapshot of this state; [`StateError::Stale`] if the head is none of
    /// the versions that the session consists of; a database whose load or recovery did not finish; the store's errors.
    pub fn commit_session(&mut self, session: Session) -> Result<(), StateError> {
        self.check_finished()?;
        if session.reader().view().open_id() != self.versions.view().open_id() {
            return Err(StateError::OtherDatabase);
        }
        let (base, head) = (session.base(), self.head().map(HeadId::of));
        let steps = session.steps_on(head).ok_or(StateError::Stale {
            computed_on: base,
            head,
        })?;
        let versions = (self.next_version()..).zip(steps);
        let versions = versions.map(
            |(
                version,
                Step {
                    block, computed, ..
                },
            )| {
                let root = computed.root();
                (block_meta(version, block, root), computed.changes)
            },
        );
        self.versions.apply_together(versions.collect())?;
        self.publish()
    }

    fn check_run(&self, run: &[&Computed]) -> Result<(), StateError> {
        check_recovered(self.head())?;
        check_run(self.versions.view(), self.is_loading, run)
    }

    fn next_version(&self) -> u64 {
        self.head().map_or(0, |head| head.version.0 + 1)
    }

    /// Fills an empty database with a whole state, bottom-up and in the order of its tables, and
    /// returns what is then to be committed as version 0; its root is that of the state.
    ///
    /// Every record is written once. In memory are, under Merkle-Patricia, some ranges (256ths of the
    /// state) for each thread and the account nodes of a sixteenth; under a Verkle tree
    /// its setting `leaf_bytes` of leaves, and the nodes of a
    /// sixteenth of them; under AR16MT (amortized radix-16 Merkle tree) all leaves, 72 bytes each; and up to 16 MiB of nodes of each depth. `progress` is called with the parts
    /// done and their number. Until version 0 has been committed and flushed the database cannot be
    /// opened again.
    ///
    /// # Errors
    /// A source of another [order](arbor_state_tree::StateTree::order) than the tree's; a database that has a
    /// version, or in which a load did not finish; code that is missing or has another hash;
    /// accounts or slots that do not ascend; errors of the source and of the store.
    pub fn load(
        &mut self,
        source: &dyn AccountSource,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Computed, StateError> {
        check_order(source, self.tree.order())?;
        self.begin_load()?;
        let computed = self.tree.load(&mut self.versions, source, progress)?;
        Ok(computed.of_database(self.versions.view()))
    }

    /// Loads writes of a state that is built [in parts](arbor_state_tree::Build), ascending by table and key, and durable on return. The same
    /// writes may be loaded again.
    ///
    /// # Errors
    /// A database that has a version; the store's errors.
    pub fn load_part(
        &mut self,
        writes: &mut dyn Iterator<Item = arbor_store::Write>,
    ) -> Result<(), StateError> {
        self.versions.load(writes)?;
        self.is_loading = true;
        Ok(())
    }

    /// Makes what a [load](Self::load) computed the state of the last of some consecutive blocks, each with its root, and
    /// durable. Of the blocks before it only the records can be read, as `BLOCKHASH` needs them.
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit) and of [`flush`](Self::flush).
    pub fn commit_loaded(
        &mut self,
        blocks: Vec<(BlockRef, B256)>,
        computed: Computed,
    ) -> Result<(), StateError> {
        self.commit_as_one(blocks, computed)?;
        self.flush()
    }

    /// Roots of changes laid over the latest version, as [`Head::intermediate_roots`] gives them.
    pub fn intermediate_roots(&self) -> Option<Box<dyn IntermediateRoots + '_>> {
        self.reader().intermediate_roots()
    }

    /// The tree that commits to the state.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The tables that the state is kept in.
    pub fn tables(&self) -> &'static [TableSpec] {
        self.tree.kind().tables
    }

    /// Writes all versions to the store and makes them durable.
    ///
    /// # Errors
    /// The store's errors, and those of the HEAD file. Nothing is lost from memory.
    pub fn flush(&mut self) -> Result<(), StateError> {
        self.versions.flush()?;
        Ok(())
    }

    /// Merges the store's files, so that the space of overwritten data is given back.
    ///
    /// # Errors
    /// The store's errors.
    pub fn compact(&self) -> Result<(), StateError> {
        self.store.compact()?;
        Ok(self.versions.announce()?)
    }

    /// Bytes of the store's files; `None` for a store without files.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn disk_bytes(&self) -> Result<Option<u64>, StateError> {
        Ok(self.store.disk_bytes()?)
    }

    /// Proves an account and some of its slots at the head, present or absent.
    ///
    /// # Errors
    /// A state without any version; the store's errors.
    pub fn prove(&self, address: Address, slots: &[U256]) -> Result<Box<dyn Proof>, StateError> {
        self.reader().latest()?.prove(address, slots)
    }

    /// The state as it was at a retained version.
    ///
    /// # Errors
    /// A version that is not retained; the store's errors.
    pub fn at(&self, version: Version) -> Result<Historical<'_>, StateError> {
        self.reader().at(version)
    }

    /// Returns to a retained version; later ones are gone. Durable on return.
    ///
    /// With [temporary stores](Self::with_scratch), a way back that is longer than memory allows goes in steps, each of which is a whole version: a crash, or an error, leaves the database at one of them, and the next call
    /// goes on from there.
    ///
    /// # Errors
    /// A version that is not retained; undo that does not lead to a version's root; the store's errors.
    pub fn rollback(&mut self, to: Version) -> Result<(), StateError> {
        let steps = Steps {
            changes: self.scratch.as_ref().map_or(u64::MAX, Scratch::step),
            deadline: None,
        };
        steps.roll_back((&mut self.versions, &self.tree), to, |error| error)?;
        self.publish()
    }

    /// Returns to the state after the block with this number, as [`rollback`](Self::rollback) does.
    ///
    /// # Errors
    /// [`StateError::NoBlock`] if no retained version is of that block; those of [`rollback`](Self::rollback).
    pub fn rollback_to_block(&mut self, number: u64) -> Result<(), StateError> {
        let to = self.reader().at_block(number)?.meta().version;
        self.rollback(to)
    }

    /// Returns to the state after the block with this hash, as [`rollback`](Self::rollback) does. Looks at the retained versions one after
    /// another, newest first.
    ///
    /// # Errors
    /// Those of [`rollback_to_block`](Self::rollback_to_block).
    pub fn rollback_to_block_hash(&mut self, hash: B256) -> Result<(), StateError> {
        let to = self.reader().at_block_hash(hash)?.meta().version;
        self.rollback(to)
    }

    /// Forgets the history that `retain` does not cover.
    ///
    /// # Errors
    /// The store's errors.
    pub fn prune(&mut self, retain: Retain) -> Result<PruneStats, StateError> {
        Ok(self.versions.prune(retain)?)
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("State").field(&self.reader()).finish()
    }
}

/// The leaves of a state, written by their keys alone.
pub struct StateLeaves<'a> {
    state: &'a State,
    leaves: &'a dyn Leaves,
}

impl StateLeaves<'_> {
    /// Computes what writes of leaves by their keys, below any account, would make of the state, and what that takes. A
    /// key may occur once.
    ///
    /// # Errors
    /// Index 0; a key that occurs twice; a database whose recovery did not finish; the store's errors.
    pub fn compute(&self, writes: &[LeafWrite]) -> Result<(Computed, LeafStats), StateError> {
        self.state.check_finished()?;
        self.leaves.compute(self.state.versions.view(), writes)
    }

    /// Like [`compute`](Self::compute), with a proof of each write and then of each of some reads, and the root after each.
    ///
    /// # Errors
    /// Those of [`compute`](Self::compute).
    pub fn compute_proven(
        &self,
        writes: &[LeafWrite],
        reads: &[Hash],
    ) -> Result<ProvenLeaves, StateError> {
        self.state.check_finished()?;
        let view = self.state.versions.view();
        self.leaves.compute_proven(view, writes, reads)
    }
}

//! A chain's state in a versioned Merkle-Patricia trie.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_store::{Store, Table, Value, Write};
use arbor_tree::Hash;
use arbor_tree_mpt::{
    InnerPart, OuterUpdate, TreeError, TreeUpdate, apply, apply_inner, apply_outer,
};
use arbor_versions::{
    Change, Changes, DirLock, Identity, Meta, Options, PruneStats, Retain, Version, Versions, View,
    stored_identity,
};
use rayon::prelude::*;

use crate::embedding::{KeyedChange, keyed, tree_updates};
use crate::head::Head;
use crate::history::Historical;
use crate::keys::{ACCOUNTS, CODE, SLOTS, STORAGE_NODES, TABLES, flat_slot_key, node_table};
use crate::pending::PendingRoots;
use crate::snapshot::MptSnapshot;
use crate::{Account, StateChanges, StateError, StateView};

/// Layout of the flat records and node records; a change of either raises it.
const LAYOUT: u32 = 1;

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
}

/// Where the time of [`MptState::compute`] went.
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

    /// Keys and records of the nodes written (`None`: deleted), for a diagnosis.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (&[u8], Option<&[u8]>)> {
        self.changes
            .nodes
            .iter()
            .map(|write| (&write.key[..], write.value.as_deref()))
    }
}

/// A chain's state: flat tables, nodes and history over a store.
pub struct MptState {
    store: Arc<dyn Store>,
    pub(crate) versions: Versions,
}

impl MptState {
    /// Opens or creates the state of a network in a store. `lock` is that of the directory in which
    /// the head record lies; `None` for a store in memory.
    ///
    /// # Errors
    /// A store of another tree, chain, hash or layout; an older copy of the store than the head
    /// record knows; a directory that another process writes.
    pub fn open(
        store: Arc<dyn Store>,
        lock: Option<DirLock>,
        network: Network,
        options: Options,
    ) -> Result<Self, StateError> {
        let identity = identity(network);
        let versions = match stored_identity(&*store)? {
            None => Versions::create(Arc::clone(&store), lock, &identity, &TABLES, options)?,
            Some(_) => Versions::open(Arc::clone(&store), lock, &identity, &TABLES, options)?,
        };
        Ok(Self { store, versions })
    }

    /// The latest version: its block, its root.
    pub fn head(&self) -> Option<&Meta> {
        self.versions.head()
    }

    /// The latest version and the retained ones before it.
    pub fn reader(&self) -> Head<'_> {
        Head(self.versions.view())
    }

    /// Freezes what can be read now, for other threads, while later blocks are committed, flushed and pruned.
    pub fn snapshot(&mut self) -> Result<MptSnapshot, StateError> {
        Ok(MptSnapshot(self.versions.snapshot()?))
    }

    /// The versioned tables below.
    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    /// The root of the latest version; that of the empty trie before genesis.
    pub fn root(&self) -> B256 {
        self.reader().root()
    }

    /// Computes what changes on top of the latest version would make of the state. Called on a thread of a rayon pool,
    /// it spreads large changes over the pool.
    pub fn compute(&self, changes: &StateChanges) -> Result<Computed, StateError> {
        let start = Instant::now();
        let head = self.reader();
        let mut old_values = BTreeMap::new();
        let keyed = keyed(changes, |_, key| {
            let Some(value) = head.account_value(key)? else {
                return Ok(None);
            };
            let record = crate::records::AccountRecord::decode(key, &value)?;
            old_values.insert(*key, value);
            Ok(Some(record))
        })?;
        let updates = tree_updates(&keyed);
        let hashed = Instant::now();
        let update = apply_spread(&head, self.root().0, &updates)?;
        let applied = Instant::now();
        let mut computed = Computed {
            root: update.root.into(),
            changes: Changes::default(),
            timings: Timings {
                keys: hashed - start,
                tree: applied - hashed,
                writes: Duration::ZERO,
            },
        };
        // By table and key, as they are applied fastest.
        for (change, root) in keyed.iter().zip(&update.inner_roots) {
            let old = old_values.remove(&change.key);
            let new = change.new_record(*root).map(|record| record.encode());
            computed.push_flat(ACCOUNTS, &change.key, old, new);
        }
        for change in &keyed {
            self.slot_changes(change, &mut computed)?;
        }
        self.node_changes(&keyed, update, &mut computed)?;
        computed.changes.blobs = code_writes(changes.codes.iter());
        computed.timings.writes = applied.elapsed();
        Ok(computed)
    }

    /// The flat changes of one account's slots. A cleared storage is listed slot by slot.
    fn slot_changes(
        &self,
        change: &KeyedChange<'_>,
        computed: &mut Computed,
    ) -> Result<(), StateError> {
        if !change.clears_storage() {
            for slot in &change.slots {
                let (old, new) = slot.records();
                let key = flat_slot_key(&change.key, &slot.key);
                computed.push_flat(
                    SLOTS,
                    &key,
                    old.map(|r| r.encode()),
                    new.map(|r| r.encode()),
                );
            }
            return Ok(());
        }
        let mut after: BTreeMap<Box<[u8]>, Value> = BTreeMap::new();
        for slot in &change.slots {
            if let Some(record) = slot.records().1 {
                after.insert(
                    flat_slot_key(&change.key, &slot.key).into(),
                    record.encode(),
                );
            }
        }
        for entry in self.versions.view().scan(SLOTS, &change.key, &change.key)? {
            let (key, old) = entry?;
            let new = after.remove(&key);
            computed.push_flat(SLOTS, &key, Some(old), new);
        }
        for (key, new) in after {
            computed.push_flat(SLOTS, &key, None, Some(new));
        }
        Ok(())
    }

    /// The node changes, with every node of a cleared storage trie deleted first.
    fn node_changes(
        &self,
        changes: &[KeyedChange<'_>],
        update: TreeUpdate,
        computed: &mut Computed,
    ) -> Result<(), StateError> {
        let owners = changes
            .iter()
            .filter(|change| change.clears_storage())
            .map(|change| &change.key[..]);
        computed.changes.nodes = node_writes(self.versions.view(), owners, update)?;
        Ok(())
    }

    /// Makes computed changes the latest version. They reach the disk with the next flush.
    pub fn commit(&mut self, block: &BlockRef, computed: Computed) -> Result<(), StateError> {
        let root = computed.root;
        self.commit_run([(block.clone(), root)], computed)
    }

    /// Makes the changes of consecutive blocks, computed together, one version after the other, of which only the last
    /// can be read: see [`Versions::apply_run`]. With each block comes the root that it claims; the last one's is the
    /// computed one.
    pub fn commit_run(
        &mut self,
        blocks: impl IntoIterator<Item = (BlockRef, B256)>,
        computed: Computed,
    ) -> Result<(), StateError> {
        let next = self.head().map_or(0, |head| head.version.0 + 1);
        let meta = |(version, (block, root)): (u64, (BlockRef, B256))| Meta {
            version: Version(version),
            block_number: block.number,
            block_hash: block.hash.0,
            root: root.0,
            extra: block.header,
        };
        let metas = (next..).zip(blocks).map(meta).collect();
        Ok(self.versions.apply_run(metas, computed.changes)?)
    }

    /// Roots of changes laid over the latest version, for receipts from before Byzantium.
    pub fn intermediate_roots(&self) -> PendingRoots<'_> {
        PendingRoots::new(self)
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
        let (flat, nodes) = self.at(to)?.into_writes()?;
        self.versions.rollback(to, flat, nodes)?;
        Ok(())
    }

    /// Forgets the history that `retain` does not cover.
    pub fn prune(&mut self, retain: Retain) -> Result<PruneStats, StateError> {
        Ok(self.versions.prune(retain)?)
    }
}

/// Changed slots from which on storage tries are spread over the threads of a pool.
const SPREAD_FROM: usize = 256;

/// Applies updates, those of different accounts' storage on different threads if the caller runs in a pool.
fn apply_spread(
    head: &Head<'_>,
    root: Hash,
    updates: &[OuterUpdate],
) -> Result<TreeUpdate, StateError> {
    let slots: usize = updates.iter().map(|update| update.inner.len()).sum();
    let threads = match rayon::current_thread_index() {
        Some(_) => rayon::current_num_threads(),
        None => 1,
    };
    if threads == 1 || slots < SPREAD_FROM {
        return Ok(apply(head, root, updates)?);
    }
    // Some more pieces than threads, since accounts differ in size; but few, since a piece fills the hash lanes alone.
    let most = slots.div_ceil(2 * threads);
    let mut weight = 0;
    let pieces = updates.chunk_by(|update, _| {
        weight += update.inner.len();
        let full = weight >= most;
        weight = if full { 0 } else { weight };
        !full
    });
    let pieces: Vec<&[OuterUpdate]> = pieces.collect();
    let parts: Result<Vec<InnerPart>, TreeError> = pieces
        .into_par_iter()
        .map(|piece| apply_inner(head, piece))
        .collect();
    Ok(apply_outer(head, root, updates, parts?)?)
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

/// Node writes of an update, after the deletion of all nodes of the given storage tries.
pub(crate) fn node_writes<'a>(
    view: View<'_>,
    cleared: impl Iterator<Item = &'a [u8]>,
    update: TreeUpdate,
) -> Result<Vec<Write>, StateError> {
    let mut gone: BTreeSet<Box<[u8]>> = BTreeSet::new();
    for owner in cleared {
        for entry in view.scan(STORAGE_NODES, owner, owner)? {
            gone.insert(entry?.0);
        }
    }
    let mut writes = Vec::with_capacity(update.nodes.len() + gone.len());
    for change in update.nodes {
        let key: Box<[u8]> = Box::from(&*change.position.key());
        gone.remove(&key);
        writes.push(Write {
            table: node_table(&change.position),
            key,
            value: change.record,
        });
    }
    writes.extend(gone.into_iter().map(|key| Write {
        table: STORAGE_NODES,
        key,
        value: None,
    }));
    Ok(writes)
}

impl Computed {
    fn push_flat(&mut self, table: Table, key: &[u8], old: Option<Value>, new: Option<Value>) {
        if old != new {
            self.changes.flat.push(Change {
                table,
                key: key.into(),
                old,
                new,
            });
        }
    }
}

impl StateView for MptState {
    fn account(&self, address: Address) -> Result<Option<Account>, StateError> {
        self.reader().account(address)
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, StateError> {
        self.reader().storage(address, slot)
    }

    fn has_storage(&self, address: Address) -> Result<bool, StateError> {
        self.reader().has_storage(address)
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, StateError> {
        self.reader().code(code_hash)
    }
}

pub(crate) fn identity(network: Network) -> Identity {
    Identity {
        tree: "merkle-patricia".into(),
        revision: "yellow-paper".into(),
        hash: "keccak256".into(),
        layout: LAYOUT,
        chain_id: network.chain_id,
        genesis: network.genesis_hash.0,
    }
}

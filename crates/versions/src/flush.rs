//! A flush: one atomic, sorted write that carries the store from one version to another.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Instant;

use arbor_store::{OWNER_BYTES, StoreError, Table, Value, Write};

use crate::cache::CachedStore;
use crate::error::VersionsError;
use crate::head_file::{FlushedVersion, HeadFile, write_head_file};
use crate::identity::{Identity, Schema, TableSpec};
use crate::index::{self, Of};
use crate::kept_nodes::{KeptNodes, since_write};
use crate::layer::{Entries, Layer};
use crate::layout;
use crate::meta::{HeadRecord, Meta, StoredMeta, partly_loaded};
use crate::slot::{Base, Slot};
use crate::stats::FlushStats;
use crate::undo::UndoRecord;
use crate::unflushed::Pending;
use crate::view::stored_meta;

/// Everything that a flush needs, so that it can run beside the writer.
pub(crate) struct FlushJob {
    pub(crate) base: Arc<CachedStore>,
    pub(crate) schema: Arc<Schema>,
    pub(crate) layer: Arc<Layer>,
    /// The versions to store, ascending up to `to.version`.
    pub(crate) pending: Vec<Pending>,
    /// What the store has; `None` before the first flush.
    pub(crate) from: Option<HeadRecord>,
    pub(crate) to: HeadRecord,
    /// The meta of `to.version`.
    pub(crate) head: Arc<Meta>,
    /// Stored versions above this one were rolled back.
    pub(crate) truncate: Option<u64>,
    /// Epochs whose index and mark go.
    pub(crate) drop_epochs: Vec<u64>,
    /// Epochs whose index is to be built afterwards.
    pub(crate) build_epochs: Vec<u64>,
    pub(crate) epoch: u64,
    /// `None` if old nodes are not kept.
    pub(crate) nodes: Option<KeptNodes>,
    /// Epochs whose index of old nodes is to be built afterwards.
    pub(crate) build_node_epochs: Vec<u64>,
    pub(crate) files: Option<Files>,
    pub(crate) ingest_above: usize,
    /// Whether a second thread may help.
    pub(crate) beside: bool,
}

/// Writes that are handed from one thread to another at once, and how often that may happen before they are taken.
const BATCH: usize = 1 << 9;
const AHEAD: usize = 8;

/// Where HEAD lies and what it says of the database.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub(crate) dir: PathBuf,
    pub(crate) identity: Identity,
}

impl Files {
    pub(crate) fn write(&self, head: Option<(&Meta, u64)>) -> Result<(), VersionsError> {
        let head = head.map(|(meta, floor)| FlushedVersion {
            version: meta.version.0,
            floor,
            block_number: meta.block_number,
            block_hash: meta.block_hash,
            root: meta.root,
        });
        let identity = self.identity.clone();
        write_head_file(&self.dir, &HeadFile { identity, head })
    }
}

/// A key of this crate's tables to its new value.
pub(crate) type OwnWrites = BTreeMap<(Table, Box<[u8]>), Option<Value>>;

impl FlushJob {
    /// Makes the versions durable. After an error the store holds either all or nothing of them.
    pub(crate) fn run(&self) -> Result<FlushStats, VersionsError> {
        let start = Instant::now();
        let mut stats = FlushStats {
            flushes: 1,
            versions: self.pending.len() as u64,
            ..FlushStats::default()
        };
        let own = self.own_writes(&mut stats)?;
        self.announce_rollback()?;
        self.write(own, &mut stats)?;
        if let Some(files) = &self.files {
            files.write(Some((&self.head, self.head.version.0)))?;
        }
        let store = self.base.store();
        for &epoch in &self.drop_epochs {
            index::remove(store, Of::Flat, epoch)?;
            index::remove(store, Of::Nodes, epoch)?;
        }
        let nodes = self
            .build_node_epochs
            .iter()
            .map(|epoch| (Of::Nodes, epoch));
        let flat = self.build_epochs.iter().map(|epoch| (Of::Flat, epoch));
        for (of, &epoch) in flat.chain(nodes) {
            stats.bytes.index += index::build(store, of, epoch, self.epoch)?;
        }
        stats.time = start.elapsed();
        Ok(stats)
    }

    /// Writes what of the layer the store does not have, and `own`. Where that is much, one thread compares while another writes.
    fn write(&self, own: OwnWrites, stats: &mut FlushStats) -> Result<(), VersionsError> {
        let much =
            self.layer.content_bytes() as u64 + stats.bytes.total() > self.ingest_above as u64;
        let mut own = own
            .into_iter()
            .map(|((table, key), value)| Write { table, key, value });
        let store = self.base.store();
        let mut comparison = Comparison::new(self, stats);
        // Callers' tables are all below this crate's.
        let written = if !much {
            let writes: Vec<Write> = comparison.changes().chain(own).collect();
            store.write(&writes, true)
        } else if let Some(written) = self.ingest_beside(&mut comparison, &mut own) {
            written
        } else {
            store.ingest(&mut comparison.changes().chain(own))
        };
        written.map_err(VersionsError::store("flushing"))?;
        comparison.failure.take().map_or(Ok(()), Err)
    }

    /// Ingests what a thread finds to have changed, and then `own`; `None` if there is to be no such thread or cannot be.
    fn ingest_beside(
        &self,
        comparison: &mut Comparison<'_>,
        own: &mut dyn Iterator<Item = Write>,
    ) -> Option<Result<(), StoreError>> {
        if !self.beside {
            return None;
        }
        thread::scope(|scope| {
            let (sender, batches) = sync_channel(AHEAD);
            let compare = move || {
                let mut changes = comparison.changes();
                loop {
                    let batch: Vec<Write> = changes.by_ref().take(BATCH).collect();
                    let last = batch.is_empty();
                    // Nobody listens when the store has failed.
                    if sender.send((!last).then_some(batch)).is_err() || last {
                        return;
                    }
                }
            };
            thread::Builder::new().spawn_scoped(scope, compare).ok()?;
            // What was not compared to its end must not be written as if it were.
            let next = || batches.recv().expect("invariant: the end is sent");
            let batches = std::iter::from_fn(next).inspect(|batch| warm(batch));
            let writes = batches.flatten();
            Some(self.base.store().ingest(&mut writes.chain(own)))
        })
    }

    /// The HEAD file must allow a lower version before the store goes there.
    fn announce_rollback(&self) -> Result<(), VersionsError> {
        let (Some(files), Some(_), Some(from)) = (&self.files, self.truncate, self.from) else {
            return Ok(());
        };
        let stored = stored_meta(&*self.base, from.version)?;
        let floor = self.to.version.min(from.version);
        files.write(Some((&stored.meta, floor)))
    }

    fn own_writes(&self, stats: &mut FlushStats) -> Result<OwnWrites, VersionsError> {
        let mut writes = OwnWrites::new();
        match self.from {
            Some(from) => {
                self.delete_rolled_back(from, &mut writes)?;
                let (start, before) = (Instant::now(), writes.len());
                self.delete_unretained(from, &mut writes)?;
                stats.pruned_keys = (writes.len() - before) as u64;
                stats.prune_time = start.elapsed();
            }
            // With its first version a database that was loaded is whole.
            None if partly_loaded(&*self.base)? => {
                writes.insert((layout::SYSTEM, layout::LOADING_KEY.into()), None);
            }
            None => {}
        }
        for pending in &self.pending {
            self.store_version(pending, &mut writes);
        }
        for &epoch in &self.drop_epochs {
            for of in [Of::Flat, Of::Nodes] {
                writes.insert((layout::SYSTEM, of.mark(epoch)), None);
            }
        }
        if let Some(kept) = &self.nodes {
            for (version, record) in &kept.rewritten {
                store_nodes(*version, record, &mut writes);
            }
            let Write { table, key, value } = since_write(kept.since);
            writes.insert((table, key), value);
        }
        let head = Value::from(self.to.encode());
        writes.insert((layout::SYSTEM, layout::HEAD_KEY.into()), Some(head));
        for ((table, key), value) in &writes {
            let bytes = (key.len() + value.as_ref().map_or(0, |value| value.len())) as u64;
            match *table {
                layout::UNDO => stats.bytes.undo += bytes,
                layout::OLD_NODES => stats.bytes.old_nodes += bytes,
                _ => stats.bytes.meta += bytes,
            }
        }
        Ok(writes)
    }

    fn store_version(&self, pending: &Pending, writes: &mut OwnWrites) {
        let meta = &pending.meta;
        let version = meta.version.0;
        let mut chunks = 0;
        debug_assert_eq!(pending.undo.is_some(), self.to.keeps_undo(version));
        if let Some(undo) = &pending.undo {
            for chunk in &undo.chunks {
                let key = layout::undo_key(version, chunks);
                writes.insert((layout::UNDO, key.into()), Some(chunk.clone()));
                chunks += 1;
            }
        }
        if let Some(nodes) = &pending.nodes {
            store_nodes(version, nodes, writes);
        }
        if self.to.keeps_meta(version) {
            let key = version.to_be_bytes();
            let value = Value::from(StoredMeta::encode(meta, chunks));
            writes.insert((layout::META, key.into()), Some(value));
            let number = meta.block_number.to_be_bytes();
            writes.insert((layout::BLOCK, number.into()), Some(Value::from(key)));
        }
    }
}

/// Stores the nodes that a version keeps of the one before.
fn store_nodes(version: u64, record: &UndoRecord, writes: &mut OwnWrites) {
    for (chunk, bytes) in (0..).zip(&record.chunks) {
        let key = layout::undo_key(version, chunk);
        writes.insert((layout::OLD_NODES, key.into()), Some(bytes.clone()));
    }
}

/// Brings the keys of writes that another thread has made into this one's caches. The reads do not depend on each other, so that they are under way together.
fn warm(writes: &[Write]) {
    let firsts = writes.iter().filter_map(|write| write.key.first());
    black_box(firsts.fold(0, |sum: u8, first| sum.wrapping_add(*first)));
}

/// The entries of one table, or of those by owner, whose numbers ascend: owner by owner, of each those of the first table first.
fn together<'a>(
    tables: Vec<(&'a TableSpec, Entries<'a>)>,
) -> impl Iterator<Item = (&'a TableSpec, Box<[u8]>, &'a Slot)> {
    let mut tables: Vec<_> = tables
        .into_iter()
        .map(|(spec, entries)| (spec, entries.peekable()))
        .collect();
    std::iter::from_fn(move || {
        let next = tables
            .iter_mut()
            .enumerate()
            .filter_map(|(place, (_, entries))| {
                let (key, _) = entries.peek()?;
                Some((&key[..key.len().min(OWNER_BYTES)], place))
            });
        let (_, place) = next.min()?;
        let (spec, entries) = &mut tables[place];
        let (key, slot) = entries.next()?;
        Some((*spec, key, slot))
    })
}

/// What of a layer is not in the store as it is, found while it is written.
struct Comparison<'a> {
    job: &'a FlushJob,
    stats: &'a mut FlushStats,
    /// More than the cache has room for would drive out what is used: what is new and was never looked for stays outside then.
    floods: bool,
    /// Of the store, when it was asked whether a key is there. The key is then written as if it were, which is right in any case.
    failure: Option<VersionsError>,
}

impl<'a> Comparison<'a> {
    fn new(job: &'a FlushJob, stats: &'a mut FlushStats) -> Self {
        Self {
            floods: job.layer.bytes() as u64 > job.base.budget(),
            job,
            stats,
            failure: None,
        }
    }

    /// The writes, ascending [by table and key](Write::cmp_place).
    fn changes(&mut self) -> impl Iterator<Item = Write> {
        let job = self.job;
        let of = |(position, spec): (usize, &'a TableSpec)| (spec, job.layer.entries(position));
        let specs = job.schema.specs();
        let group = |spec: &TableSpec| spec.table.group();
        let entries = specs
            .chunk_by(move |a, b| group(a).is_some() && group(a) == group(b))
            .scan(0, |begin, together| {
                let positions = *begin..;
                *begin += together.len();
                Some(positions.zip(together))
            })
            .flat_map(move |tables| together(tables.map(of).collect()));
        entries.filter_map(|(spec, key, slot)| self.change(spec, key, slot))
    }

    /// What a key's entry changes, if it does. The cache takes it over at once, while what it has of the key is at hand: until the flush is done the layer is read first,
    /// and when it fails the cache is cleared.
    fn change(&mut self, spec: &TableSpec, key: Box<[u8]>, slot: &Slot) -> Option<Write> {
        let (base, table, value) = (&*self.job.base, spec.table, slot.value.as_ref());
        let known = base.peek(table, &key);
        let is_known = known.is_some();
        let same = match (known, value) {
            (Some(stored), _) => stored.as_ref() == value,
            // Deleting what is not there would only leave a tombstone behind.
            (None, None) => slot.base != Base::Present && !self.is_stored(table, &key),
            (None, Some(_)) => false,
        };
        if same {
            self.stats.skipped += 1;
            return None;
        }
        self.stats.keys += 1;
        let bytes = key.len() + value.map_or(0, |value| value.len());
        *self.stats.bytes.of_kind(spec.kind) += bytes as u64;
        if is_known || slot.base != Base::Absent || !self.floods {
            base.insert(table, &key, value);
        }
        let value = value.cloned();
        Some(Write { table, key, value })
    }

    fn is_stored(&mut self, table: Table, key: &[u8]) -> bool {
        match self.job.base.store().get(table, key) {
            Ok(stored) => stored.is_some(),
            Err(error) => {
                let told = VersionsError::store("looking before a delete")(error);
                self.failure.get_or_insert(told);
                true
            }
        }
    }
}

impl Drop for Comparison<'_> {
    /// After a panic the cache would tell of what may not have been written.
    fn drop(&mut self) {
        if thread::panicking() {
            self.job.base.clear();
        }
    }
}

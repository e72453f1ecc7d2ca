//! What the versions did: for reports.

use std::time::Duration;

use crate::identity::TableKind;

/// Bytes of keys and values handed to the store, by what they are for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WrittenBytes {
    /// Callers' flat tables.
    pub flat: u64,
    /// Callers' tables of nodes.
    pub nodes: u64,
    /// Callers' blobs.
    pub blobs: u64,
    /// Undo records, and the keys of those deleted.
    pub undo: u64,
    /// Old nodes, and the keys of those deleted.
    pub old_nodes: u64,
    /// Index epochs.
    pub index: u64,
    /// Metas, block numbers and the head record.
    pub meta: u64,
}

impl WrittenBytes {
    /// Returns the sum.
    pub fn total(&self) -> u64 {
        self.flat + self.nodes + self.blobs + self.undo + self.old_nodes + self.index + self.meta
    }

    pub(crate) fn of_kind(&mut self, kind: TableKind) -> &mut u64 {
        match kind {
            TableKind::Flat => &mut self.flat,
            TableKind::Nodes => &mut self.nodes,
            TableKind::Blobs => &mut self.blobs,
        }
    }

    fn add(&mut self, other: &Self) {
        self.flat += other.flat;
        self.nodes += other.nodes;
        self.blobs += other.blobs;
        self.undo += other.undo;
        self.old_nodes += other.old_nodes;
        self.index += other.index;
        self.meta += other.meta;
    }
}

/// What flushes wrote: of one, or of all since opening.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FlushStats {
    /// Flushes.
    pub flushes: u64,
    /// Versions that became durable.
    pub versions: u64,
    /// Keys of callers' tables written or deleted.
    pub keys: u64,
    /// Changed keys that needed no write: the store already had the value.
    pub skipped: u64,
    /// Bytes handed to the store.
    pub bytes: WrittenBytes,
    /// Records of versions that retention no longer keeps: undo, metas, block numbers.
    pub pruned_keys: u64,
    /// Time for finding these.
    pub prune_time: Duration,
    /// Time from the start of a flush until it was durable, index building included.
    pub time: Duration,
}

impl FlushStats {
    pub(crate) fn add(&mut self, other: &Self) {
        self.flushes += other.flushes;
        self.versions += other.versions;
        self.keys += other.keys;
        self.skipped += other.skipped;
        self.bytes.add(&other.bytes);
        self.pruned_keys += other.pruned_keys;
        self.prune_time += other.prune_time;
        self.time += other.time;
    }
}

/// What pruning removed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PruneStats {
    /// Versions that can no longer be read.
    pub versions: u64,
    /// Index epochs removed.
    pub epochs: u64,
}

/// The state of open [`Versions`](crate::Versions).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Flushes since opening that have finished.
    pub flush: FlushStats,
    /// Bytes of unflushed values, overhead estimated, a flush in progress included.
    pub dirty_bytes: u64,
    /// Bytes of undo that waits for a flush.
    pub pending_undo_bytes: u64,
    /// Bytes in the clean cache.
    pub cache_bytes: u64,
    /// Reads of the head by key that unflushed versions answered.
    pub unflushed_hits: u64,
    /// Those that the clean cache answered.
    pub cache_hits: u64,
    /// Those that went to the store.
    pub cache_misses: u64,
    /// Time that `apply` and others waited for a flush.
    pub flush_wait: Duration,
}

//! Settings of an open database.

/// How much history is kept besides the head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retain {
    /// Only the head can be read; nothing can be rolled back.
    None,
    /// The head and this many versions before it.
    Last(u64),
    /// Every version since the database began or was last pruned.
    All,
}

/// Settings of [`Versions`](crate::Versions). All may change between one opening and the next,
/// except [`epoch`](Options::epoch).
#[derive(Clone, Debug)]
pub struct Options {
    /// Budget of the clean cache in bytes, keys and overhead counted; zero for none at all.
    pub cache_bytes: u64,
    /// A flush begins when unflushed data exceed this many bytes, overhead and undo counted.
    /// While it runs in the background up to as much again is taken by newer versions, and by what was flushed before until that is given back.
    pub dirty_bytes: usize,
    /// History to keep.
    pub retain: Retain,
    /// Versions before the oldest readable one whose metas are kept. A caller that looks back on earlier versions from a readable one needs theirs.
    pub metas_below: u64,
    /// Make every version durable before `apply` returns.
    pub durable_each: bool,
    /// Let flushes that the budget causes run on a thread of their own, and each have a second one's help. Without it,
    /// the clean cache evicts the same entries in every process, so that the same work reads the same keys from the
    /// store. Large pieces of memory that nobody needs any more are given back by a thread in any case.
    pub background: bool,
    /// Flushes of fewer bytes or about as many go through the store's journal instead of a bulk ingestion.
    pub ingest_above: usize,
    /// Largest undo chunk in bytes; a single longer value makes a longer chunk.
    pub undo_chunk: usize,
    /// Keep the nodes of older versions from the head on, as [`Versions::keep_nodes`](crate::Versions::keep_nodes) does. Without it a database goes on as
    /// it was.
    pub keep_nodes: bool,
    /// Versions an index epoch, 2 to 65,536. Fixed when the database is created.
    pub epoch: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 256 << 20,
            dirty_bytes: 64 << 20,
            retain: Retain::Last(128),
            metas_below: 0,
            durable_each: false,
            background: true,
            ingest_above: 1 << 20,
            undo_chunk: 1 << 20,
            keep_nodes: false,
            epoch: 1024,
        }
    }
}

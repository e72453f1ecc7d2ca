//! What a load test finds: of each block, of each run of blocks, and of the database at the end.

use alloy_primitives::B256;
use arbor_state::LeafStats;
use serde::Serialize;

/// What a block took.
#[derive(Clone, Debug, Serialize)]
pub struct BlockFigures {
    /// Its number.
    pub block: u64,
    /// The root after it.
    pub root: B256,
    /// Seconds from its writes to its version, reads included.
    pub wall_s: f64,
    /// Seconds of these for reading.
    pub reads_s: f64,
    /// For the leaves that are written, with their keys: what the state is given.
    pub leaves_s: f64,
    /// For the old records of what is written.
    pub keys_s: f64,
    /// For the tree: nodes read, leaves placed, hashes.
    pub tree_s: f64,
    /// For forming records.
    pub records_s: f64,
    /// For handing the version over, waiting for flushes included.
    pub commit_s: f64,
    /// Leaves there are.
    pub leaves: u64,
    /// The oldest version that can be read.
    pub oldest_version: u64,
    /// Records of versions that were pruned, in flushes that ended meanwhile.
    pub pruned_keys: u64,
    /// Seconds for finding them; that they are deleted is part of these flushes' batches.
    pub prune_s: f64,
    /// Bytes handed to the store by flushes that ended meanwhile.
    pub batch_bytes: u64,
    /// Operations proven.
    pub proofs: u64,
    /// What happened in the tree, where the tree tells.
    pub tree: Option<TreeFigures>,
    /// Bytes in memory that no flush has taken.
    pub dirty_bytes: u64,
    /// Leaves that were there and were read: those that the block reads, not those whose old values its writes need.
    pub key_reads: u64,
    /// Reads of records by key, of nodes and of leaves, that versions answered which no flush has written.
    pub unflushed_hits: u64,
    /// Those that the cache above the store answered, and that went to the store.
    pub cache_hits: u64,
    /// As above.
    pub cache_misses: u64,
    /// Bytes that the process has really written since the first of these blocks, or since the first that changes leaves alone.
    pub written_bytes: Option<u64>,
}

/// What happened in an AR16MT.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TreeFigures {
    /// Leaves that came.
    pub new_leaves: u64,
    /// Times that a leaf had to go deeper, since another came beside it.
    pub moved_leaves: u64,
    /// Leaves with new values.
    pub updated_leaves: u64,
    /// Internal nodes that came.
    pub new_internal_nodes: u64,
    /// Bits from the root to new and moved leaves, on average.
    pub avg_leaf_level: f64,
    /// Bits from the root to the deepest of them.
    pub max_leaf_level: u64,
    /// Nodes read.
    pub nodes_read: u64,
    /// Nodes written.
    pub nodes_written: u64,
    /// Bytes of the messages that were hashed: 40 for a leaf, 64 for a node.
    pub hashed_bytes: u64,
    /// Hashes for each leaf written: all of the next three.
    pub hashes_per_leaf: f64,
    /// Those of leaves and of their chains up to the checkpoint.
    pub fold_hashes_per_leaf: f64,
    /// Those of chains from there to the leaves' places.
    pub rise_hashes_per_leaf: f64,
    /// Those within nodes.
    pub node_hashes_per_leaf: f64,
    /// Seconds of all threads for reading nodes.
    pub load_s: f64,
    /// For placing leaves and forming records.
    pub place_s: f64,
    /// For hashing.
    pub hash_s: f64,
}

/// A table's contents.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TableSize {
    /// Its name.
    pub table: &'static str,
    /// Its records.
    pub records: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
}

/// What a run of blocks took, its flush included.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Run {
    /// Seconds for all blocks and the flush after the last.
    pub wall_s: f64,
    /// Leaves that came, or were changed where none come, in a second of these.
    pub writes_per_second: f64,
    /// Seconds between blocks: for drawing leaves, for checking proofs, for telling what a block took.
    pub between_s: f64,
    /// Seconds for the flush after the last block, which is none of any block's.
    pub flush_s: f64,
    /// Bytes that it, and flushes that ended behind the last block, handed to the store.
    pub flush_batch_bytes: u64,
    /// Records of pruned versions that these deleted.
    pub flush_pruned_keys: u64,
    /// Seconds for finding them.
    pub flush_prune_s: f64,
    /// Seconds of the processor for all of these, over all threads.
    pub cpu_s: Option<f64>,
    /// Bytes really written meanwhile.
    pub written_bytes: Option<u64>,
    /// Milliseconds of a block within which a half, nine tenths, 99 hundredths and all of them were done.
    pub block_ms: [f64; 4],
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// The last block that is in, if the test was stopped there: then the store's files were not merged, nothing was checked, and no table was counted.
    pub stopped_after: Option<u64>,
    /// Leaves written.
    pub leaves: u64,
    /// The last root.
    pub root: B256,
    /// The blocks that bring leaves.
    #[serde(flatten)]
    pub new: Run,
    /// Those that change leaves alone, where there are some.
    pub updates: Option<Run>,
    /// The process's most memory by then.
    pub peak_rss_bytes: Option<u64>,
    /// Bytes of the store's files by then.
    pub disk_bytes: Option<u64>,
    /// Seconds for merging the store's files.
    pub compact_s: Option<f64>,
    /// Bytes of the store's files after that.
    pub compacted_bytes: Option<u64>,
    /// The contents, table by table.
    pub tables: Vec<TableSize>,
    /// Seconds for the check of the whole database.
    pub verify_s: Option<f64>,
    /// Seconds of the processor for it, over all threads.
    pub verify_cpu_s: Option<f64>,
    /// Nodes that it rebuilt.
    pub verified_nodes: Option<u64>,
    /// Older versions that it rebuilt.
    pub verified_versions: Option<u64>,
    /// Block by block.
    pub blocks: Vec<BlockFigures>,
}

/// Returns the figures of a block that its tree counts.
pub(super) fn figures(stats: &LeafStats) -> TreeFigures {
    let written = stats.new_leaves + stats.updated_leaves;
    let hashes = stats.fold_hashes + stats.rise_hashes + stats.node_hashes;
    let per = |sum: f64, count: u64| if count == 0 { 0.0 } else { sum / count as f64 };
    TreeFigures {
        new_leaves: stats.new_leaves,
        moved_leaves: stats.moved_leaves,
        updated_leaves: stats.updated_leaves,
        new_internal_nodes: stats.new_internals,
        avg_leaf_level: per(
            stats.level_sum as f64,
            stats.new_leaves + stats.moved_leaves,
        ),
        max_leaf_level: stats.level_max,
        nodes_read: stats.nodes_read,
        nodes_written: stats.nodes_written,
        hashed_bytes: stats.hashed_bytes,
        hashes_per_leaf: per(hashes as f64, written),
        fold_hashes_per_leaf: per(stats.fold_hashes as f64, written),
        rise_hashes_per_leaf: per(stats.rise_hashes as f64, written),
        node_hashes_per_leaf: per(stats.node_hashes as f64, written),
        load_s: stats.load.as_secs_f64(),
        place_s: stats.place.as_secs_f64(),
        hash_s: stats.hash.as_secs_f64(),
    }
}

/// Returns the milliseconds within which a half, nine tenths, 99 hundredths and all of the blocks were done.
pub(super) fn percentiles(blocks: &[BlockFigures]) -> [f64; 4] {
    let mut times: Vec<f64> = blocks.iter().map(|block| 1e3 * block.wall_s).collect();
    times.sort_unstable_by(f64::total_cmp);
    [0.5, 0.9, 0.99, 1.0].map(|part: f64| {
        let rank = (part * times.len() as f64).ceil() as usize;
        times
            .get(rank.saturating_sub(1))
            .copied()
            .unwrap_or_default()
    })
}

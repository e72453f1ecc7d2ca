//! What a caller may choose, and how fjall is set up.

use std::sync::Arc;

use fjall::compaction::Leveled;
use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
    HashRatioPolicy, PartitioningPolicy, PinningPolicy, RestartIntervalPolicy,
};
use fjall::{CompressionType, KeyspaceCreateOptions};

/// Settings of a [`FjallStore`](crate::FjallStore). Those that shape files (all but the cache and
/// `create`) count when the database is created, and are read from it afterwards.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Bytes of the cache for data blocks, and for the blocks of indexes and filters of ingested files. Other indexes and filters are in memory beside it: some 3 % of the database's size.
    pub cache_bytes: u64,
    /// Bytes of `write`s that are kept in memory, and in the journal, before they become a table
    /// file. Ingestion does not pass here.
    pub memtable_bytes: u64,
    /// Number of table files in level 0 that starts a merge; an ingestion makes one per 64 MiB. Higher
    /// means fewer bytes written and more files per read. At most 16: fjall slows writes down at 20.
    pub level0_files: u8,
    /// Bytes of a data block before compression.
    pub block_bytes: u32,
    /// Bits per key of the filters of levels 0 to 5.
    pub filter_bits: f32,
    /// Bits per key of the last level's filter, which has most of the keys.
    pub last_filter_bits: f32,
    /// Compress data blocks with LZ4.
    pub compress: bool,
    /// Create the database if there is none.
    pub create: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 256 << 20,
            memtable_bytes: 16 << 20,
            level0_files: 12,
            block_bytes: 4 << 10,
            filter_bits: 12.0,
            last_filter_bits: 10.0,
            compress: false,
            create: true,
        }
    }
}

/// Target size of a table file in bytes; the size fjall's own ingestion uses.
const TABLE_BYTES: u64 = 64 << 20;

/// Levels whose filters and indexes are cut into blocks: the first, whose settings ingestion takes. fjall does not pin an ingested file's filter, so that a whole one, of hundreds of
/// kilobytes, would be read again for a single key whenever the cache has dropped it.
const PARTITIONED: [bool; 3] = [false, true, false];

impl Options {
    pub(crate) fn keyspace(&self) -> KeyspaceCreateOptions {
        let bloom = |bits| FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(bits));
        let mut filters = vec![bloom(self.filter_bits); 6];
        filters.push(bloom(self.last_filter_bits));
        let compression = if self.compress {
            CompressionType::Lz4
        } else {
            CompressionType::None
        };
        KeyspaceCreateOptions::default()
            .compaction_strategy(Arc::new(
                Leveled::default()
                    .with_l0_threshold(self.level0_files)
                    .with_table_target_size(TABLE_BYTES),
            ))
            .max_memtable_size(self.memtable_bytes)
            .data_block_size_policy(BlockSizePolicy::all(self.block_bytes))
            .data_block_compression_policy(CompressionPolicy::all(compression))
            .index_block_compression_policy(CompressionPolicy::all(CompressionType::None))
            .data_block_restart_interval_policy(RestartIntervalPolicy::all(16))
            .data_block_hash_ratio_policy(HashRatioPolicy::all(0.0))
            .filter_policy(FilterPolicy::new(filters))
            .filter_block_pinning_policy(PinningPolicy::all(true))
            .index_block_pinning_policy(PinningPolicy::all(true))
            .filter_block_partitioning_policy(PartitioningPolicy::new(PARTITIONED))
            .index_block_partitioning_policy(PartitioningPolicy::new(PARTITIONED))
    }
}

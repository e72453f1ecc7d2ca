//! What a caller may choose, and how RocksDB is set up.

use rocksdb::{BlockBasedOptions, Cache, DBCompressionType, LogLevel};

/// Settings of a [`RocksStore`](crate::RocksStore).
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Bytes of the block cache; indexes and filters are kept in memory beside it.
    pub cache_bytes: u64,
    /// Bytes of `write`s that are kept in memory before they become a table file.
    pub memtable_bytes: usize,
    /// Number of files in level 0 that starts a merge; ingestions that overlap what is stored
    /// make one per 64 MiB.
    pub level0_files: u16,
    /// Bytes of a data block.
    pub block_bytes: usize,
    /// Bits per key of the filters.
    pub filter_bits: f64,
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
            filter_bits: 10.0,
            create: true,
        }
    }
}

/// Target size of a table file in bytes, ingested or merged.
pub(crate) const TABLE_BYTES: u64 = 64 << 20;

impl Options {
    pub(crate) fn database(&self) -> rocksdb::Options {
        let mut blocks = BlockBasedOptions::default();
        let cache_bytes = usize::try_from(self.cache_bytes).unwrap_or(usize::MAX);
        blocks.set_block_cache(&Cache::new_lru_cache(cache_bytes));
        blocks.set_block_size(self.block_bytes);
        blocks.set_bloom_filter(self.filter_bits, false);
        blocks.set_cache_index_and_filter_blocks(false);

        let level0_files = i32::from(self.level0_files);
        let mut options = rocksdb::Options::default();
        options.create_if_missing(self.create);
        options.set_block_based_table_factory(&blocks);
        // Keys are hashes and values mostly contain hashes.
        options.set_compression_type(DBCompressionType::None);
        options.set_write_buffer_size(self.memtable_bytes);
        options.set_max_total_wal_size(64 << 20);
        options.set_target_file_size_base(TABLE_BYTES);
        options.set_max_bytes_for_level_base(TABLE_BYTES * u64::from(self.level0_files));
        options.set_level_zero_file_num_compaction_trigger(level0_files);
        options.set_level_zero_slowdown_writes_trigger(2 * level0_files);
        options.set_level_zero_stop_writes_trigger(3 * level0_files);
        options.set_level_compaction_dynamic_level_bytes(true);
        options.set_max_background_jobs(2);
        options.set_max_open_files(512);
        // The default, 4 MB, is more than a small database.
        options.set_manifest_preallocation_size(64 << 10);
        options.set_log_level(LogLevel::Warn);
        options.set_keep_log_file_num(2);
        options.set_stats_dump_period_sec(0);
        options
    }
}

//! The store trait over RocksDB.

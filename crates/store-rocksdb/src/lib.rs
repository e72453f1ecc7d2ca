//! The store trait over [RocksDB](https://rocksdb.org).
//!
//! One column family holds every table, under the [keys](arbor_store::engine_key) of all in one order, as in the fjall
//! store: an ingestion over several tables is then one atomic call.
//!
//! # How writes reach the disk
//!
//! - [`ingest`](arbor_store::Store::ingest) writes sorted table files into the folder `ingest`
//!   below the database and hands them over in one `IngestExternalFile` call, which links them in,
//!   syncs them, and records them in the manifest in one edit. Files that a crash leaves in
//!   `ingest` are deleted at the next opening.
//! - [`write`](arbor_store::Store::write) goes through the write-ahead log, synced if durable.
//! - [`delete_prefix`](arbor_store::Store::delete_prefix) is one range tombstone.
//!
//! # Reading beside a writer
//!
//! [`RocksStore::open_to_read`] opens the database as what RocksDB calls a secondary instance: it takes no lock, reads the manifest and
//! the write-ahead log as they are now, keeps every table file open, and has its own log in a folder of the system's temporary
//! directory, `arbor-reading-XXXXXX`, which the next reader removes where this one is killed. It is never told to catch up, so what it shows does not change.
//!
//! # Building
//!
//! The crate `rocksdb` 0.25 compiles its own RocksDB 11.8: a C++20 compiler, libclang (`libclang-dev`;
//! bindgen reads the C header), and some 20 minutes on two cores. That is why no other crate
//! depends on this one but behind the feature `rocksdb`. A shared library of a near version can be
//! linked instead: `ROCKSDB_LIB_DIR` names its folder (leave `ROCKSDB_INCLUDE_DIR` unset, so that
//! the crate's own header is read). Debian 12's 7.8.3 (`librocksdb-dev`) is too old to link as it
//! is: of all that this store reaches, `rocksdb_write_buffer_manager_destroy` is missing, which is
//! only called where a write buffer manager was set. With an empty function of that name preloaded, the
//! tests pass on it; that is a way to try them without the long build, not one to ship.
//!
//! # Limits
//!
//! RocksDB's C interface reports no error from a manual compaction, so `compact` cannot either.

mod errors;
mod options;
mod reading;
mod store;

pub use options::Options;
pub use store::RocksStore;

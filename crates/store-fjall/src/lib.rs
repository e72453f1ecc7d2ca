//! The store trait over [fjall](https://docs.rs/fjall), the embedded default.
//!
//! One fjall keyspace (one LSM tree) holds every table, with the table's byte before each key, so
//! that an ingestion over several tables is one version change of one tree.
//!
//! # How writes reach the disk
//!
//! - [`ingest`](arbor_store::Store::ingest) streams into table files, level 0, with no journal. In
//!   lsm-tree 3.1.10 each table file is synced with its folder when finished; then a new version
//!   file that lists them is written and synced, and the file `current`, which names the version,
//!   is replaced by rename and its folder synced. That replacement is the moment of commitment: a crash
//!   before it leaves files that the next opening deletes. What is still in the memtable is flushed to a table of its own
//!   first, so that the order of calls holds.
//! - [`write`](arbor_store::Store::write) goes to the journal and the memtable; with `durable`
//!   the journal is synced. A batch carries a checksum, and a torn one is cut off at opening.
//! - The journal file is created with a length of 64 MiB, which is sparse: it occupies what was
//!   written to it, which is what `disk_bytes` counts.
//!
#![doc = include_str!("../SETTINGS.md")]
#![forbid(unsafe_code)]

mod errors;
mod folder;
mod options;
mod reading;
mod store;

pub use options::Options;
pub use store::FjallStore;

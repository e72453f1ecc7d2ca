//! The key-value store under every tree.
//!
//! A narrow contract: tables of ordered byte keys, point reads, ordered scans, atomic batches,
//! sorted ingestion and snapshots. [`MemoryStore`] is the reference; the persistent stores live in
//! crates of their own and must pass the same [`conformance`] suite.
//!
//! The contract in short:
//!
//! - A *table* is one byte; keys of different tables never mix. A key is any bytes, also none, of
//!   at most [`MAX_KEY_BYTES`] (in tables [by owner](Table::is_by_owner) of at least [`OWNER_BYTES`]). Keys are ordered as unsigned bytes, a prefix before what extends it.
//! - [`Store::write`] and [`Store::ingest`] are atomic: a reader, and a database opened after a
//!   crash, sees all of a call or nothing of it. Calls take effect in the order they return.
//! - A [`Reader`] made by [`Store::snapshot`] never changes, and may be used from any thread.
//!
//! [`disk::Disk`] counts what a store is asked for, and can make it as slow as a slow disk would. With the feature `faulty` there is also a store that fails when told to, for tests.
//!
//! ```
//! use arbor_store::{MemoryStore, Reader, Store, Table, Write};
//!
//! const NAMES: Table = Table(7);
//! let store = MemoryStore::default();
//! store.write(&[Write::put(NAMES, b"alice", b"1"), Write::put(NAMES, b"bob", b"2")], true)?;
//! let before = store.snapshot()?;
//! store.write(&[Write::delete(NAMES, b"bob")], false)?;
//!
//! assert_eq!(before.get(NAMES, b"bob")?.as_deref(), Some(&b"2"[..]));
//! assert_eq!(store.scan(NAMES, b"", b"")?.count(), 1);
//! # Ok::<(), arbor_store::StoreError>(())
//! ```
#![forbid(unsafe_code)]

mod block_map;
pub mod conformance;
mod contract;
pub mod disk;
mod engine_key;
mod error;
#[cfg(feature = "faulty")]
pub mod faulty;
mod folder;
mod key_range;
mod memory;
mod order;
mod overlay;
mod short_key;
mod temporary_folder;
mod write;

pub use contract::{Reader, Scan, Store};
pub use engine_key::{EngineRange, engine_key, with_engine_key};
pub use error::{Cause, StoreError};
pub use folder::{LockedFolder, if_there, occupied_bytes, sync_name};
pub use key_range::KeyRange;
pub use memory::MemoryStore;
pub use order::{Ascending, check_key};
pub use overlay::OverlayStore;
pub use short_key::ShortKey;
pub use temporary_folder::{TemporaryFolder, TemporaryUse};
pub use write::{MAX_KEY_BYTES, OWNER_BYTES, Table, Value, Write};

//! Versioned tables of opaque bytes: write-back cache, atomic flush, reverse diffs.
//!
//! A database is a sequence of versions of some tables. The store holds the newest flushed version
//! in place; the past is one *undo* record per version, with the old value of every flat key that
//! the version changed:
//!
//! ```text
//! state(v - 1) = state(v) overwritten with undo(v)
//! ```
//!
//! Changes stay in memory, merged, until they exceed a budget. Then one atomic write carries all of
//! them to the store, with the undo of the versions that are retained and the head record. After a
//! crash the database opens at the last flushed version, whole.
//!
//! - [`Versions`] is the writer: [`apply`](Versions::apply), [`flush`](Versions::flush),
//!   [`rollback`](Versions::rollback), [`prune`](Versions::prune).
//! - [`View`] reads: the head, and any retained version.
//! - [`Snapshot`] is a view that other threads keep while the writer goes on, and how another process reads. Versions that no writer has
//!   are laid over one ([`Snapshot::with_version`]).
//! - [`Identity`] says what a database is; opening it as anything else is an error.
//! - [`Snapshot::verify_records`] checks all records against each other.
//! - [`read_head_file`] tells where a database stands without opening it.
//!
//! Tables are of three [kinds](TableKind): flat ones have history, nodes are derived from them by
//! the caller, blobs never change. This crate knows neither trees nor accounts. The stored form is
//! described in `docs/design/storage-format.md`.
#![forbid(unsafe_code)]

mod cache;
mod changes;
mod difference;
mod error;
mod filters;
mod flush;
mod hashed;
mod head_file;
mod history;
mod identity;
mod index;
mod inspect;
mod kept_nodes;
mod layer;
mod layout;
mod load;
mod meta;
mod node_keeping;
mod old_nodes;
mod open;
mod open_id;
mod options;
mod ordered;
mod pins;
mod pruning;
mod put;
mod slot;
mod snapshot;
mod space;
mod stats;
mod uncommitted;
mod undo;
mod unflushed;
mod verify;
mod version;
mod versions;
mod view;

pub use changes::{Change, Changes};
pub use error::VersionsError;
pub use head_file::{DirLock, DirReader, FlushedVersion, HeadFile, read_head_file};
pub use identity::{Identity, MovesTo, TableKind, TableSpec};
pub use inspect::{OWN_TABLES, UNDO_TABLE, UndoEntry, undo_entries};
pub use meta::Meta;
pub use open::stored_identity;
pub use open_id::OpenId;
pub use options::{Options, Retain};
pub use pins::Pin;
pub use snapshot::Snapshot;
pub use space::{MOVE, OTHER_SPACE, has_space, in_other_space};
pub use stats::{FlushStats, PruneStats, Stats, WrittenBytes};
pub use verify::RecordCounts;
pub use version::Version;
pub use versions::Versions;
pub use view::{Entries, Entry, View};

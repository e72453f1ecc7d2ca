//! What can go wrong, with the place where it did.

use std::io;
use std::path::PathBuf;

use arbor_store::StoreError;

use crate::version::Version;

/// Why an operation on versions failed.
#[derive(Debug, thiserror::Error)]
pub enum VersionsError {
    /// The store under the versions failed.
    #[error("store failed while {action}")]
    Store {
        /// What was being done.
        action: &'static str,
        /// The store's own error.
        source: StoreError,
    },
    /// A file beside the store (HEAD, LOCK) could not be read or written.
    #[error("cannot {action} {path}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// Another process has the database open for writing.
    #[error(
        "database {dir} is already open for writing{}: its LOCK is held; it can be read meanwhile",
        .pid.map(|pid| format!(" in process {pid}")).unwrap_or_default()
    )]
    AlreadyOpen {
        /// The database's directory.
        dir: PathBuf,
        /// The process that holds the lock, where its number could be read.
        pid: Option<u32>,
    },
    /// A database was to be created where one is.
    #[error("the store already has a database: tree {tree}, chain {chain_id}")]
    AlreadyCreated {
        /// Its tree.
        tree: String,
        /// Its chain.
        chain_id: u64,
    },
    /// A database was to be opened where none is.
    #[error("the store has no database")]
    NotCreated,
    /// A database was to be loaded that has a version.
    #[error("the database has version {} already; only an empty one can be loaded", .head.0)]
    AlreadyLoaded {
        /// The latest version.
        head: Version,
    },
    /// A load was interrupted: what the tables hold is a part of a state.
    #[error("loading the database was interrupted: delete it and begin again")]
    PartlyLoaded,
    /// The database's keys and records have another layout than this program's.
    #[error(
        "the database has layout {stored} of the tree {tree}, and this program has {wanted}: it was made by another version of the program (docs/design/layouts.md); make it anew from its chain, in another folder"
    )]
    Layout {
        /// The tree, as the database names it.
        tree: String,
        /// What the database has.
        stored: u32,
        /// What the program has.
        wanted: u32,
    },
    /// The database was made for something else than what it is opened as.
    #[error("the database has {field} {stored}, and is opened for {field} {wanted}")]
    Identity {
        /// The first field that differs.
        field: &'static str,
        /// What the database has.
        stored: String,
        /// What the caller asked for.
        wanted: String,
    },
    /// The store lags behind what the HEAD file says was made durable: it is an older copy.
    #[error("the store is older than its HEAD file: store {}, HEAD at version {head}", .store.map_or("without any version".to_owned(), |version| format!("at version {version}")))]
    StoreOlder {
        /// The store's version.
        store: Option<u64>,
        /// The lowest version that HEAD allows.
        head: u64,
    },
    /// Store and HEAD file are at one version but do not agree on it.
    #[error("store and HEAD file differ in the {field} of version {version}: {store} and {file}")]
    HeadDiffers {
        /// The version.
        version: u64,
        /// The field.
        field: &'static str,
        /// The store's, in hex if it is no number.
        store: String,
        /// The file's, likewise.
        file: String,
    },
    /// The HEAD file is missing, damaged or of another format.
    #[error("HEAD file {path}: {reason}")]
    HeadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A stored record does not decode.
    #[error("malformed {record}: {reason}")]
    Malformed {
        /// Which record: its kind, version and chunk.
        record: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A version was applied that is not the next one.
    #[error("version {} applied where {} is next", .got.0, .wanted.0)]
    OutOfOrder {
        /// The version that came.
        got: Version,
        /// The version that was due.
        wanted: Version,
    },
    /// A version's block number is below its parent's.
    #[error("version {} has block {got}, below its parent's {parent}", .version.0)]
    BlockOrder {
        /// The version.
        version: Version,
        /// Its block number.
        got: u64,
        /// Its parent's.
        parent: u64,
    },
    /// A version is above the head or its history has been pruned.
    #[error("version {} is not retained: {}", .version.0, match (oldest, head) {
        (Some(oldest), Some(head)) => format!("the database has {} to {}", oldest.0, head.0),
        _ => "the database has none".to_owned(),
    })]
    NotRetained {
        /// The version asked for.
        version: Version,
        /// The oldest version that can be read.
        oldest: Option<Version>,
        /// The newest.
        head: Option<Version>,
    },
    /// A view reads no more: see [`View::until`](crate::View::until).
    #[error("reading did not end in time")]
    Late,
    /// One version changes the same key twice.
    #[error("version {} changes key {key} of table {table} twice", .version.0)]
    DuplicateChange {
        /// The version.
        version: Version,
        /// The table's name.
        table: &'static str,
        /// The key, hex.
        key: String,
    },
    /// A table is unknown, or not of the kind that the operation needs.
    #[error("table {table:#04x}: {reason}")]
    Table {
        /// The table's byte.
        table: u8,
        /// What is wrong.
        reason: &'static str,
    },
    /// A flush in the background failed; its data is still in memory and the next flush retries.
    #[error("flush of version {} in the background failed", .version.0)]
    BackgroundFlush {
        /// The version that was being flushed.
        version: Version,
        /// Why.
        source: Box<VersionsError>,
    },
}

impl VersionsError {
    pub(crate) fn store(action: &'static str) -> impl Fn(StoreError) -> Self {
        move |source| Self::Store { action, source }
    }

    pub(crate) fn malformed(record: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Malformed {
            record: record.into(),
            reason: reason.into(),
        }
    }
}

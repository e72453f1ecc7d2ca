//! Why a database cannot be opened, or what it remembers cannot be read.

use std::io;
use std::path::PathBuf;

#[cfg(feature = "chain")]
use arbor_chain::genesis::GenesisError;
#[cfg(feature = "chain")]
use arbor_chain::rules::ChainRules;
use arbor_state::{KeyValueError, SettingError, StateError, TreeKind};
use arbor_store::StoreError;
use arbor_versions::{Identity, VersionsError};

use crate::{StoreKind, TreeSettings};

/// Why a database cannot be opened, or what it remembers cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The database cannot be opened.
    #[error("opening the database {}{}", .dir.display(), match .to_read { true => " for reading", false => "" })]
    Open {
        /// Its folder.
        dir: PathBuf,
        /// Whether it was to be opened for reading alone.
        to_read: bool,
        /// Why.
        source: Box<DatabaseError>,
    },
    /// The folder has no store.
    #[error("{} is not a database: there is no store in it", .0.display())]
    NoStore(PathBuf),
    /// The folder has no HEAD file.
    #[error("{} is not a database: it has no HEAD", .0.display())]
    NoHead(PathBuf),
    /// There is no folder.
    #[error("there is no database at {}", .0.display())]
    NoFolder(PathBuf),
    /// The folder has another store than the one asked for.
    #[error("{} holds a {} store, not {}", .dir.display(), .found.name(), .wanted.name())]
    OtherStore {
        /// The folder.
        dir: PathBuf,
        /// Its store.
        found: StoreKind,
        /// The one asked for.
        wanted: StoreKind,
    },
    /// There is no tree with this name.
    #[error(
        "there is no tree '{name}' among those that this program is built with: {}. Other trees are cargo features of arbor-database",
        .known.join(", ")
    )]
    NoTree {
        /// The name.
        name: String,
        /// The names of the trees in the registry.
        known: Vec<&'static str>,
    },
    /// The program is built without a store that has files.
    #[error(
        "this program is built without a store on a disk: enable the cargo feature `fjall` or `rocksdb` of arbor-database"
    )]
    NoStoreOnDisk,
    /// The program is built without a tree that has keys and values.
    #[error(
        "this program is built without a tree that has keys and values without accounts: enable the cargo feature `ar16mt` or `eip8297` of arbor-database"
    )]
    NoKeyValueTree,
    /// The registry does not have the database's tree.
    #[error(
        "its tree is {} of revision {}, hashed with {}, which this version of arbor does not know",
        .0.tree, .0.revision, .0.hash
    )]
    UnknownTree(Box<Identity>),
    /// The database has keys and values without accounts.
    #[error(
        "it has keys and values without accounts, under the tree {}: open it with `OpenOptions::open_key_value` of arbor-database",
        .0.name
    )]
    KeysAndValues(&'static TreeKind),
    /// The database has another tree than the one asked for.
    #[error("its tree is {}, and it is opened with the tree {}: open it with its own tree, or use another folder", .found.name, .wanted.name)]
    OtherTree {
        /// Its tree.
        found: &'static TreeKind,
        /// The one asked for.
        wanted: &'static TreeKind,
    },
    /// The database belongs to no chain.
    #[error("{} belongs to no chain, and this cannot be done without one", .0.display())]
    NoChain(PathBuf),
    /// The genesis that the database keeps cannot be used.
    #[cfg(feature = "chain")]
    #[error(
        "{} is {what}; a replay into this database with its genesis given writes it anew",
        .path.display()
    )]
    Genesis {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// Why it cannot be used, if it was read.
        source: Option<GenesisError>,
    },
    /// The genesis cannot be read at all.
    #[cfg(feature = "chain")]
    #[error("reading the genesis")]
    GenesisText(#[source] GenesisError),
    /// A file that remembers a setting does not have one.
    #[error("{} is damaged: {found}; it is to have {wanted}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is in it.
        found: String,
        /// What is to be in it, and how to go on without.
        wanted: &'static str,
    },
    /// A backup was to be made where something is.
    #[error("{} exists already: a backup is made in a folder that does not exist yet", .0.display())]
    TargetExists(PathBuf),
    /// A backup was to be made where somebody else's files are.
    #[error("{} was not made by a backup, and would be removed: move it away", .0.display())]
    NotABackup(PathBuf),
    /// A backup was to be made in the folder of its own source.
    #[error("a backup cannot be made inside {}, which it copies", .0.display())]
    BackupInside(PathBuf),
    /// The copy that a backup made has faults.
    #[error(
        "the copy of {} has faults, so it is not kept: {}{}",
        .dir.display(), .faults.first().map_or("", String::as_str), match .faults.len() { 0 | 1 => String::new(), more => format!(" (and {} more)", more - 1) }
    )]
    DamagedCopy {
        /// The folder that was copied.
        dir: PathBuf,
        /// What is wrong.
        faults: Vec<String>,
    },
    /// A conversion into the folder did not end, or what it made was not found to be its source.
    #[error(
        "the conversion into {} is not finished: `{command}` goes on with it. Delete the folder to begin again",
        .dir.display()
    )]
    UnfinishedConversion {
        /// The folder.
        dir: PathBuf,
        /// The command that began it.
        command: String,
    },
    /// The folder is a part of a conversion, which a database would be mixed with.
    #[error(
        "{} is part {part} of a conversion, and no database: join it with `arbor convert join`, or name another folder",
        .dir.display()
    )]
    PartOfConversion {
        /// The folder.
        dir: PathBuf,
        /// Which part, as `I/N`.
        part: String,
    },
    /// A file or folder cannot be used.
    #[error("{action} {}", .path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A setting that the tree does not have.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The blocks in the database have other rules than those asked for.
    #[cfg(feature = "chain")]
    #[error(
        "{} has been replayed with {before}, not with {asked}: the blocks to come would mean something else than those before",
        .dir.display()
    )]
    OtherRules {
        /// The folder.
        dir: PathBuf,
        /// The rules of its blocks.
        before: Box<ChainRules>,
        /// Those asked for.
        asked: Box<ChainRules>,
    },
    /// The nodes in the database are stored by other settings than those asked for.
    #[error(
        "{} was made with {before}, not with {asked}: its nodes would be stored in two ways",
        .dir.display()
    )]
    OtherTreeSettings {
        /// The folder.
        dir: PathBuf,
        /// The settings of its nodes.
        before: TreeSettings,
        /// Those asked for.
        asked: TreeSettings,
    },
    /// Keys and values cannot be opened.
    #[error(transparent)]
    KeyValue(#[from] KeyValueError),
    /// The state cannot be opened.
    #[error(transparent)]
    State(#[from] StateError),
    /// The versions cannot be opened, or HEAD cannot be read.
    #[error(transparent)]
    Versions(Box<VersionsError>),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<VersionsError> for DatabaseError {
    fn from(error: VersionsError) -> Self {
        Self::Versions(Box::new(error))
    }
}

impl DatabaseError {
    /// The error of the versioned tables, if that is what this one comes of.
    #[must_use]
    pub fn versions(&self) -> Option<&VersionsError> {
        match self {
            Self::Open { source, .. } => source.versions(),
            Self::Versions(error)
            | Self::State(StateError::Versions(error))
            | Self::KeyValue(KeyValueError::State(StateError::Versions(error))) => Some(error),
            _ => None,
        }
    }
}

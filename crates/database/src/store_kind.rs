//! The kinds of stores that a database can have.

use std::path::Path;

const FJALL: &str = "fjall";
const ROCKSDB: &str = "rocksdb";

/// The kinds of stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreKind {
    /// Files through fjall.
    Fjall,
    /// Files through RocksDB.
    #[cfg(feature = "rocksdb")]
    Rocksdb,
    /// Nothing on disk: gone at the end.
    Memory,
}

impl StoreKind {
    /// All kinds.
    pub const ALL: &[Self] = &[
        Self::Fjall,
        #[cfg(feature = "rocksdb")]
        Self::Rocksdb,
        Self::Memory,
    ];

    /// The folders of stores in a database's, also of those that this program cannot open.
    pub const FOLDERS: [&'static str; 2] = [FJALL, ROCKSDB];

    /// The name on the command line, in reports, and of the store's folder in the database's.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fjall => FJALL,
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => ROCKSDB,
            Self::Memory => "memory",
        }
    }

    /// One line for help texts, without a full stop.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Fjall => "Files through fjall",
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => "Files through RocksDB",
            Self::Memory => "Nothing on disk: gone at the end",
        }
    }

    /// The kind of the store in a database's folder.
    pub(crate) fn found_in(dir: &Path) -> Option<Self> {
        let mut on_disk = Self::ALL.iter().filter(|kind| **kind != Self::Memory);
        on_disk.find(|kind| dir.join(kind.name()).is_dir()).copied()
    }
}

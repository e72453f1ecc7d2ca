//! The kinds of stores that a database can have.

use std::path::Path;

const FJALL: &str = "fjall";
const ROCKSDB: &str = "rocksdb";

/// The kinds of stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreKind {
    /// Files through fjall.
    #[cfg(feature = "fjall")]
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
        #[cfg(feature = "fjall")]
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
            #[cfg(feature = "fjall")]
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
            #[cfg(feature = "fjall")]
            Self::Fjall => "Files through fjall",
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => "Files through RocksDB",
            Self::Memory => "Nothing on disk: gone at the end",
        }
    }

    /// Whether a file, at this path below the store's folder, is never written again once it has all its bytes.
    pub(crate) fn is_written_once(self, path: &Path) -> bool {
        match self {
            #[cfg(feature = "fjall")]
            Self::Fjall => arbor_store_fjall::is_table(path),
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => path.extension().is_some_and(|end| end == "sst"),
            Self::Memory => {
                let _ = path;
                false
            }
        }
    }

    /// The kind that a new database gets if none is asked for: the first one with files.
    pub(crate) fn usual() -> Option<Self> {
        Self::on_disk().next()
    }

    /// The kind of the store in a database's folder.
    pub(crate) fn found_in(dir: &Path) -> Option<Self> {
        Self::on_disk().find(|kind| dir.join(kind.name()).is_dir())
    }

    fn on_disk() -> impl Iterator<Item = Self> {
        let all = Self::ALL.iter().copied();
        all.filter(|kind| *kind != Self::Memory)
    }
}

//! Why a store failed.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use crate::{MAX_KEY_BYTES, OWNER_BYTES, Table};

/// The error of an engine underneath, kept whole for its message and its sources.
pub type Cause = Box<dyn Error + Send + Sync>;

/// Why a store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database could not be opened or created, for a reason that has no kind of its own.
    #[error("cannot open the database at {}: {cause}", path.display())]
    Open {
        /// The database's folder.
        path: PathBuf,
        /// The engine's reason.
        cause: Cause,
    },
    /// Another process, or another handle in this process, has the database open.
    #[error(
        "the database at {} is already open, here or in another process; one process at a time may have it open",
        path.display()
    )]
    AlreadyOpen {
        /// The database's folder.
        path: PathBuf,
    },
    /// There is no database, and the options did not ask to create one.
    #[error("there is no database at {}", path.display())]
    NotFound {
        /// The folder that was named.
        path: PathBuf,
    },
    /// Stored bytes failed their checksum, or files do not fit together.
    #[error("the database at {} is damaged: {what}", path.display())]
    Corrupt {
        /// The database's folder.
        path: PathBuf,
        /// What is wrong, in the engine's words.
        what: String,
    },
    /// A file or folder lies among those of the engine that is none of its own, and that it would stumble over.
    #[error("{} does not belong there: {expected}; move it out of the database", path.display())]
    Foreign {
        /// The file or folder.
        path: PathBuf,
        /// What may be there.
        expected: &'static str,
    },
    /// A file or folder of the database may not be read.
    #[error("{} cannot be read: no permission", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
    },
    /// The folder, or the file system that it is on, may not be written.
    #[error("{} cannot be written (read-only or no permission) during {operation}", path.display())]
    ReadOnly {
        /// The database's folder.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
    },
    /// The disk or the user's quota is full.
    #[error("no space left on the disk of {} during {operation}", path.display())]
    NoSpace {
        /// The database's folder.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
    },
    /// The disk that temporary files lie on is full. The database is not touched.
    #[error(
        "no space left for temporary files on the disk of {}: free some, or set TMPDIR to a folder on another disk",
        path.display()
    )]
    NoTemporarySpace {
        /// The temporary file or folder.
        path: PathBuf,
    },
    /// The operating system failed a file operation.
    #[error("{operation} failed on {}: {cause}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
        /// The system's reason.
        cause: io::Error,
    },
    /// The engine failed in another way.
    #[error("{operation} failed in the storage engine: {cause}")]
    Engine {
        /// What was being done.
        operation: &'static str,
        /// The engine's reason.
        cause: Cause,
    },
    /// An ingestion's input does not ascend strictly [by table and key](crate::Write::cmp_place).
    #[error(
        "write {index} of an ingestion, key {} of table {}, is not above the one before it, key {} of table {}",
        hex(key), table.0, hex(previous_key), previous_table.0
    )]
    Unsorted {
        /// Position of the offending write in the input, from 0.
        index: u64,
        /// Its table.
        table: Table,
        /// Its key.
        key: Box<[u8]>,
        /// The table of the write before it.
        previous_table: Table,
        /// The key of the write before it.
        previous_key: Box<[u8]>,
    },
    /// A key of a table [by owner](Table::is_by_owner) is shorter than an owner's name.
    #[error("key {} of table {} has fewer than the {OWNER_BYTES} bytes of an owner", hex(key), table.0)]
    NoOwner {
        /// The table.
        table: Table,
        /// The key.
        key: Box<[u8]>,
    },
    /// A key is longer than [`MAX_KEY_BYTES`].
    #[error("a key of {length} bytes is longer than the {MAX_KEY_BYTES} that a store takes")]
    KeyTooLong {
        /// The key's length in bytes.
        length: usize,
    },
}

impl StoreError {
    /// Sorts an operating-system error on a database's files into [`ReadOnly`](Self::ReadOnly),
    /// [`NoSpace`](Self::NoSpace), or [`Io`](Self::Io).
    pub fn from_io(path: &Path, operation: &'static str, cause: io::Error) -> Self {
        let path = path.to_path_buf();
        match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::NoSpace { path, operation }
            }
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                Self::ReadOnly { path, operation }
            }
            _ => Self::Io {
                path,
                operation,
                cause,
            },
        }
    }

    /// Sorts an operating-system error on a temporary file or folder into [`NoTemporarySpace`](Self::NoTemporarySpace), [`ReadOnly`](Self::ReadOnly) or [`Io`](Self::Io).
    pub fn from_temporary(path: &Path, operation: &'static str, cause: io::Error) -> Self {
        match Self::from_io(path, operation, cause) {
            Self::NoSpace { path, .. } => Self::NoTemporarySpace { path },
            error => error,
        }
    }

    /// Sorts an operating-system error at reading a file or folder into [`Unreadable`](Self::Unreadable) or [`Io`](Self::Io).
    pub fn from_reading(path: &Path, cause: io::Error) -> Self {
        let path = path.to_path_buf();
        match cause.kind() {
            io::ErrorKind::PermissionDenied => Self::Unreadable { path },
            _ => Self::Io {
                path,
                operation: "reading",
                cause,
            },
        }
    }
}

/// The first 40 bytes in hexadecimal: enough to find a key, short enough for a message.
fn hex(bytes: &[u8]) -> String {
    const SHOWN: usize = 40;
    let mut text: String = bytes
        .iter()
        .take(SHOWN)
        .fold("0x".into(), |mut text, byte| {
            text.extend(
                [byte >> 4, byte & 15]
                    .map(|nibble| char::from_digit(nibble.into(), 16).unwrap_or('?')),
            );
            text
        });
    if bytes.len() > SHOWN {
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_place() {
        let full = StoreError::from_io(
            Path::new("/data/db"),
            "ingest",
            io::Error::from(io::ErrorKind::StorageFull),
        );
        assert_eq!(
            full.to_string(),
            "no space left on the disk of /data/db during ingest"
        );
        let full = StoreError::from_temporary(
            Path::new("/tmp/arbor-past-a"),
            "making a temporary folder",
            io::Error::from(io::ErrorKind::QuotaExceeded),
        );
        assert_eq!(
            full.to_string(),
            "no space left for temporary files on the disk of /tmp/arbor-past-a: free some, or set TMPDIR to a folder on another disk"
        );
        let closed = StoreError::from_io(
            Path::new("/data/db"),
            "open",
            io::Error::from(io::ErrorKind::PermissionDenied),
        );
        assert!(matches!(closed, StoreError::ReadOnly { .. }));
        let secret = StoreError::from_reading(
            Path::new("/data/db/0.jnl"),
            io::Error::from(io::ErrorKind::PermissionDenied),
        );
        assert_eq!(
            secret.to_string(),
            "/data/db/0.jnl cannot be read: no permission"
        );
    }

    #[test]
    fn long_keys_are_cut_in_messages() {
        assert_eq!(hex(&[0x0f, 0xa0]), "0x0fa0");
        assert_eq!(hex(&[0xee; 41]), format!("0x{}...", "ee".repeat(40)));
    }
}

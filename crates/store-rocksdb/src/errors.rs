//! RocksDB's errors in the store's kinds.

use std::io;
use std::path::Path;

use arbor_store::StoreError;
use rocksdb::ErrorKind;

/// Sorts an engine error that occurred during `operation` on the database at `path`. The C
/// interface passes errors as text, so the operating system's are told by their words (strerror(3), as
/// glibc, musl and macOS have them).
pub(crate) fn store_error(
    path: &Path,
    operation: &'static str,
    error: rocksdb::Error,
) -> StoreError {
    let says = |words: &str| error.as_ref().contains(words);
    let system = |kind: io::ErrorKind| StoreError::from_io(path, operation, kind.into());
    match error.kind() {
        _ if says("No space left on device") || says("Disk quota exceeded") => {
            system(io::ErrorKind::StorageFull)
        }
        _ if says("Read-only file system") => system(io::ErrorKind::ReadOnlyFilesystem),
        _ if says("Permission denied") => system(io::ErrorKind::PermissionDenied),
        ErrorKind::IOError if says("lock hold by") || says("LOCK: ") => StoreError::AlreadyOpen {
            path: path.to_path_buf(),
        },
        ErrorKind::Corruption => StoreError::Corrupt {
            path: path.to_path_buf(),
            what: format!("{error} ({operation})"),
        },
        _ if operation == "open" => StoreError::Open {
            path: path.to_path_buf(),
            cause: Box::new(error),
        },
        _ => StoreError::Engine {
            operation,
            cause: Box::new(error),
        },
    }
}

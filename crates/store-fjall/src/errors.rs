//! fjall's errors in the store's kinds.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use arbor_store::StoreError;

/// Sorts an engine error that occurred during `operation` on the database at `path`.
pub(crate) fn sorted(path: &Path, operation: &'static str, error: fjall::Error) -> StoreError {
    use fjall::{Error, LsmError};
    let corrupt = |what: String| StoreError::Corrupt {
        path: path.to_path_buf(),
        what,
    };
    match error {
        Error::Io(cause) | Error::Storage(LsmError::Io(cause)) => {
            StoreError::from_io(path, operation, cause)
        }
        Error::Locked => StoreError::AlreadyOpen {
            path: path.to_path_buf(),
        },
        Error::Poisoned => StoreError::Engine {
            operation,
            cause: "an earlier flush or merge failed (a full disk?); \
                    nothing committed is lost: close the database and open it again"
                .into(),
        },
        Error::InvalidVersion(version) => corrupt(format!(
            "it is not of fjall's file format 3 (found {version:?})"
        )),
        Error::Storage(LsmError::ChecksumMismatch { got, expected }) => corrupt(format!(
            "a block's checksum is {got:?}, expected {expected:?} ({operation})"
        )),
        Error::Storage(
            cause @ (LsmError::Decompress(_)
            | LsmError::InvalidVersion(_)
            | LsmError::Unrecoverable
            | LsmError::InvalidTag(_)
            | LsmError::InvalidTrailer
            | LsmError::InvalidHeader(_)
            | LsmError::Utf8(_)),
        ) => corrupt(format!("{cause} ({operation})")),
        cause @ (Error::JournalRecovery(_)
        | Error::Decompress(_)
        | Error::InvalidTrailer
        | Error::InvalidTag(_)
        | Error::Unrecoverable) => corrupt(format!("{cause} ({operation})")),
        cause => StoreError::Engine {
            operation,
            cause: Box::new(cause),
        },
    }
}

/// Runs what opens the engine. fjall asserts some of what it reads from its files; where that does not hold, they are damaged.
pub(crate) fn opened<T>(
    path: &Path,
    operation: &'static str,
    open: impl FnOnce() -> fjall::Result<T>,
) -> Result<T, StoreError> {
    let opened = catch_unwind(AssertUnwindSafe(open)).map_err(|panic| StoreError::Corrupt {
        path: path.to_path_buf(),
        what: format!("the engine stopped at: {}", message(&*panic)),
    })?;
    opened.map_err(|error| sorted(path, operation, error))
}

/// What a panic says of itself.
fn message(panic: &dyn Any) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").replace('\n', ", ")
}

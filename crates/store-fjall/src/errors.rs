//! fjall's errors in the store's kinds.

use std::any::Any;
use std::fs::{self, File};
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arbor_store::StoreError;

use crate::names::TABLES;

/// For how long the table of a damaged block is looked for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Converts an engine error that occurred during `operation` on the database at `path`.
pub(crate) fn store_error(path: &Path, operation: &'static str, error: fjall::Error) -> StoreError {
    use fjall::{Error, LsmError};
    let corrupt = |what: String| StoreError::Corrupt {
        path: path.to_path_buf(),
        what,
    };
    match error {
        Error::Io(cause) | Error::Storage(LsmError::Io(cause)) => {
            StoreError::from_io(&file_of(path, operation), operation, cause)
        }
        Error::Locked => StoreError::AlreadyOpen {
            path: path.to_path_buf(),
        },
        Error::Poisoned => StoreError::Engine {
            operation,
            cause: format!(
                "an earlier flush or merge of {} failed, for the reason that was logged then; \
                 nothing committed is lost: close the database and open it again",
                path.display()
            )
            .into(),
        },
        Error::InvalidVersion(version) => corrupt(format!(
            "it is not of fjall's file format 3 (found {version:?})"
        )),
        Error::Storage(LsmError::ChecksumMismatch { got, expected }) => {
            let [got, expected] = [got, expected].map(|checksum| checksum.into_u128());
            let file = match table_with(path, expected) {
                Some(file) => format!("its file {}", file.display()),
                None => "one of its tables".into(),
            };
            corrupt(format!(
                "a block of {file} has the checksum {got:032x}, and {expected:032x} was written \
                 ({operation})"
            ))
        }
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

/// Returns the file that an operation writes: the newest journal, if it is known to write that. Else the database's folder.
fn file_of(database: &Path, operation: &str) -> PathBuf {
    let journals = fs::read_dir(database).into_iter().flatten().flatten();
    let newest = journals
        .filter_map(|entry| {
            let path = entry.path();
            let number = path.file_stem()?.to_str()?.parse::<u64>().ok()?;
            (path.extension()? == "jnl").then_some((number, path))
        })
        .max();
    match newest {
        Some((_, journal)) if operation == "write" => journal,
        _ => database.to_owned(),
    }
}

/// Looks for the table that has a block with a checksum, which stands in the block's header: the engine does not name the table.
/// Returns its path from `folder`, and `None` after [`PATIENCE`].
fn table_with(folder: &Path, checksum: u128) -> Option<PathBuf> {
    let start = Instant::now();
    let checksum = checksum.to_le_bytes();
    let mut folders = vec![folder.to_owned()];
    let mut bytes = vec![0; 1 << 20];
    while let Some(next) = folders.pop() {
        let is_tables = next.file_name().is_some_and(|name| name == TABLES);
        for entry in fs::read_dir(&next).ok()?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if !is_tables {
                continue;
            }
            let Ok(mut file) = File::open(&path) else {
                continue;
            };
            // The last bytes of what was read before are kept: a checksum may lie across two reads.
            let mut kept = 0;
            while let Ok(read) = file.read(&mut bytes[kept..]) {
                let end = kept + read;
                if bytes[..end]
                    .windows(checksum.len())
                    .any(|window| window == checksum)
                {
                    return path.strip_prefix(folder).ok().map(Path::to_owned);
                }
                if read == 0 || start.elapsed() > PATIENCE {
                    break;
                }
                kept = end.min(checksum.len() - 1);
                bytes.copy_within(end - kept..end, 0);
            }
        }
    }
    None
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
    opened.map_err(|error| store_error(path, operation, error))
}

/// What a panic says of itself.
fn message(panic: &dyn Any) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").replace('\n', ", ")
}

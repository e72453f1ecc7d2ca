//! The small files in which a database's folder remembers what it was asked for: `rules`, `retain`, `tree-settings`.
//!
//! One that is damaged stops whoever writes the database, since it would go on otherwise than before. A command that only reads goes on without what it does not need.

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use arbor_chain::bounded_input::{Bound, BoundedInput, InputError, InputFault};
use arbor_store::sync_name;

use crate::described;

/// What such a file says; `None` where there is none. `wanted` is what it is to have, and how to get on without.
///
/// # Errors
/// A file that cannot be read, that is longer than [`Bound::REMEMBERED`], that is no text, or that `parse` makes nothing of.
pub(crate) fn stored<T>(
    path: &Path,
    wanted: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>> {
    let damaged = |found: String| {
        let path = path.display();
        anyhow!("{path} is damaged: {found}; it is to have {wanted}")
    };
    match path.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(error).with_context(|| format!("reading {}", path.display()));
        }
        // Opening a FIFO would wait for somebody to write it.
        Ok(found) if !found.is_file() => {
            bail!("reading {}: it is no regular file", path.display())
        }
        Ok(_) => {}
    }
    let read = BoundedInput::open(path, Bound::REMEMBERED).and_then(BoundedInput::text);
    match read {
        Ok(text) => match parse(&text) {
            None => Err(damaged(format!("{text:?}"))),
            parsed => Ok(parsed),
        },
        Err(InputError {
            fault: fault @ (InputFault::TooLong(_) | InputFault::NotText(..)),
            ..
        }) => Err(damaged(fault.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// What a file says, for a command that does without it; `None`, and the user is told why, if that cannot be known.
pub(crate) fn to_read<T: Default>(stored: Result<Option<T>>) -> Option<T> {
    match stored {
        Ok(stored) => Some(stored.unwrap_or_default()),
        Err(error) => {
            tracing::warn!("{}", described(&error));
            None
        }
    }
}

/// Replaces a file, so that a crash or a power loss leaves the old one or the new one.
pub(crate) fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let part = path.with_added_extension("new");
    let mut file = std::fs::File::create(&part)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&part, path)?;
    sync_name(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rest of a file was left aside, and its begin taken for all that it says.
    #[test]
    fn a_file_is_read_whole_or_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("retain");
        let stored = || {
            let number = stored(&path, "a number, or to be removed", |text| {
                text.trim().parse::<u64>().ok()
            });
            number.map_err(|error| error.to_string())
        };
        assert_eq!(stored(), Ok(None));
        let write = |text: &str| std::fs::write(&path, text).expect("written");
        for (length, read) in [(1, true), (512, true), (513, false), (60_000, false)] {
            write(&format!("{:<length$}", "7"));
            let refused = format!(
                "{} is damaged: it has more than 512 bytes, the most that is read of a database's setting; it is to have a number, or to be removed",
                path.display()
            );
            assert_eq!(stored(), if read { Ok(Some(7)) } else { Err(refused) });
        }
        write("x");
        let refused = format!(
            "{} is damaged: \"x\"; it is to have a number, or to be removed",
            path.display()
        );
        assert_eq!(stored(), Err(refused));
    }
}

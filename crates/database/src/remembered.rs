//! The small files in which a database's folder remembers what it was asked for: `rules`, `retain`, `tree-settings`.
//!
//! A damaged one stops a program that writes the database, because it would go on otherwise than before. A command that only reads goes on without what it does not need.

use std::io::{ErrorKind, Read as _, Write as _};
use std::path::Path;

use arbor_store::sync_name;

use crate::DatabaseError;
use crate::folder::io_error;

/// The greatest length of such a file.
const MOST_BYTES: u64 = 512;

/// Reads such a file; `None` if there is none. `wanted` is what is to be in it, and how to go on without. `parse` returns what is there instead, if it cannot
/// read a text.
///
/// # Errors
/// A file that cannot be read, that is longer than [`MOST_BYTES`], that is no text, or that `parse` refuses.
pub(crate) fn stored<T>(
    path: &Path,
    wanted: &'static str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, DatabaseError> {
    let damaged = |found: String| DatabaseError::Damaged {
        path: path.to_owned(),
        found,
        wanted,
    };
    let unreadable = |source: std::io::Error| io_error("reading", path.to_owned(), source);
    match path.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
        // Opening a FIFO would wait for somebody to write it.
        Ok(found) if !found.is_file() => {
            return Err(unreadable(std::io::Error::other("it is no regular file")));
        }
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let read = file.take(MOST_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(unreadable)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(damaged(format!(
            "it has more than {MOST_BYTES} bytes, the most that is read of a database's setting"
        )));
    }
    let text =
        String::from_utf8(bytes).map_err(|error| damaged(format!("it is no text: {error}")))?;
    parse(&text).map(Some).map_err(damaged)
}

/// Replaces a file, so that a crash or a power loss leaves the old one or the new one.
///
/// # Errors
/// Errors of the operating system.
pub fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
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
                let number = text.trim().parse::<u64>();
                number.map_err(|_| format!("{text:?}"))
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

//! The small files in which a database's folder remembers what it was asked for: `rules`, `retain`, `tree-settings`.
//!
//! One that is damaged stops whoever writes the database, since it would go on otherwise than before. A command that only reads goes on without what it does not need.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use crate::described;

/// Bytes of the longest text that any of them can have, and more.
const LONGEST: u64 = 512;

/// The text of such a file; `None` where there is none. What is no text has signs that no such text has.
///
/// # Errors
/// A file that cannot be read.
pub(crate) fn text(path: &Path) -> Result<Option<String>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file,
    };
    let mut bytes = Vec::new();
    file.and_then(|file| file.take(LONGEST).read_to_end(&mut bytes))
        .with_context(|| format!("reading {}", path.display()))?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Why a text is none of such a file, and how to get on.
pub(crate) fn damaged(path: &Path, text: &str, wanted: &str) -> anyhow::Error {
    anyhow!(
        "{} is damaged: {text:?}; it is to have {wanted}",
        path.display()
    )
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

//! The history that a database keeps, which its folder remembers in the file `retain`.

use arbor_versions::Retain;

use crate::DatabaseError;
use crate::folder::{Folder, io_error};
use crate::names::RETAIN;
use crate::remembered::{stored, write_whole};

/// The history that a database keeps if nothing else was ever asked for: versions below the head.
pub const RETAINED: Retain = Retain::Last(128);

/// Writes history to keep as its words: `none`, `all` or a number.
#[must_use]
pub fn show_retain(retain: Retain) -> String {
    match retain {
        Retain::None => "none".into(),
        Retain::Last(versions) => versions.to_string(),
        Retain::All => "all".into(),
    }
}

/// Parses the words of [`show_retain`].
///
/// # Errors
/// Anything else, in words.
pub fn parse_retain(text: &str) -> Result<Retain, String> {
    match text {
        "none" => Ok(Retain::None),
        "all" => Ok(Retain::All),
        number => number
            .parse()
            .map(Retain::Last)
            .map_err(|_| format!("'{text}' is not none, all or a number")),
    }
}

impl Folder<'_> {
    /// Reads the history that the folder remembers to keep; `None` if it was never asked for.
    ///
    /// # Errors
    /// A damaged file.
    pub fn stored_retention(self) -> Result<Option<Retain>, DatabaseError> {
        let wanted =
            "none, all or a number of versions, or to be removed, so that it is asked for again";
        let parse = |text: &str| parse_retain(text.trim()).map_err(|_| format!("{text:?}"));
        stored(&self.dir.join(RETAIN), wanted, parse)
    }

    /// Returns the history to keep: what was asked for before, or else [`RETAINED`].
    ///
    /// # Errors
    /// A damaged file.
    pub fn retention(self) -> Result<Retain, DatabaseError> {
        Ok(self.stored_retention()?.unwrap_or(RETAINED))
    }

    /// Remembers the history that was asked for, in the folder of a database that is open: a replay that was refused must not decide what the next one forgets.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn remember_retention(self, retain: Retain) -> Result<(), DatabaseError> {
        let path = self.dir.join(RETAIN);
        write_whole(&path, &show_retain(retain)).map_err(|source| io_error("writing", path, source))
    }
}

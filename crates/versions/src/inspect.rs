//! The records of this crate itself, for statistics of a database.

use arbor_store::{Table, Value};

use crate::error::VersionsError;
use crate::layout::{BLOCK, INDEX, META, NODE_INDEX, OLD_NODES, SYSTEM, UNDO};
use crate::undo::Cursor;
use crate::view::{Entries, View};

/// The tables of this crate, and their names.
pub const OWN_TABLES: [(Table, &str); 7] = [
    (OLD_NODES, "old nodes"),
    (NODE_INDEX, "old node index"),
    (META, "versions"),
    (BLOCK, "blocks"),
    (UNDO, "undo"),
    (INDEX, "undo index"),
    (SYSTEM, "system"),
];

/// The table of undo records.
pub const UNDO_TABLE: Table = UNDO;

/// What an undo record keeps of one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UndoEntry {
    /// The table of the key.
    pub table: Table,
    /// Bytes of the key.
    pub key_bytes: usize,
    /// Bytes of the value before; `None` if there was none.
    pub old_bytes: Option<usize>,
}

impl<'a> View<'a> {
    /// Scans the flushed records of a table of this crate, ascending by key. Unflushed versions have none there.
    ///
    /// # Errors
    /// The store's errors, also from the iterator.
    pub fn scan_own(self, table: Table) -> Result<Entries<'a>, VersionsError> {
        let entries = self.base.scan(table, &[], &[]);
        let entries = entries.map_err(VersionsError::store("starting a scan"))?;
        Ok(Box::new(entries.map(|entry| {
            entry.map_err(VersionsError::store("scanning"))
        })))
    }
}

/// Reports the entries of a stored part of an undo record.
///
/// # Errors
/// A malformed record.
pub fn undo_entries(
    key: &[u8],
    value: &Value,
    see: &mut dyn FnMut(UndoEntry),
) -> Result<(), VersionsError> {
    let parts = key
        .split_first_chunk::<8>()
        .and_then(|(version, chunk)| Some((version, chunk.first_chunk::<4>()?)));
    let (version, chunk) =
        parts.ok_or_else(|| VersionsError::malformed("key of an undo record", "not 12 bytes"))?;
    let (version, chunk) = (u64::from_be_bytes(*version), u32::from_be_bytes(*chunk));
    let mut entries = Cursor::new(version, chunk, value.clone())?;
    while entries.advance()? {
        see(UndoEntry {
            table: entries.table(),
            key_bytes: entries.key().len(),
            old_bytes: entries.old().map(<[u8]>::len),
        });
    }
    Ok(())
}

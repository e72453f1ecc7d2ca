//! Two sets of a caller's tables in one store, which a state needs while it moves from one tree to another.
//!
//! A database is in space 0 until it has moved once, then in space 1, and so on. Callers name their tables as if there were one set. A table of the
//! other space has the bit [`OTHER_SPACE`] besides; in the store a table of space 1 has it.

use arbor_store::{Table, Write};

/// First table byte that belongs to this crate; callers' tables are below.
pub(crate) const FIRST_OWN_TABLE: u8 = 0xee;

/// The bit that a table of the other space has.
pub const OTHER_SPACE: u8 = 0x40;

/// The table of the record that says how far a move is, under an empty key: it is there from the first version on that a move has changed.
pub const MOVE: Table = Table(0x12);

/// Whether a table belongs to a space. Tables 5, 6, and 0x10 to 0x1f do not, nor do this crate's own: there is one of each.
pub const fn has_space(table: Table) -> bool {
    !matches!(table.0, 5 | 6 | 0x10..=0x1f) && table.0 < FIRST_OWN_TABLE
}

/// The table of the same name in the other space.
pub const fn in_other_space(table: Table) -> Table {
    match has_space(table) {
        true => Table(table.0 ^ OTHER_SPACE),
        false => table,
    }
}

/// The table in the store of a table that a caller names, and the other way round, if the database is in this space.
pub(crate) const fn placed(space: u8, table: Table) -> Table {
    match space {
        0 => table,
        _ => in_other_space(table),
    }
}

/// Writes with the tables that a caller names for those of the store, or the other way round.
pub(crate) fn all_placed(space: u8, mut writes: Vec<Write>) -> Vec<Write> {
    if space != 0 {
        for write in &mut writes {
            write.table = placed(space, write.table);
        }
        writes.sort_unstable_by(|a, b| (a.table, &a.key).cmp(&(b.table, &b.key)));
    }
    writes
}

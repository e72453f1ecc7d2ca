//! Reading the past: undo records from newest to oldest would do; indexes and filters skip most.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use arbor_store::{Table, Value, Write};

use crate::error::VersionsError;
use crate::filters::Filters;
use crate::identity::TableKind;
use crate::index::{ChangedBy, Of};
use crate::space::all_placed;
use crate::undo::{Cursor, missing, stored_cursor};
use crate::version::Version;
use crate::view::{Entries, View};

/// Flat keys and what they held in an older version.
type OldValues = BTreeMap<(Table, Box<[u8]>), Option<Value>>;

impl<'a> View<'a> {
    /// Returns a flat key's value at a retained version. Costs one or two reads for each index
    /// epoch between that version and the head, and for versions without an index one read when
    /// they are first searched.
    ///
    /// # Errors
    /// [`VersionsError::NotRetained`]; a table that is not flat; the store's errors; a malformed
    /// record.
    pub fn get_at(
        self,
        version: Version,
        table: Table,
        key: &[u8],
    ) -> Result<Option<Value>, VersionsError> {
        let (view, table) = self.placed(table);
        let head = view.unflushed.retained(version)?;
        view.unflushed
            .schema
            .position_of_kind(table, TableKind::Flat)?;
        let hash = Filters::hash(table, key);
        let mut next = version.0 + 1;
        while next <= head {
            let epoch = next / view.unflushed.epoch;
            if view.unflushed.indexed.contains(&epoch) {
                let end = (epoch + 1) * view.unflushed.epoch;
                let changed_by = ChangedBy::read(view.base, Of::Flat, (epoch, table, key))?;
                if let Some((offset, chunk)) = changed_by.from(next % view.unflushed.epoch).next() {
                    let changed = epoch * view.unflushed.epoch + offset;
                    let old = view.old_value(changed, chunk, table, key)?;
                    return old.ok_or_else(|| {
                        VersionsError::malformed(
                            format!("index of epoch {epoch}"),
                            format!("version {changed} does not change the key"),
                        )
                    });
                }
                next = end;
                continue;
            }
            let filter = view.filter(next)?;
            if filter.binary_search(&hash).is_ok()
                && let Some(old) = view.old_value(next, 0, table, key)?
            {
                return Ok(old);
            }
            next += 1;
        }
        view.newest().get(table, key)
    }

    /// Scans a flat table as of a retained version, like [`View::scan`]. Reads the undo of every
    /// later version first.
    ///
    /// # Errors
    /// As [`View::get_at`]; the store's errors, also from the iterator.
    pub fn scan_at(
        self,
        version: Version,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Entries<'a>, VersionsError> {
        let (view, table) = self.placed(table);
        let head = view.unflushed.retained(version)?;
        view.unflushed
            .schema
            .position_of_kind(table, TableKind::Flat)?;
        let fits = |t: Table, key: &[u8]| t == table && key.starts_with(prefix) && key >= from;
        let old = view.oldest_values(version.0 + 1, head, fits)?;
        let over = old.into_iter().map(|((_, key), value)| (key, value));
        view.newest()
            .scan_under(over.collect(), table, prefix, from)
    }

    /// Returns, for each flat key that changed after `version`, its value at `version`, ascending
    /// by table and key: written over the head they make the state of `version`.
    ///
    /// # Errors
    /// [`VersionsError::NotRetained`]; the store's errors; a malformed record.
    pub fn undo_since(self, version: Version) -> Result<Vec<Write>, VersionsError> {
        let head = self.last(version)?;
        let old = self.oldest_values(version.0 + 1, head, |_, _| true)?;
        let entry = |((table, key), value)| Write { table, key, value };
        Ok(all_placed(self.space, old.into_iter().map(entry).collect()))
    }

    /// Returns what a version changed, with the values before it, ascending by table and key.
    ///
    /// # Errors
    /// As [`View::undo_since`]; [`VersionsError::NotRetained`] also if only the version itself is
    /// readable and not the one before it.
    pub fn undo_of(self, version: Version) -> Result<Vec<Write>, VersionsError> {
        self.unflushed
            .retained(Version(version.0.saturating_sub(1)))?;
        let mut old = Vec::new();
        self.each_change(version.0, |cursor| old.push(undo_entry(cursor)))?;
        Ok(all_placed(self.space, old))
    }

    /// As [`undo_of`](View::undo_of), of the keys of one table that begin with one of some bytes. So that very large versions can be gone through by parts.
    ///
    /// # Errors
    /// As [`undo_of`](View::undo_of).
    pub fn undo_of_part(
        self,
        version: Version,
        table: Table,
        first: RangeInclusive<u8>,
    ) -> Result<Vec<Write>, VersionsError> {
        let (view, table) = self.placed(table);
        view.unflushed
            .retained(Version(version.0.saturating_sub(1)))?;
        let mut old = Vec::new();
        view.each_change_of_part(version.0, table, &first, |cursor| {
            old.push(undo_entry(cursor));
        })?;
        Ok(all_placed(self.space, old))
    }

    /// As [`undo_since`](View::undo_since), of the keys of one table that begin with one of some bytes.
    ///
    /// # Errors
    /// As [`undo_since`](View::undo_since).
    pub fn undo_since_part(
        self,
        version: Version,
        table: Table,
        first: RangeInclusive<u8>,
    ) -> Result<Vec<Write>, VersionsError> {
        let (view, table) = self.placed(table);
        let head = view.last(version)?;
        let mut oldest = BTreeMap::new();
        for version in version.0 + 1..=head {
            view.each_change_of_part(version, table, &first, |cursor| {
                oldest
                    .entry(Box::from(cursor.key()))
                    .or_insert_with(|| cursor.old().map(Value::from));
            })?;
        }
        let entry = |(key, value)| Write { table, key, value };
        Ok(all_placed(
            self.space,
            oldest.into_iter().map(entry).collect(),
        ))
    }

    /// About how many flat keys a version changed, from one read: its undo may be too large to be counted through.
    ///
    /// # Errors
    /// As [`View::undo_of`].
    pub fn changes_of(self, version: Version) -> Result<u64, VersionsError> {
        self.unflushed
            .retained(Version(version.0.saturating_sub(1)))?;
        let cursor = self.cursor(version.0, 0)?;
        Ok(u64::from(cursor.entries()) * u64::from(cursor.chunks()))
    }

    /// The version that this view is of; `version` can be read.
    fn last(self, version: Version) -> Result<u64, VersionsError> {
        let head = self.unflushed.retained(version)?;
        Ok(self.at.map_or(head, |at| at.version.0))
    }

    fn oldest_values(
        self,
        first: u64,
        last: u64,
        fits: impl Fn(Table, &[u8]) -> bool,
    ) -> Result<OldValues, VersionsError> {
        let mut oldest = BTreeMap::new();
        for version in first..=last {
            self.each_change(version, |cursor| {
                if fits(cursor.table(), cursor.key()) {
                    oldest
                        .entry((cursor.table(), Box::from(cursor.key())))
                        .or_insert_with(|| cursor.old().map(Value::from));
                }
            })?;
        }
        Ok(oldest)
    }

    /// Returns what a version's undo says of a key, from `chunk` on; `None` if the version did
    /// not change it.
    fn old_value(
        self,
        version: u64,
        mut chunk: u32,
        table: Table,
        key: &[u8],
    ) -> Result<Option<Option<Value>>, VersionsError> {
        loop {
            let mut cursor = self.cursor(version, chunk)?;
            while cursor.advance()? {
                match (cursor.table(), cursor.key()).cmp(&(table, key)) {
                    std::cmp::Ordering::Less => {}
                    std::cmp::Ordering::Equal => return Ok(Some(cursor.old().map(Value::from))),
                    std::cmp::Ordering::Greater => return Ok(None),
                }
            }
            chunk += 1;
            if chunk == cursor.chunks() {
                return Ok(None);
            }
        }
    }

    fn filter(self, version: u64) -> Result<Arc<[u64]>, VersionsError> {
        if let Some(filter) = self.unflushed.filters.get(version) {
            return Ok(filter);
        }
        let mut hashes = Vec::new();
        self.each_change(version, |cursor| {
            hashes.push(Filters::hash(cursor.table(), cursor.key()));
        })?;
        Ok(self.unflushed.filters.insert(version, hashes))
    }

    /// Goes through what a version changed, ascending.
    fn each_change(
        self,
        version: u64,
        mut visit: impl FnMut(&Cursor),
    ) -> Result<(), VersionsError> {
        self.each_change_from(version, 0, |cursor| {
            visit(cursor);
            ControlFlow::Continue(())
        })
    }

    /// As [`each_change`](View::each_change), of the keys of a table that begin with one of some bytes, and reading no more than where these lie.
    fn each_change_of_part(
        self,
        version: u64,
        table: Table,
        first: &RangeInclusive<u8>,
        mut visit: impl FnMut(&Cursor),
    ) -> Result<(), VersionsError> {
        let begin = (table, Some(first.start()));
        // The last chunk that begins before them; a record has one at least.
        let (mut chunk, mut end) = (0, self.cursor(version, 0)?.chunks());
        while end - chunk > 1 {
            let middle = chunk + (end - chunk) / 2;
            let mut cursor = self.cursor(version, middle)?;
            match cursor.advance()? && (cursor.table(), cursor.key().first()) < begin {
                true => chunk = middle,
                false => end = middle,
            }
        }
        self.each_change_from(version, chunk, |cursor| {
            let begins = (cursor.table(), cursor.key().first());
            if begins > (table, Some(first.end())) {
                return ControlFlow::Break(());
            }
            if begins >= begin {
                visit(cursor);
            }
            ControlFlow::Continue(())
        })
    }

    /// Goes through what a version changed, ascending from a chunk on, until it is told to stop.
    fn each_change_from(
        self,
        version: u64,
        mut chunk: u32,
        mut visit: impl FnMut(&Cursor) -> ControlFlow<()>,
    ) -> Result<(), VersionsError> {
        loop {
            let mut cursor = self.cursor(version, chunk)?;
            while cursor.advance()? {
                if visit(&cursor).is_break() {
                    return Ok(());
                }
            }
            chunk += 1;
            if chunk == cursor.chunks() {
                return Ok(());
            }
        }
    }

    fn cursor(self, version: u64, chunk: u32) -> Result<Cursor, VersionsError> {
        self.in_time()?;
        let Some(pending) = self.unflushed.pending_of(version) else {
            return stored_cursor(self.base, version, chunk);
        };
        let undo = pending
            .undo
            .as_ref()
            .and_then(|undo| undo.chunks.get(chunk as usize));
        let bytes = undo.ok_or_else(|| missing(version, chunk))?;
        Cursor::new(version, chunk, bytes.clone())
    }
}

/// The write that undoes a change.
fn undo_entry(cursor: &Cursor) -> Write {
    Write {
        table: cursor.table(),
        key: cursor.key().into(),
        value: cursor.old().map(Value::from),
    }
}

//! The index of an epoch: which of its versions change a key.
//!
//! Built once, when all versions of an epoch are stored and retained, by merging their undo
//! records: 1,024 cursors, each over one chunk at a time, straight into a sorted ingestion. The
//! entry of a key is a list of (version within the epoch: u16, undo chunk: u16), big-endian and
//! ascending. A chunk number above 65,535 is stored as 65,535 and found from there on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use arbor_store::{Reader, Store, Table, Value, Write};

use crate::error::VersionsError;
use crate::layout;
use crate::undo::{Cursor, stored_cursor};

/// Returns the first version of an epoch, not below `from` (both counted within the epoch), that
/// changes a key, and the undo chunk where the search begins.
pub(crate) fn first_change(
    base: &dyn Reader,
    epoch: u64,
    table: Table,
    key: &[u8],
    from: u64,
) -> Result<Option<(u64, u32)>, VersionsError> {
    let found = base
        .get(layout::INDEX, &layout::index_key(epoch, table, key))
        .map_err(VersionsError::store("reading an index"))?;
    let Some(list) = found else { return Ok(None) };
    let (entries, rest) = list.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(VersionsError::malformed(
            format!("index of epoch {epoch}"),
            "not a list of 4-byte entries",
        ));
    }
    let entry = |bytes: &[u8; 4]| {
        let [a, b, c, d] = *bytes;
        (
            u64::from(u16::from_be_bytes([a, b])),
            u32::from(u16::from_be_bytes([c, d])),
        )
    };
    let place = entries.partition_point(|bytes| entry(bytes).0 < from);
    Ok(entries.get(place).map(entry))
}

/// Builds the index of an epoch from stored undo and returns the bytes handed to the store.
pub(crate) fn build(store: &dyn Store, epoch: u64, length: u64) -> Result<u64, VersionsError> {
    remove(store, epoch)?;
    let mut entries = Builder::new(store, epoch, length, first_undo(epoch, length))?;
    let mut bytes = 0;
    let mut failure = None;
    let mut writes = std::iter::from_fn(|| match entries.next_entry() {
        Ok(write) => {
            bytes += write.as_ref().map_or(0, |write| {
                write.key.len() + write.value.as_ref().map_or(0, |value| value.len())
            });
            write
        }
        Err(error) => {
            failure = Some(error);
            None
        }
    });
    store
        .ingest(&mut writes)
        .map_err(VersionsError::store("writing an index"))?;
    // The entries of a merge that failed half-way have no mark, so nothing reads them.
    match failure {
        Some(error) => Err(error),
        None => Ok(bytes as u64),
    }
}

/// Removes the entries of an epoch; its mark is removed elsewhere, before.
pub(crate) fn remove(store: &dyn Store, epoch: u64) -> Result<(), VersionsError> {
    store
        .delete_prefix(layout::INDEX, &epoch.to_be_bytes())
        .map_err(VersionsError::store("removing an index"))
}

/// Merges the undo cursors of an epoch's versions, ascending by table, key and version.
pub(crate) struct Builder<'a> {
    store: &'a dyn Reader,
    epoch: u64,
    length: u64,
    cursors: Vec<(u32, Cursor)>,
    /// Table byte and key, version within the epoch, place among the cursors.
    heap: BinaryHeap<Reverse<(Vec<u8>, u16, usize)>>,
    marked: bool,
}

impl<'a> Builder<'a> {
    /// Begins with version `first`, which lies in the epoch.
    pub(crate) fn new(
        store: &'a dyn Reader,
        epoch: u64,
        length: u64,
        first: u64,
    ) -> Result<Self, VersionsError> {
        let mut builder = Self {
            store,
            epoch,
            length,
            cursors: Vec::new(),
            heap: BinaryHeap::new(),
            marked: false,
        };
        for version in first..(epoch + 1) * length {
            let cursor = stored_cursor(store, version, 0)?;
            builder.cursors.push((0, cursor));
            let offset = u16::try_from(version % length)
                .expect("invariant: an epoch has at most 65,536 versions");
            builder.push_next(builder.cursors.len() - 1, offset)?;
        }
        Ok(builder)
    }

    /// Puts the next entry of a cursor into the heap.
    fn push_next(&mut self, place: usize, offset: u16) -> Result<(), VersionsError> {
        let (chunk, cursor) = &mut self.cursors[place];
        while !cursor.advance()? {
            *chunk += 1;
            if *chunk == cursor.chunks() {
                return Ok(());
            }
            let version = self.epoch * self.length + u64::from(offset);
            *cursor = stored_cursor(self.store, version, *chunk)?;
        }
        let key = cursor.table_and_key().to_vec();
        self.heap.push(Reverse((key, offset, place)));
        Ok(())
    }

    /// Returns the next key's entry, at the end the epoch's mark, then nothing.
    pub(crate) fn next_entry(&mut self) -> Result<Option<Write>, VersionsError> {
        let Some(Reverse((key, _, _))) = self.heap.peek() else {
            let mark = (!self.marked).then(|| Write {
                table: layout::SYSTEM,
                key: layout::indexed_key(self.epoch),
                value: Some(layout::empty()),
            });
            self.marked = true;
            return Ok(mark);
        };
        let key = key.clone();
        let mut list = Vec::new();
        while let Some(Reverse(top)) = self.heap.peek()
            && top.0 == key
        {
            let (offset, place) = (top.1, top.2);
            let chunk = u16::try_from(self.cursors[place].0).unwrap_or(u16::MAX);
            list.extend_from_slice(&offset.to_be_bytes());
            list.extend_from_slice(&chunk.to_be_bytes());
            self.heap.pop();
            self.push_next(place, offset)?;
        }
        Ok(Some(Write {
            table: layout::INDEX,
            key: layout::index_key(self.epoch, Table(key[0]), &key[1..]),
            value: Some(Value::from(list)),
        }))
    }
}

/// Returns the last version of an epoch.
pub(crate) fn last_version(epoch: u64, length: u64) -> u64 {
    (epoch + 1) * length - 1
}

/// Returns the first version of an epoch that has undo: the first version of all has none.
pub(crate) fn first_undo(epoch: u64, length: u64) -> u64 {
    (epoch * length).max(1)
}

//! The index of an epoch: which of its versions change a key.
//!
//! Built once, when all versions of an epoch are stored and retained, by merging their undo
//! records: 1,024 cursors, each over one chunk at a time, straight into a sorted ingestion. The
//! entry of a key is a list of (version within the epoch: u16, undo chunk: u16), big-endian and
//! ascending. A chunk number above 65,535 is stored as 65,535 and found from there on.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use arbor_store::{Reader, Store, Table, Value, Write};

use crate::error::VersionsError;
use crate::layout;
use crate::undo::{Cursor, found_cursor, missing};

/// The records that an index is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Of {
    /// Undo, which every version of an indexed epoch has.
    Flat,
    /// [Old nodes](crate::old_nodes), which some versions have.
    Nodes,
}

impl Of {
    /// The table of the records.
    pub(crate) const fn records(self) -> Table {
        match self {
            Self::Flat => layout::UNDO,
            Self::Nodes => layout::OLD_NODES,
        }
    }

    /// The table of the index.
    pub(crate) const fn table(self) -> Table {
        match self {
            Self::Flat => layout::INDEX,
            Self::Nodes => layout::NODE_INDEX,
        }
    }

    /// The prefix of the marks of epochs.
    pub(crate) const fn marks(self) -> &'static [u8] {
        match self {
            Self::Flat => layout::INDEXED_PREFIX,
            Self::Nodes => layout::NODE_INDEXED_PREFIX,
        }
    }

    /// The key of the mark of an epoch.
    pub(crate) fn mark(self, epoch: u64) -> Box<[u8]> {
        [self.marks(), &epoch.to_be_bytes()].concat().into()
    }
}

/// Which versions of an epoch change a key: ascending, each with the chunk of its record where the search for the key begins.
pub(crate) struct ChangedBy(Option<Value>);

impl ChangedBy {
    /// Reads what the index of an epoch says of a key.
    pub(crate) fn read(
        base: &dyn Reader,
        of: Of,
        (epoch, table, key): (u64, Table, &[u8]),
    ) -> Result<Self, VersionsError> {
        let list = base
            .get(of.table(), &layout::index_key(epoch, table, key))
            .map_err(VersionsError::store("reading an index"))?;
        match list {
            Some(list) if list.len() % 4 != 0 => Err(VersionsError::malformed(
                format!("index of epoch {epoch}"),
                "not a list of 4-byte entries",
            )),
            list => Ok(Self(list)),
        }
    }

    /// The versions from one on, counted within the epoch.
    pub(crate) fn from(&self, from: u64) -> impl Iterator<Item = (u64, u32)> + '_ {
        let list = self.0.as_deref().unwrap_or_default();
        let entries = list.as_chunks::<4>().0;
        let entry = |bytes: &[u8; 4]| {
            let [a, b, c, d] = *bytes;
            (
                u64::from(u16::from_be_bytes([a, b])),
                u32::from(u16::from_be_bytes([c, d])),
            )
        };
        let place = entries.partition_point(|bytes| entry(bytes).0 < from);
        entries[place..].iter().map(entry)
    }
}

/// Builds the index of an epoch from stored undo and returns the bytes handed to the store.
pub(crate) fn build(
    store: &dyn Store,
    of: Of,
    epoch: u64,
    length: u64,
) -> Result<u64, VersionsError> {
    remove(store, of, epoch)?;
    let first = first_undo(epoch, length);
    let mut entries = Builder::new(store, of, (epoch, length), first)?;
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
pub(crate) fn remove(store: &dyn Store, of: Of, epoch: u64) -> Result<(), VersionsError> {
    store
        .delete_prefix(of.table(), &epoch.to_be_bytes())
        .map_err(VersionsError::store("removing an index"))
}

/// Reads which epochs have an index.
pub(crate) fn marked(store: &dyn Reader, of: Of) -> Result<BTreeSet<u64>, VersionsError> {
    let mut indexed = BTreeSet::new();
    let marks = store
        .scan(layout::SYSTEM, of.marks(), &[])
        .map_err(VersionsError::store("reading the marks of indexes"))?;
    for mark in marks {
        let (key, _) = mark.map_err(VersionsError::store("reading the marks of indexes"))?;
        let epoch = <[u8; 8]>::try_from(&key[of.marks().len()..])
            .map_err(|_| VersionsError::malformed("mark of an index", "epoch is not 8 bytes"))?;
        indexed.insert(u64::from_be_bytes(epoch));
    }
    Ok(indexed)
}

/// Merges the undo cursors of an epoch's versions, ascending by table, key and version.
pub(crate) struct Builder<'a> {
    store: &'a dyn Reader,
    of: Of,
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
        of: Of,
        (epoch, length): (u64, u64),
        first: u64,
    ) -> Result<Self, VersionsError> {
        let mut builder = Self {
            store,
            of,
            epoch,
            length,
            cursors: Vec::new(),
            heap: BinaryHeap::new(),
            marked: false,
        };
        for version in first..(epoch + 1) * length {
            let cursor = match found_cursor(store, of.records(), version, 0)? {
                Some(cursor) => cursor,
                None if of == Of::Nodes => continue,
                None => return Err(missing(version, 0)),
            };
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
            let next = found_cursor(self.store, self.of.records(), version, *chunk)?;
            *cursor = next.ok_or_else(|| missing(version, *chunk))?;
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
                key: self.of.mark(self.epoch),
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
            table: self.of.table(),
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

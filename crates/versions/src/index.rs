//! The index of an epoch: which of its versions change a key.
//!
//! Built once, when all versions of an epoch are stored and retained, by merging their undo
//! records: 1,024 cursors, each over one chunk at a time, straight into a sorted ingestion. The
//! entry of a key is a list of (version within the epoch: u16, undo chunk: u16), big-endian and
//! ascending. A chunk number above 65,535 is stored as 65,535 and found from there on.

use std::collections::BTreeSet;

use arbor_store::{Reader, Store, Table, Value, Write};

use crate::error::VersionsError;
use crate::layout;
use crate::undo::{Cursor, found_cursor, missing};

/// The records that an index is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Of {
    /// Undo, which every version of an indexed epoch has.
    Flat,
    /// [Old nodes](crate::kept_nodes), which some versions have.
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

/// A cursor over a version's record.
struct Place {
    /// The version within the epoch.
    offset: u16,
    chunk: u32,
    cursor: Cursor,
    /// What the present key begins with: most keys are told apart by that.
    begin: u64,
}

/// The first eight bytes as a number, zeros for those that are missing: it does not come after a number of later bytes.
fn beginning(key: &[u8]) -> u64 {
    let mut begin = [0; 8];
    let length = key.len().min(8);
    begin[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(begin)
}

/// Merges the undo cursors of an epoch's versions, ascending by table, key and version.
pub(crate) struct Builder<'a> {
    store: &'a dyn Reader,
    of: Of,
    epoch: u64,
    length: u64,
    cursors: Vec<Place>,
    /// Places among the cursors, none of which is at its end: each comes before those at twice its place and one or two more.
    heap: Vec<u16>,
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
            heap: Vec::new(),
            marked: false,
        };
        for version in first..(epoch + 1) * length {
            let cursor = match found_cursor(store, of.records(), version, 0)? {
                Some(cursor) => cursor,
                None if of == Of::Nodes => continue,
                None => return Err(missing(version, 0)),
            };
            let offset = u16::try_from(version % length)
                .expect("invariant: an epoch has at most 65,536 versions");
            let place = builder.cursors.len() as u16;
            builder.cursors.push(Place {
                offset,
                chunk: 0,
                cursor,
                begin: 0,
            });
            if builder.step(place)? {
                builder.heap.push(place);
            }
        }
        for at in (0..builder.heap.len() / 2).rev() {
            builder.sink(at);
        }
        Ok(builder)
    }

    /// Steps to the next entry of a version, in its next chunk if need be; `false` at the end.
    fn step(&mut self, place: u16) -> Result<bool, VersionsError> {
        let place = &mut self.cursors[usize::from(place)];
        while !place.cursor.advance()? {
            place.chunk += 1;
            if place.chunk == place.cursor.chunks() {
                return Ok(false);
            }
            let version = self.epoch * self.length + u64::from(place.offset);
            let next = found_cursor(self.store, self.of.records(), version, place.chunk)?;
            place.cursor = next.ok_or_else(|| missing(version, place.chunk))?;
        }
        place.begin = beginning(place.cursor.table_and_key());
        Ok(true)
    }

    /// Whether the entry of one cursor comes before that of another: by key, then by version.
    fn is_before(&self, a: u16, b: u16) -> bool {
        let (a, b) = (&self.cursors[usize::from(a)], &self.cursors[usize::from(b)]);
        let by_key = a.begin.cmp(&b.begin);
        let by_key = by_key.then_with(|| a.cursor.table_and_key().cmp(b.cursor.table_and_key()));
        by_key.then(a.offset.cmp(&b.offset)).is_lt()
    }

    /// Puts what is at a place in the heap behind what comes before it below.
    fn sink(&mut self, mut at: usize) {
        loop {
            let below = [2 * at + 1, 2 * at + 2];
            let below = below.into_iter().filter(|below| *below < self.heap.len());
            let least = below.reduce(|a, b| match self.is_before(self.heap[b], self.heap[a]) {
                true => b,
                false => a,
            });
            match least.filter(|least| self.is_before(self.heap[*least], self.heap[at])) {
                Some(least) => self.heap.swap(at, least),
                None => return,
            }
            at = least.unwrap_or(at);
        }
    }

    /// Returns the next key's entry, at the end the epoch's mark, then nothing.
    pub(crate) fn next_entry(&mut self) -> Result<Option<Write>, VersionsError> {
        let Some(&first) = self.heap.first() else {
            let mark = (!self.marked).then(|| Write {
                table: layout::SYSTEM,
                key: self.of.mark(self.epoch),
                value: Some(layout::empty()),
            });
            self.marked = true;
            return Ok(mark);
        };
        let key = self.cursors[usize::from(first)]
            .cursor
            .table_and_key()
            .to_vec();
        let mut list = Vec::new();
        while let Some(&top) = self.heap.first()
            && self.cursors[usize::from(top)].cursor.table_and_key() == &key[..]
        {
            let place = &self.cursors[usize::from(top)];
            let chunk = u16::try_from(place.chunk).unwrap_or(u16::MAX);
            list.extend_from_slice(&place.offset.to_be_bytes());
            list.extend_from_slice(&chunk.to_be_bytes());
            if !self.step(top)? {
                self.heap.swap_remove(0);
            }
            self.sink(0);
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

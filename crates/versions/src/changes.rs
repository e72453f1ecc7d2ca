//! What a version changes, and the checks on it before anything is touched.

use arbor_store::{Table, Value, Write, check_key};

use crate::error::VersionsError;
use crate::identity::{Schema, TableKind};
use crate::space::placed;
use crate::version::Version;

/// A change of a flat key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change<'a> {
    /// A flat table.
    pub table: Table,
    /// The key.
    pub key: &'a [u8],
    /// The value that it had before, which the caller has read.
    pub old: Option<&'a [u8]>,
    /// The new value; `None` deletes.
    pub new: Option<&'a [u8]>,
}

/// What a version changes. The order of entries is free; a key may occur once.
///
/// Keys and values lie one behind the other in a buffer: thousands of them, made and dropped one by one for every version, would each be a walk
/// to memory that has not been used for long.
#[derive(Clone, Default, Debug)]
pub struct Changes {
    pub(crate) flat: Vec<FlatEntry>,
    pub(crate) nodes: Vec<NodeEntry>,
    pub(crate) buffer: Buffer,
    /// Blobs; one that exists is left as it is.
    pub blobs: Vec<Write>,
}

/// Bytes of a chunk: few enough for the allocator to hand the same memory out again and again. What is larger it may ask of the system, page by
/// page and zeroed, every time.
const CHUNK: usize = 1 << 15;

/// Bytes in chunks of which none grows.
#[derive(Clone, Default, Debug)]
pub(crate) struct Buffer(Vec<Vec<u8>>);

/// Where in the buffer something begins.
#[derive(Clone, Copy, Debug)]
struct Place {
    chunk: u32,
    start: u32,
}

impl Buffer {
    /// Puts bytes one behind the other.
    fn put(&mut self, parts: &[&[u8]]) -> Place {
        let needed: usize = parts.iter().map(|part| part.len()).sum();
        let room = |chunk: &Vec<u8>| chunk.capacity() - chunk.len();
        if self.0.last().is_none_or(|last| room(last) < needed) {
            self.0.push(Vec::with_capacity(needed.max(CHUNK)));
        }
        let chunk = self.0.len() - 1;
        let last = &mut self.0[chunk];
        let place = Place {
            chunk: chunk as u32,
            start: last.len() as u32,
        };
        parts.iter().for_each(|part| last.extend_from_slice(part));
        place
    }

    fn from(&self, place: Place) -> &[u8] {
        &self.0[place.chunk as usize][place.start as usize..]
    }
}

/// Where a change lies: the key, then the old value, then the new one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlatEntry {
    pub(crate) table: Table,
    key: u32,
    /// Length plus one; 0 is `None`.
    old: u32,
    new: u32,
    place: Place,
}

/// Where a node's key lies, and its record.
#[derive(Clone, Debug)]
pub(crate) struct NodeEntry {
    pub(crate) table: Table,
    key: u32,
    place: Place,
    record: Record,
}

#[derive(Clone, Debug)]
enum Record {
    Deleted,
    /// In the buffer, behind the key.
    Copied(u32),
    Shared(Value),
}

/// A value to be kept: copied, or taken over as it is.
#[derive(Clone, Debug)]
pub(crate) enum New<'a> {
    Copied(&'a [u8]),
    Shared(Value),
}

impl New<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Copied(bytes) => bytes,
            Self::Shared(value) => value,
        }
    }

    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Copied(bytes) => bytes.into(),
            Self::Shared(value) => value,
        }
    }
}

/// A length in an entry, to which one can be added: keys and values are far shorter than 4 GiB.
fn length(bytes: &[u8]) -> u32 {
    let length = u32::try_from(bytes.len()).ok();
    let length = length.filter(|length| *length < u32::MAX);
    length.expect("invariant: keys and values of less than 4 GiB")
}

impl FlatEntry {
    /// The change, in the buffer that it lies in.
    pub(crate) fn change(self, buffer: &Buffer) -> Change<'_> {
        let (key, rest) = buffer.from(self.place).split_at(self.key as usize);
        let (old, rest) = rest.split_at(self.old.saturating_sub(1) as usize);
        Change {
            table: self.table,
            key,
            old: (self.old > 0).then_some(old),
            new: (self.new > 0).then(|| &rest[..self.new as usize - 1]),
        }
    }
}

impl NodeEntry {
    /// The key, in the buffer that it lies in, and what is behind it.
    fn split<'b>(&self, buffer: &'b Buffer) -> (&'b [u8], &'b [u8]) {
        buffer.from(self.place).split_at(self.key as usize)
    }

    pub(crate) fn key<'b>(&self, buffer: &'b Buffer) -> &'b [u8] {
        self.split(buffer).0
    }

    /// Takes the record out, to be kept.
    pub(crate) fn take<'b>(&mut self, buffer: &'b Buffer) -> Option<New<'b>> {
        match std::mem::replace(&mut self.record, Record::Deleted) {
            Record::Deleted => None,
            Record::Copied(length) => Some(New::Copied(&self.split(buffer).1[..length as usize])),
            Record::Shared(record) => Some(New::Shared(record)),
        }
    }
}

impl Changes {
    /// Nothing but blobs.
    pub fn of_blobs(blobs: Vec<Write>) -> Self {
        Self {
            blobs,
            ..Self::default()
        }
    }

    /// Makes room for so many flat changes and nodes.
    pub fn reserve(&mut self, flat: usize, nodes: usize) {
        self.flat.reserve(flat);
        self.nodes.reserve(nodes);
    }

    /// Adds a change of a flat key. Added in the order of tables and keys they are applied fastest.
    pub fn put_flat(&mut self, change: Change<'_>) {
        let Change {
            table,
            key,
            old,
            new,
        } = change;
        let parts = [key, old.unwrap_or_default(), new.unwrap_or_default()];
        self.flat.push(FlatEntry {
            table,
            key: length(key),
            old: old.map_or(0, |old| length(old) + 1),
            new: new.map_or(0, |new| length(new) + 1),
            place: self.buffer.put(&parts),
        });
    }

    /// Adds a node written or, with `None`, deleted. Its record is copied.
    pub fn put_node(&mut self, table: Table, key: &[u8], record: Option<&[u8]>) {
        let copied = record.map(|record| Record::Copied(length(record)));
        self.nodes.push(NodeEntry {
            table,
            key: length(key),
            place: self.buffer.put(&[key, record.unwrap_or_default()]),
            record: copied.unwrap_or(Record::Deleted),
        });
    }

    /// Adds a node written or, with `None`, deleted, whose record has memory of its own already.
    pub fn put_shared_node(&mut self, table: Table, key: &[u8], record: Option<Value>) {
        self.nodes.push(NodeEntry {
            table,
            key: length(key),
            place: self.buffer.put(&[key]),
            record: record.map_or(Record::Deleted, Record::Shared),
        });
    }

    /// Adds all of others behind these.
    pub fn append(&mut self, mut others: Self) {
        let before = self.buffer.0.len() as u32;
        let behind = |place: Place| Place {
            chunk: before + place.chunk,
            ..place
        };
        self.buffer.0.append(&mut others.buffer.0);
        self.flat.extend(others.flat.into_iter().map(|entry| {
            let place = behind(entry.place);
            FlatEntry { place, ..entry }
        }));
        self.nodes.extend(others.nodes.into_iter().map(|entry| {
            let place = behind(entry.place);
            NodeEntry { place, ..entry }
        }));
        self.blobs.append(&mut others.blobs);
    }

    /// The flat changes, in their order.
    pub fn flat(&self) -> impl ExactSizeIterator<Item = Change<'_>> + Clone {
        self.flat.iter().map(|entry| entry.change(&self.buffer))
    }

    /// Keys and records of the nodes written (`None`: deleted), in their order.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (&[u8], Option<&[u8]>)> {
        self.nodes.iter().map(|entry| {
            let (key, rest) = entry.split(&self.buffer);
            let record = match &entry.record {
                Record::Deleted => None,
                Record::Copied(length) => Some(&rest[..*length as usize]),
                Record::Shared(record) => Some(&**record),
            };
            (key, record)
        })
    }

    /// The nodes written (`None`: deleted), with their tables, in their order.
    pub(crate) fn node_entries(&self) -> impl Iterator<Item = (Table, &[u8], Option<&[u8]>)> {
        let tables = self.nodes.iter().map(|entry| entry.table);
        let nodes = tables.zip(self.nodes());
        nodes.map(|(table, (key, record))| (table, key, record))
    }

    /// These changes in the tables of the same names in the other [space](crate::OTHER_SPACE).
    #[must_use]
    pub fn in_other_space(mut self) -> Self {
        self.place(1);
        self
    }

    fn place(&mut self, space: u8) {
        let flat = self.flat.iter_mut().map(|entry| &mut entry.table);
        let nodes = self.nodes.iter_mut().map(|entry| &mut entry.table);
        let blobs = self.blobs.iter_mut().map(|blob| &mut blob.table);
        for table in flat.chain(nodes).chain(blobs) {
            *table = placed(space, *table);
        }
    }

    /// Checks tables and keys, sorts the flat changes and drops those that change nothing.
    pub(crate) fn prepare(
        &mut self,
        schema: &Schema,
        version: Version,
    ) -> Result<(), VersionsError> {
        if schema.space != 0 {
            self.place(schema.space);
        }
        let buffer = &self.buffer;
        for entry in &self.flat {
            check(
                schema,
                entry.table,
                entry.change(buffer).key,
                TableKind::Flat,
            )?;
        }
        for entry in &self.nodes {
            check(schema, entry.table, entry.key(buffer), TableKind::Nodes)?;
        }
        check_writes(schema, &self.blobs, TableKind::Blobs)?;
        let name = |entry: &FlatEntry| (entry.table, entry.change(buffer).key);
        if !self.flat.is_sorted_by(|a, b| name(a) < name(b)) {
            self.flat.sort_unstable_by(|a, b| name(a).cmp(&name(b)));
            let twice = |pair: &&[FlatEntry]| name(&pair[0]) == name(&pair[1]);
            if let Some(pair) = self.flat.windows(2).find(twice) {
                return Err(VersionsError::DuplicateChange {
                    version,
                    table: schema.specs()[schema.position(pair[0].table)?].name,
                    key: const_hex::encode(name(&pair[0]).1),
                });
            }
        }
        self.flat.retain(|entry| {
            let change = entry.change(buffer);
            change.old != change.new
        });
        Ok(())
    }
}

/// Checks that a key is one of a table of this kind.
fn check(schema: &Schema, table: Table, key: &[u8], kind: TableKind) -> Result<(), VersionsError> {
    schema.position_of_kind(table, kind)?;
    check_key(table, key).map_err(VersionsError::store("checking a change"))
}

/// Checks that writes go to tables of one kind and that no blob is deleted.
pub(crate) fn check_writes(
    schema: &Schema,
    writes: &[Write],
    kind: TableKind,
) -> Result<(), VersionsError> {
    for write in writes {
        check(schema, write.table, &write.key, kind)?;
        if kind == TableKind::Blobs && write.value.is_none() {
            return Err(VersionsError::Table {
                table: write.table.0,
                reason: "blobs are never deleted",
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes around a chunk's, and few.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let length = prop_oneof![
            4 => 0..70usize,
            1 => CHUNK - 70..CHUNK + 3,
            1 => Just(CHUNK / 2),
            1 => Just(2 * CHUNK + 1),
        ];
        (length, any::<u8>()).prop_map(|(length, byte)| vec![byte; length])
    }

    fn optional() -> impl Strategy<Value = Option<Vec<u8>>> {
        proptest::option::of(bytes())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_put_comes_back(
            entries in proptest::collection::vec((bytes(), optional(), optional(), 0..4usize), 0..12),
            cloned_at in 0..12usize,
            appended_at in 0..12usize,
        ) {
            let (mut before, mut changes) = (Changes::default(), Changes::default());
            for (place, (key, old, new, kind)) in entries.iter().enumerate() {
                if place == cloned_at {
                    changes = changes.clone();
                }
                if place == appended_at {
                    before = std::mem::take(&mut changes);
                }
                let (old, new) = (old.as_deref(), new.as_deref());
                match kind {
                    0 => changes.put_node(Table(2), key, new),
                    1 => changes.put_shared_node(Table(2), key, new.map(Value::from)),
                    _ => changes.put_flat(Change { table: Table(1), key, old, new }),
                }
            }
            before.append(changes);
            let changes = before;
            let of = |is_node: bool| entries.iter().filter(move |entry| (entry.3 < 2) == is_node);
            let flat = of(false).map(|(key, old, new, _)| Change {
                table: Table(1),
                key,
                old: old.as_deref(),
                new: new.as_deref(),
            });
            prop_assert!(changes.flat().eq(flat));
            let nodes: Vec<_> = of(true).map(|(key, _, new, _)| (&key[..], new.as_deref())).collect();
            prop_assert!(changes.nodes().eq(nodes.iter().copied()));
            let Changes { nodes: mut stored, buffer, .. } = changes;
            for (entry, (key, new)) in stored.iter_mut().zip(nodes) {
                prop_assert_eq!(entry.key(&buffer), key);
                let taken = entry.take(&buffer).map(New::into_value);
                prop_assert_eq!(taken.as_deref(), new);
            }
        }
    }
}

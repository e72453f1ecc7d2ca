//! Unflushed data: the newest value of every changed key, merged over versions.

use arbor_store::{ShortKey, Value};

use crate::changes::{Buffer, FlatEntry, New};
use crate::hashed::{self, Hashed};
use crate::identity::{Schema, TableKind};
use crate::ordered::{self, Ordered};
use crate::slot::{Base, Change, Slot};

/// Bytes of a node's or blob's entry besides its value and what of its key is not inline: its place in a block and in the table at the usual
/// load, and the header of the value's allocation.
const HASHED_BYTES: usize = 116;
/// Bytes of a flat entry, likewise, and its share of a tree node of the order at the usual load.
const ORDERED_BYTES: usize = 252;
/// So many changes or more, if they are also [`PART`] of what a flat table has, are put by merging both anew: tree nodes that are filled in order are full.
const MANY: usize = 1 << 12;
const PART: usize = 8;

/// The changes of consecutive versions to all of the caller's tables.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    tables: Vec<TableLayer>,
}

/// Those to one table.
#[derive(Clone, Debug)]
pub(crate) struct TableLayer {
    slots: Slots,
    bytes: usize,
}

#[derive(Clone, Debug)]
enum Slots {
    /// A flat table, where scans are frequent.
    Ordered(Ordered),
    /// Any other. Most keys of nodes are an account's hash and a short path.
    Hashed(Hashed<40>),
}

/// Entries of one table, ascending by key.
pub(crate) type Entries<'a> = Box<dyn Iterator<Item = (Box<[u8]>, &'a Slot)> + 'a>;

impl From<Slots> for TableLayer {
    fn from(slots: Slots) -> Self {
        Self { slots, bytes: 0 }
    }
}

impl Slots {
    fn new(kind: TableKind) -> Self {
        match kind {
            TableKind::Flat => Self::Ordered(Ordered::default()),
            TableKind::Nodes | TableKind::Blobs => Self::Hashed(Hashed::default()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Ordered(slots) => slots.len(),
            Self::Hashed(slots) => slots.len(),
        }
    }

    fn get(&self, key: &[u8]) -> Option<&Slot> {
        match self {
            Self::Ordered(slots) => slots.get(key),
            Self::Hashed(slots) => slots.get(key),
        }
    }

    /// Bytes that an entry takes besides its value and what of its key is not inline, and how many bytes of a key are.
    fn overhead(&self) -> (usize, usize) {
        match self {
            Self::Ordered(_) => (ORDERED_BYTES, 64),
            Self::Hashed(_) => (HASHED_BYTES, 40),
        }
    }

    /// Bytes that an entry takes.
    fn cost(&self, key: &[u8], value: usize) -> usize {
        let (overhead, inline) = self.overhead();
        overhead + key.len().saturating_sub(inline) + value
    }
}

impl TableLayer {
    /// Sets a key's newest value. `base` counts only at the layer's first touch of the key. A key
    /// that was absent below and is deleted again leaves no trace.
    pub(crate) fn put(&mut self, key: &[u8], new: Option<New<'_>>, base: Base) {
        let length = new.as_ref().map_or(0, |new| new.bytes().len());
        let change = match &mut self.slots {
            Slots::Ordered(slots) => slots.put(key, new, base),
            Slots::Hashed(slots) => slots.put(key, new, base),
        };
        self.count(key, length, change);
    }

    /// Counts the bytes of a change that has put a value of `length` bytes.
    fn count(&mut self, key: &[u8], length: usize, change: Change) {
        let cost = |value| self.slots.cost(key, value);
        match change {
            Change::None => {}
            Change::Added(_) => self.bytes += cost(length),
            Change::Replaced(old) => self.bytes = self.bytes - old + length,
            Change::Removed(old) => self.bytes -= cost(old),
        }
    }

    /// Brings what [`put`](Self::put) will look at for these keys, at most [`hashed::KEYS_WARMED_TOGETHER`], into the processor's caches.
    pub(crate) fn warm<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) {
        match &self.slots {
            Slots::Ordered(slots) => slots.entries().warm(keys),
            Slots::Hashed(slots) => slots.warm(keys),
        }
    }

    /// As [`put`](Self::put), of the changes of a flat table, whose keys ascend, in the buffer that they lie in.
    pub(crate) fn put_sorted(&mut self, changes: &[FlatEntry], buffer: &Buffer) {
        let many = changes.len() >= MANY && changes.len() >= self.slots.len() / PART;
        let mut added = Vec::with_capacity(if many { changes.len() } else { 0 });
        for some in changes.chunks(hashed::KEYS_WARMED_TOGETHER) {
            self.warm(some.iter().map(|entry| entry.change(buffer).key));
            for change in some.iter().map(|entry| entry.change(buffer)) {
                let base = match change.old {
                    None => Base::Absent,
                    Some(_) => Base::Present,
                };
                let (key, new) = (change.key, change.new.map(New::Copied));
                let put = match &mut self.slots {
                    Slots::Ordered(slots) if many => slots.put_unlisted(key, new, base),
                    Slots::Ordered(slots) => slots.put(key, new, base),
                    Slots::Hashed(slots) => slots.put(key, new, base),
                };
                if let (Change::Added(place), true) = (put, many) {
                    added.push((ordered::Key::new(key), place));
                }
                self.count(key, change.new.map_or(0, <[u8]>::len), put);
            }
        }
        if let (Slots::Ordered(slots), true) = (&mut self.slots, many) {
            slots.list(added);
        }
    }
}

impl Layer {
    pub(crate) fn new(schema: &Schema) -> Self {
        let tables = schema
            .specs()
            .iter()
            .map(|spec| Slots::new(spec.kind).into());
        Self {
            tables: tables.collect(),
        }
    }

    /// Makes an empty layer that will hold about as much as this one without growing.
    pub(crate) fn successor(&self) -> Self {
        let table = |old: &TableLayer| match &old.slots {
            Slots::Ordered(slots) => Slots::Ordered(slots.successor()).into(),
            Slots::Hashed(slots) => Slots::Hashed(Hashed::with_capacity(slots.len())).into(),
        };
        Self {
            tables: self.tables.iter().map(table).collect(),
        }
    }

    /// Returns the memory that the layer takes, overhead estimated.
    pub(crate) fn bytes(&self) -> usize {
        self.tables.iter().map(|table| table.bytes).sum()
    }

    /// Returns about how many bytes keys and values have.
    pub(crate) fn content_bytes(&self) -> usize {
        let content = |table: &TableLayer| {
            let (overhead, inline) = table.slots.overhead();
            table.bytes - table.slots.len() * (overhead - inline)
        };
        self.tables.iter().map(content).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.tables.iter().map(|table| table.slots.len()).sum()
    }

    pub(crate) fn get(&self, position: usize, key: &[u8]) -> Option<&Slot> {
        self.tables[position].slots.get(key)
    }

    /// Finds those of `missing`, places and keys, that are here, tells of them, and takes them from the list.
    pub(crate) fn find_all<'a>(
        &'a self,
        position: usize,
        missing: &mut Vec<(usize, &[u8])>,
        mut found: impl FnMut(usize, &'a Slot),
    ) {
        let slots = &self.tables[position].slots;
        let mut left = 0;
        for start in (0..missing.len()).step_by(hashed::KEYS_WARMED_TOGETHER) {
            let end = missing.len().min(start + hashed::KEYS_WARMED_TOGETHER);
            let keys = missing[start..end].iter().map(|(_, key)| *key);
            match slots {
                Slots::Ordered(slots) => slots.entries().warm(keys),
                Slots::Hashed(slots) => slots.warm(keys),
            }
            for index in start..end {
                let (place, key) = missing[index];
                match slots.get(key) {
                    Some(slot) => found(place, slot),
                    None => {
                        missing[left] = (place, key);
                        left += 1;
                    }
                }
            }
        }
        missing.truncate(left);
    }

    /// As [`TableLayer::put`], in one of the tables.
    pub(crate) fn put(&mut self, position: usize, key: &[u8], value: Option<Value>, base: Base) {
        self.tables[position].put(key, value.map(New::Shared), base);
    }

    /// The flat tables and the others, each at its position in one of the two lists, so that two threads can fill them.
    pub(crate) fn flat_and_others(&mut self) -> [Vec<Option<&mut TableLayer>>; 2] {
        let (mut flats, mut others) = (Vec::new(), Vec::new());
        for table in &mut self.tables {
            let (flat, other) = match table.slots {
                Slots::Ordered(_) => (Some(table), None),
                Slots::Hashed(_) => (None, Some(table)),
            };
            flats.push(flat);
            others.push(other);
        }
        [flats, others]
    }

    /// Lays a newer layer over this one.
    pub(crate) fn absorb(&mut self, newer: &Self) {
        for (position, table) in newer.tables.iter().enumerate() {
            let mut put = |key: &[u8], slot: &Slot| {
                self.put(position, key, slot.value.clone(), slot.base);
            };
            match &table.slots {
                Slots::Ordered(slots) => {
                    slots
                        .from(&[])
                        .for_each(|(key, slot)| put(&key.to_bytes(), slot));
                }
                Slots::Hashed(slots) => {
                    slots
                        .iter()
                        .for_each(|(key, slot)| put(&key.to_bytes(), slot));
                }
            }
        }
    }

    /// Forgets what was known to lie below, after a flush whose outcome is uncertain.
    pub(crate) fn forget_base(&mut self) {
        for table in &mut self.tables {
            let forget = |slot: &mut Slot| slot.base = Base::Unknown;
            match &mut table.slots {
                Slots::Ordered(slots) => slots.values_mut().for_each(forget),
                Slots::Hashed(slots) => slots.values_mut().for_each(forget),
            }
        }
    }

    /// Returns a table's entries in order: as they are in a flat table, sorted here for any other.
    pub(crate) fn entries(&self, position: usize) -> Entries<'_> {
        self.scan(position, &[], &[])
    }

    /// Returns the entries whose key begins with `prefix` and is not below `from`, in order. For
    /// other than flat tables this looks at every entry of the table.
    pub(crate) fn scan<'a>(&'a self, position: usize, prefix: &[u8], from: &[u8]) -> Entries<'a> {
        let (prefix, start) = (prefix.to_vec(), prefix.max(from));
        match &self.tables[position].slots {
            Slots::Ordered(slots) => {
                let entries = slots.from(start);
                let within = entries.take_while(move |(key, _)| key.starts_with(&prefix));
                Box::new(within.map(|(key, slot)| (key.to_bytes(), slot)))
            }
            Slots::Hashed(slots) => {
                let (all, start) = (start.is_empty(), ShortKey::new(start));
                let fits = |(key, _): &(&ShortKey<40>, _)| {
                    all || (**key >= start && key.starts_with(&prefix))
                };
                let found = slots.iter().filter(fits);
                // With the first bytes beside them hardly any key is fetched to be compared.
                let mut found: Vec<_> = found
                    .map(|(key, slot)| (key.leading(), key, slot))
                    .collect();
                found.sort_unstable_by_key(|(leading, key, _)| (*leading, *key));
                Box::new((0..found.len()).map(move |at| {
                    // They lie in another order than they come.
                    if at % hashed::KEYS_WARMED_TOGETHER == 0 {
                        let some = found[at..].iter().take(hashed::KEYS_WARMED_TOGETHER);
                        hashed::fetch(some.map(|(_, key, slot)| (*key, *slot)));
                    }
                    let (_, key, slot) = found[at];
                    (key.to_bytes(), slot)
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use arbor_store::Table;

    use super::*;
    use crate::identity::TableSpec;

    fn layer() -> Layer {
        let specs = [(0, TableKind::Flat), (1, TableKind::Nodes)].map(|(table, kind)| TableSpec {
            table: Table(table),
            name: "t",
            kind,
        });
        Layer::new(&Schema::new(&specs, 0).expect("valid"))
    }

    fn keys(entries: Entries<'_>) -> Vec<Vec<u8>> {
        entries.map(|(key, _)| key.to_vec()).collect()
    }

    #[test]
    fn created_and_deleted_leaves_nothing() {
        let mut layer = layer();
        layer.put(0, b"k", Some(Value::from(*b"v")), Base::Absent);
        assert_eq!((layer.bytes(), layer.content_bytes()), (253, 65));
        layer.put(0, b"k", None, Base::Present);
        assert!(layer.is_empty());
        assert_eq!((layer.bytes(), keys(layer.entries(0)).len()), (0, 0));
        layer.put(0, b"k", None, Base::Unknown);
        assert_eq!(layer.len(), 1, "a deletion of what may be below stays");
    }

    #[test]
    fn scans_by_prefix_and_start() {
        let mut layer = layer();
        for position in [0, 1] {
            for key in ["b", "ab", "a", "abc", "ac", "c"] {
                let value = Some(Value::from(*b"v"));
                layer.put(position, key.as_bytes(), value, Base::Unknown);
            }
            let found = keys(layer.scan(position, b"a", b""));
            assert_eq!(found, [&b"a"[..], b"ab", b"abc", b"ac"]);
            let found = keys(layer.scan(position, b"a", b"aba"));
            assert_eq!(found, [&b"abc"[..], b"ac"]);
            assert!(keys(layer.scan(position, b"a", b"b")).is_empty());
        }
    }

    #[test]
    fn absorbing_keeps_the_older_base() {
        let (mut older, mut newer) = (layer(), layer());
        older.put(1, b"x", Some(Value::from(*b"1")), Base::Absent);
        newer.put(1, b"x", None, Base::Unknown);
        newer.put(1, b"y", Some(Value::from(*b"2")), Base::Unknown);
        older.absorb(&newer);
        assert_eq!(keys(older.entries(1)), [b"y"]);
    }
}

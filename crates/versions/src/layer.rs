//! Unflushed data: the newest value of every changed key, merged over versions.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arbor_store::Value;
use foldhash::fast::RandomState;

use crate::identity::{Schema, TableKind};

/// What a key held below a layer, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Base {
    Unknown,
    Absent,
    Present,
}

/// A key's newest value in a layer; `None` is a deletion.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) value: Option<Value>,
    pub(crate) base: Base,
}

/// Bytes of a hash-map slot at its usual load, the allocations' headers and the allocator's own.
const ENTRY_BYTES: usize = 128;
/// Bytes of an entry in the ordered set, its tree node's slack included.
const ORDER_BYTES: usize = 36;

/// The changes of consecutive versions to all of the caller's tables.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    tables: Vec<TableLayer>,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct TableLayer {
    slots: HashMap<Arc<[u8]>, Slot, RandomState>,
    /// The keys in order: of flat tables only, where scans are frequent.
    order: Option<BTreeSet<OrderedKey>>,
}

/// A key that mostly compares by its first eight bytes, without following the pointer.
#[derive(Clone, PartialEq, Eq, Debug)]
struct OrderedKey {
    head: u64,
    key: Arc<[u8]>,
}

impl OrderedKey {
    fn new(key: Arc<[u8]>) -> Self {
        let mut head = [0; 8];
        let length = key.len().min(8);
        head[..length].copy_from_slice(&key[..length]);
        Self {
            head: u64::from_be_bytes(head),
            key,
        }
    }
}

impl Ord for OrderedKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.head
            .cmp(&other.head)
            .then_with(|| self.key.cmp(&other.key))
    }
}

impl PartialOrd for OrderedKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Entries of one table, ascending by key.
pub(crate) type Entries<'a> = Box<dyn Iterator<Item = (&'a Arc<[u8]>, &'a Slot)> + 'a>;

impl Layer {
    pub(crate) fn new(schema: &Schema) -> Self {
        let table = |kind| TableLayer {
            slots: HashMap::default(),
            order: (kind == TableKind::Flat).then(BTreeSet::new),
        };
        Self {
            tables: schema.specs().iter().map(|spec| table(spec.kind)).collect(),
            bytes: 0,
        }
    }

    /// Makes an empty layer that will hold about as much as this one without growing.
    pub(crate) fn successor(&self) -> Self {
        let table = |old: &TableLayer| TableLayer {
            slots: HashMap::with_capacity_and_hasher(old.slots.len(), RandomState::default()),
            order: old.order.as_ref().map(|_| BTreeSet::new()),
        };
        Self {
            tables: self.tables.iter().map(table).collect(),
            bytes: 0,
        }
    }

    /// Returns the memory that the layer takes, overhead estimated.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tables.iter().all(|table| table.slots.is_empty())
    }

    pub(crate) fn len(&self) -> usize {
        self.tables.iter().map(|table| table.slots.len()).sum()
    }

    pub(crate) fn get(&self, position: usize, key: &[u8]) -> Option<&Slot> {
        self.tables[position].slots.get(key)
    }

    /// Sets a key's newest value. `base` counts only at the layer's first touch of the key. A key
    /// that was absent below and is deleted again leaves no trace.
    pub(crate) fn put(
        &mut self,
        position: usize,
        key: Box<[u8]>,
        value: Option<Value>,
        base: Base,
    ) {
        let table = &mut self.tables[position];
        if let Some(slot) = table.slots.get_mut(&*key) {
            if value.is_none() && slot.base == Base::Absent {
                self.bytes -= Self::cost(&table.order, &key, slot.value.as_ref());
                let (key, _) = table
                    .slots
                    .remove_entry(&*key)
                    .expect("invariant: the slot was just found");
                if let Some(order) = &mut table.order {
                    order.remove(&OrderedKey::new(key));
                }
                return;
            }
            self.bytes -= slot.value.as_ref().map_or(0, |old| old.len());
            self.bytes += value.as_ref().map_or(0, |new| new.len());
            slot.value = value;
        } else if value.is_some() || base != Base::Absent {
            self.insert(position, key.into(), Slot { value, base });
        }
    }

    fn insert(&mut self, position: usize, key: Arc<[u8]>, slot: Slot) {
        let table = &mut self.tables[position];
        self.bytes += Self::cost(&table.order, &key, slot.value.as_ref());
        if let Some(order) = &mut table.order {
            order.insert(OrderedKey::new(key.clone()));
        }
        table.slots.insert(key, slot);
    }

    fn cost(order: &Option<BTreeSet<OrderedKey>>, key: &[u8], value: Option<&Value>) -> usize {
        let order = order.as_ref().map_or(0, |_| ORDER_BYTES);
        ENTRY_BYTES + order + key.len() + value.map_or(0, |value| value.len())
    }

    /// Lays a newer layer over this one.
    pub(crate) fn absorb(&mut self, newer: &Self) {
        for (position, table) in newer.tables.iter().enumerate() {
            for (key, slot) in &table.slots {
                if self.tables[position].slots.contains_key(key) {
                    self.put(position, Box::from(&**key), slot.value.clone(), slot.base);
                } else {
                    self.insert(position, key.clone(), slot.clone());
                }
            }
        }
    }

    /// Forgets what was known to lie below, after a flush whose outcome is uncertain.
    pub(crate) fn forget_base(&mut self) {
        for table in &mut self.tables {
            for slot in table.slots.values_mut() {
                slot.base = Base::Unknown;
            }
        }
    }

    /// Returns a table's entries in order: straight from the set for a flat table, sorted here
    /// for any other.
    pub(crate) fn entries(&self, position: usize) -> Entries<'_> {
        self.scan(position, &[], &[])
    }

    /// Returns the entries whose key begins with `prefix` and is not below `from`, in order. For
    /// other than flat tables this looks at every entry of the table.
    pub(crate) fn scan<'a>(&'a self, position: usize, prefix: &[u8], from: &[u8]) -> Entries<'a> {
        let table = &self.tables[position];
        let (prefix, start) = (prefix.to_vec(), prefix.max(from));
        if let Some(order) = &table.order {
            let keys = order.range(OrderedKey::new(start.into())..);
            let within = keys.take_while(move |entry| entry.key.starts_with(&prefix));
            let slot = |key| {
                table
                    .slots
                    .get(key)
                    .expect("invariant: ordered keys have slots")
            };
            return Box::new(within.map(move |entry| (&entry.key, slot(&entry.key))));
        }
        let mut found: Vec<_> = table
            .slots
            .iter()
            .filter(|(key, _)| ***key >= *start && key.starts_with(&prefix))
            .collect();
        found.sort_unstable_by_key(|entry| entry.0);
        Box::new(found.into_iter())
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
        Layer::new(&Schema::new(&specs).expect("valid"))
    }

    fn keys(entries: Entries<'_>) -> Vec<Vec<u8>> {
        entries.map(|(key, _)| key.to_vec()).collect()
    }

    #[test]
    fn ordered_keys_compare_like_bytes() {
        let samples: [&[u8]; 9] = [
            b"",
            b"\0",
            b"\0\0",
            b"a",
            b"a\0",
            b"abcdefgh",
            b"abcdefgh\0",
            b"abcdefghi",
            b"b",
        ];
        for a in samples {
            for b in samples {
                let ordered = OrderedKey::new(a.into()).cmp(&OrderedKey::new(b.into()));
                assert_eq!(ordered, a.cmp(b), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn created_and_deleted_leaves_nothing() {
        let mut layer = layer();
        layer.put(0, Box::from(*b"k"), Some(Value::from(*b"v")), Base::Absent);
        assert!(layer.bytes() > 0);
        layer.put(0, Box::from(*b"k"), None, Base::Present);
        assert!(layer.is_empty());
        assert_eq!((layer.bytes(), keys(layer.entries(0)).len()), (0, 0));
        layer.put(0, Box::from(*b"k"), None, Base::Unknown);
        assert_eq!(layer.len(), 1, "a deletion of what may be below stays");
    }

    #[test]
    fn scans_by_prefix_and_start() {
        let mut layer = layer();
        for position in [0, 1] {
            for key in ["b", "ab", "a", "abc", "ac", "c"] {
                let value = Some(Value::from(*b"v"));
                layer.put(position, key.as_bytes().into(), value, Base::Unknown);
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
        older.put(1, Box::from(*b"x"), Some(Value::from(*b"1")), Base::Absent);
        newer.put(1, Box::from(*b"x"), None, Base::Unknown);
        newer.put(1, Box::from(*b"y"), Some(Value::from(*b"2")), Base::Unknown);
        older.absorb(&newer);
        assert_eq!(keys(older.entries(1)), [b"y"]);
    }
}

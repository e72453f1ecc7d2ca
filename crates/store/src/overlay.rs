//! A store whose writes leave the one below it as it is.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::ops::Deref;
use std::sync::Arc;

use crate::{Reader, Scan, Store, StoreError, Table, Value, Write};

/// What a deleted key holds in the store above; values there begin with [`PRESENT`].
const DELETED: &[u8] = &[];
const PRESENT: u8 = 1;

/// A store over what another one holds: what is written goes into a store of its own, and is read before what lies below, which never changes.
///
/// For trying out what becomes of a database: only what changes is written. A value is copied once more than in the store above, for the byte that tells it from a deleted one.
pub struct OverlayStore<O = Arc<dyn Store>> {
    base: Arc<dyn Reader>,
    over: O,
}

impl OverlayStore {
    /// Lays an empty store over what `base` reads.
    pub fn new(base: Arc<dyn Reader>, over: Arc<dyn Store>) -> Self {
        Self { base, over }
    }
}

impl<O> Reader for OverlayStore<O>
where
    O: Deref + Send + Sync,
    O::Target: Reader,
{
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StoreError> {
        match self.over.get(table, key)? {
            Some(marked) => Ok(unmarked(&marked)),
            None => self.base.get(table, key),
        }
    }

    fn multi_get(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, StoreError> {
        let mut values = self.over.multi_get(table, keys)?;
        let mut below = Vec::new();
        for (place, value) in values.iter_mut().enumerate() {
            match value {
                Some(marked) => *value = unmarked(marked),
                None => below.push(place),
            }
        }
        let wanted: Vec<&[u8]> = below.iter().map(|place| keys[*place]).collect();
        let found = self.base.multi_get(table, &wanted)?;
        for (place, value) in below.into_iter().zip(found) {
            values[place] = value;
        }
        Ok(values)
    }

    fn scan<'a>(
        &'a self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Scan<'a>, StoreError> {
        Ok(Box::new(Merged {
            base: self.base.scan(table, prefix, from)?.peekable(),
            over: self.over.scan(table, prefix, from)?.peekable(),
        }))
    }
}

impl Store for OverlayStore {
    fn write(&self, writes: &[Write], durable: bool) -> Result<(), StoreError> {
        let marked: Vec<Write> = writes.iter().cloned().map(marked).collect();
        self.over.write(&marked, durable)
    }

    fn ingest(&self, sorted: &mut dyn Iterator<Item = Write>) -> Result<(), StoreError> {
        self.over.ingest(&mut sorted.map(marked))
    }

    fn delete_prefix(&self, table: Table, prefix: &[u8]) -> Result<(), StoreError> {
        let keys = self.scan(table, prefix, &[])?;
        let deleted = keys.map(|entry| {
            let (key, _) = entry?;
            Ok(marked(Write {
                table,
                key,
                value: None,
            }))
        });
        let deleted: Vec<Write> = deleted.collect::<Result<_, StoreError>>()?;
        self.over.write(&deleted, true)
    }

    fn snapshot(&self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(OverlayStore {
            base: self.base.clone(),
            over: self.over.snapshot()?,
        }))
    }

    fn compact(&self) -> Result<(), StoreError> {
        self.over.compact()
    }

    /// Those of the store above alone.
    fn disk_bytes(&self) -> Result<Option<u64>, StoreError> {
        self.over.disk_bytes()
    }
}

/// Both scans as one; the one above counts.
struct Merged<'a> {
    base: Peekable<Scan<'a>>,
    over: Peekable<Scan<'a>>,
}

impl Iterator for Merged<'_> {
    type Item = Result<(Box<[u8]>, Value), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let order = match (self.base.peek(), self.over.peek()) {
                (Some(Ok((base, _))), Some(Ok((over, _)))) => base.cmp(over),
                (None | Some(Ok(_)), Some(_)) => Ordering::Greater,
                _ => Ordering::Less,
            };
            if order.is_lt() {
                return self.base.next();
            }
            if order.is_eq() {
                self.base.next();
            }
            let (key, value) = match self.over.next()? {
                Ok(entry) => entry,
                error => return Some(error),
            };
            if let Some(value) = unmarked(&value) {
                return Some(Ok((key, value)));
            }
        }
    }
}

/// The write to the store above.
fn marked(write: Write) -> Write {
    let value = match &write.value {
        None => Value::from(DELETED),
        Some(value) => [PRESENT].iter().chain(value.iter()).copied().collect(),
    };
    Write {
        value: Some(value),
        ..write
    }
}

/// What a value of the store above says of its key.
fn unmarked(marked: &[u8]) -> Option<Value> {
    marked.split_first().map(|(_, value)| value.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;
    use crate::conformance::{Files, Subject, run};

    const TABLE: Table = Table(3);

    #[test]
    fn an_overlay_over_nothing_conforms() {
        run(&Subject {
            open: &|_| {
                let base = Arc::new(MemoryStore::default());
                Arc::new(OverlayStore::new(base, Arc::new(MemoryStore::default())))
            },
            files: Files::None,
        });
    }

    #[test]
    fn what_is_written_covers_what_lies_below_and_leaves_it_there() {
        let base = Arc::new(MemoryStore::default());
        let below = [b"a", b"b", b"c", b"d", b"e"].map(|key| Write::put(TABLE, key, b"below"));
        base.write(&below, true).expect("written");
        let store = OverlayStore::new(base.clone(), Arc::new(MemoryStore::default()));
        let before = store.snapshot().expect("frozen");
        let writes = [
            Write::delete(TABLE, b"a"),
            Write::put(TABLE, b"b", b""),
            Write::put(TABLE, b"bb", b"new"),
            Write::delete(TABLE, b"e"),
        ];
        store.write(&writes, true).expect("written");
        let all = |reader: &dyn Reader| -> Vec<(Box<[u8]>, Value)> {
            let entries = reader.scan(TABLE, b"", b"").expect("begun");
            entries.map(|entry| entry.expect("read")).collect()
        };
        let entry = |key: &[u8], value: &[u8]| (Box::from(key), Value::from(value));
        let now = [
            entry(b"b", b""),
            entry(b"bb", b"new"),
            entry(b"c", b"below"),
            entry(b"d", b"below"),
        ];
        assert_eq!(all(&store), now);
        let keys: [&[u8]; 6] = [b"a", b"b", b"bb", b"c", b"e", b"f"];
        let found = store.multi_get(TABLE, &keys).expect("read");
        for (key, found) in keys.iter().zip(found) {
            let listed = now.iter().find(|(listed, _)| **listed == **key);
            assert_eq!(found.as_ref(), listed.map(|(_, value)| value));
            assert_eq!(store.get(TABLE, key).expect("read"), found);
        }
        store.delete_prefix(TABLE, b"b").expect("deleted");
        assert_eq!(all(&store), now[2..]);
        assert_eq!(all(&*before).len(), 5);
        assert_eq!(all(&*base).len(), 5);
    }
}

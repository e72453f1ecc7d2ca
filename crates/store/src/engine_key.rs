//! Keys as the engines of persistent stores have them: those of all tables in one order.

use std::cmp::Ordering;

use crate::{KeyRange, OWNER_BYTES, Table, Write};

/// A key's parts in the order in which an engine has them. Writes ascend by them.
pub(crate) type Parts<'k> = ([u8; 1], &'k [u8], &'k [u8], &'k [u8]);

/// The table's byte, then the key; in a table by owner a byte that those of its group share, then the owner, the table's byte, and the
/// rest of the key. A key that is too short to have an owner comes as far as it goes.
///
/// What a key does not have is nothing of the key itself, where there is memory: to compare nothing at no address (`&[]`) takes glibc's `memcmp` with AVX-512 some 80 ns.
pub(crate) fn parts<'k>(table: &'k Table, key: &'k [u8]) -> Parts<'k> {
    let none = &key[..0];
    let Some(group) = table.group() else {
        return ([table.0], none, none, key);
    };
    match key.split_at_checked(OWNER_BYTES) {
        Some((owner, rest)) => ([group.0], owner, std::slice::from_ref(&table.0), rest),
        None => ([group.0], key, none, none),
    }
}

impl Write {
    /// Compares by table and key as stores order them, which is the order of an [ingestion](crate::Store::ingest).
    pub fn cmp_place(&self, other: &Self) -> Ordering {
        parts(&self.table, &self.key).cmp(&parts(&other.table, &other.key))
    }
}

/// The key as a store's engine has it.
pub fn engine_key(table: Table, key: &[u8]) -> Vec<u8> {
    let (first, owner, table, rest) = parts(&table, key);
    [&first, owner, table, rest].concat()
}

/// Calls `read` with the engine's key, which is on the stack for keys of ordinary length.
pub fn with_engine_key<T>(table: Table, key: &[u8], read: impl FnOnce(&[u8]) -> T) -> T {
    const ORDINARY: usize = 96;
    let mut bytes = [0; ORDINARY + 2];
    if key.len() > ORDINARY {
        return read(&engine_key(table, key));
    }
    let (first, owner, table, rest) = parts(&table, key);
    let mut length = 0;
    for part in [&first, owner, table, rest] {
        bytes[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    }
    read(&bytes[..length])
}

/// Which of an engine's keys a scan of one table looks at, and which of those are the table's.
#[derive(Clone, Debug)]
pub struct EngineRange {
    table: Table,
    /// The engine's keys to look at.
    pub keys: KeyRange,
    /// Whether keys of other tables may lie between.
    pub mixed: bool,
}

impl EngineRange {
    /// The keys of a table that begin with `prefix` and are not below `from`; `None` where there can be none.
    pub fn new(table: Table, prefix: &[u8], from: &[u8]) -> Option<Self> {
        let start = engine_key(table, prefix.max(from));
        Some(Self {
            table,
            keys: KeyRange::new(&engine_key(table, prefix), &start)?,
            mixed: table.is_by_owner() && prefix.len() < OWNER_BYTES,
        })
    }

    /// The table's key that an engine's key is; `None` for one of another table.
    pub fn key(&self, engine: &[u8]) -> Option<Box<[u8]>> {
        if !self.table.is_by_owner() {
            return Some(engine[1..].into());
        }
        let (owner, rest) = engine[1..].split_at_checked(OWNER_BYTES)?;
        let (table, rest) = rest.split_first()?;
        (*table == self.table.0).then(|| [owner, rest].concat().into())
    }

    /// What is left of the range behind a key of another table, up to where this table's next key can be; `None` if that is the end.
    pub fn behind(&self, engine: &[u8]) -> Option<KeyRange> {
        let owner = &engine[..engine.len().min(1 + OWNER_BYTES)];
        let start = match engine.get(1 + OWNER_BYTES) {
            Some(table) if *table < self.table.0 => [owner, &[self.table.0]].concat().into(),
            Some(_) => KeyRange::new(owner, &[])?.end?,
            // No key that a store takes: the next one is behind it.
            None => [engine, &[0]].concat().into(),
        };
        let end = self.keys.end.clone();
        let left = end.as_ref().is_none_or(|end| start < *end);
        left.then_some(KeyRange { start, end })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TABLES: [Table; 6] = [
        Table(0x7f),
        Table(0x80),
        Table(0x82),
        Table(0x83),
        Table(0xc0),
        Table(0xc2),
    ];

    /// Keys of few owners, and what a scan may be given of them.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        (
            prop::collection::vec(0..2u8, 2),
            prop::collection::vec(prop::sample::select(vec![0, 0x80, 0x82, 0xff]), 0..3),
        )
            .prop_map(|(owner, rest)| [vec![owner[0]; 31], vec![owner[1]], rest].concat())
    }

    fn part() -> impl Strategy<Value = Vec<u8>> {
        (key(), 0..36usize).prop_map(|(key, length)| key[..length.min(key.len())].to_vec())
    }

    proptest! {
        #[test]
        fn ranges_find_what_is_a_tables(
            entries in prop::collection::btree_set((prop::sample::select(TABLES.to_vec()), key()), 0..40),
            table in prop::sample::select(TABLES.to_vec()),
            prefix in part(),
            from in part(),
        ) {
            let mut engine: Vec<Vec<u8>> = entries.iter().map(|(table, key)| engine_key(*table, key)).collect();
            for ((table, key), engine) in entries.iter().zip(&engine) {
                with_engine_key(*table, key, |key| assert_eq!(key, engine));
            }
            engine.sort();
            engine.dedup();
            prop_assert_eq!(engine.len(), entries.len());
            let wanted: Vec<&[u8]> = entries.iter()
                .filter(|(of, key)| *of == table && key.starts_with(&prefix) && *key >= from)
                .map(|(_, key)| &key[..])
                .collect();
            let within = |range: &KeyRange, key: &&Vec<u8>| {
                ***key >= *range.start && range.end.as_ref().is_none_or(|end| ***key < **end)
            };
            let Some(range) = EngineRange::new(table, &prefix, &from) else {
                prop_assert!(wanted.is_empty());
                return Ok(());
            };
            let looked_at: Vec<_> = engine.iter().filter(|key| within(&range.keys, key)).collect();
            let found: Vec<_> = looked_at.iter().filter_map(|key| range.key(key)).collect();
            prop_assert!(found.iter().map(|key| &key[..]).eq(wanted.iter().copied()));
            prop_assert!(range.mixed || found.len() == looked_at.len());
            // Nothing is lost by going on where the next can be.
            for (place, other) in looked_at.iter().enumerate().filter(|(_, key)| range.key(key).is_none()) {
                let behind = range.behind(other);
                let left = looked_at[place..].iter().filter(|key| behind.as_ref().is_some_and(|range| within(range, key)));
                let left: Vec<_> = left.filter_map(|key| range.key(key)).collect();
                let all: Vec<_> = looked_at[place..].iter().filter_map(|key| range.key(key)).collect();
                prop_assert_eq!(left, all);
            }
        }
    }
}

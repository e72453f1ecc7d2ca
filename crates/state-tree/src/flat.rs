//! Flat records of one version: what is read without any tree.

use std::collections::BTreeMap;

use arbor_store::{Table, Value};
use arbor_versions::{Changes, Entries, VersionsError, View, in_other_space};

use crate::StateError;

/// A key of a flat table.
pub type FlatKey = Box<[u8]>;

/// Flat records with their keys, ascending.
pub type FlatEntries<'a, E = StateError> =
    Box<dyn Iterator<Item = Result<(Box<[u8]>, Value), E>> + 'a>;

/// Looks up a flat value by table and key.
pub type Lookup<'a> = &'a (dyn Fn(Table, &[u8]) -> Result<Option<Value>, StateError> + Sync);

/// The flat tables as they are at the head of a database, or were at an older version.
pub trait Flat {
    /// The value of a key.
    fn value(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StateError>;

    /// The values of keys, in their order.
    fn values(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, StateError> {
        keys.iter().map(|key| self.value(table, key)).collect()
    }

    /// The records of a table whose keys begin with `prefix`.
    fn entries(&self, table: Table, prefix: &[u8]) -> Result<FlatEntries<'_>, StateError>;
}

impl Flat for View<'_> {
    fn value(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StateError> {
        Ok(self.get(table, key)?)
    }

    fn values(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, StateError> {
        Ok(self.multi_get(table, keys)?)
    }

    fn entries(&self, table: Table, prefix: &[u8]) -> Result<FlatEntries<'_>, StateError> {
        let entries = self.scan(table, prefix, prefix)?;
        Ok(Box::new(entries.map(|entry| Ok(entry?))))
    }
}

/// Records with others laid over them, which ascend as they do and may be gone.
pub fn overlaid<'a, E: 'a>(
    below: impl Iterator<Item = Result<(Box<[u8]>, Value), E>> + 'a,
    above: impl Iterator<Item = (Box<[u8]>, Option<Value>)> + 'a,
) -> FlatEntries<'a, E> {
    let (mut below, mut above) = (below.peekable(), above.peekable());
    Box::new(std::iter::from_fn(move || {
        loop {
            let take_above = match (below.peek(), above.peek()) {
                (None, None) => return None,
                (Some(Err(_)), _) | (Some(_), None) => false,
                (None, Some(_)) => true,
                (Some(Ok((key, _))), Some((above_key, _))) => {
                    if key == above_key {
                        below.next();
                        continue;
                    }
                    above_key < key
                }
            };
            if !take_above {
                return below.next();
            }
            if let Some((key, Some(value))) = above.next() {
                return Some(Ok((key, value)));
            }
        }
    }))
}

/// Flat records of the other space of a database's tables, named as if they were of this one.
#[derive(Clone, Copy)]
pub struct OtherSpace<'a>(pub &'a dyn Flat);

impl Flat for OtherSpace<'_> {
    fn value(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StateError> {
        self.0.value(in_other_space(table), key)
    }

    fn values(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, StateError> {
        self.0.values(in_other_space(table), keys)
    }

    fn entries(&self, table: Table, prefix: &[u8]) -> Result<FlatEntries<'_>, StateError> {
        self.0.entries(in_other_space(table), prefix)
    }
}

type Changed = BTreeMap<(Table, FlatKey), Option<Value>>;

/// The flat tables with changes that are not applied yet laid over them.
pub struct Ahead<'a> {
    view: View<'a>,
    changed: Changed,
}

impl<'a> Ahead<'a> {
    /// Nothing but the tables.
    pub fn of(view: View<'a>) -> Self {
        Self {
            view,
            changed: Changed::new(),
        }
    }

    /// The same with the tables of the other space, named as if they were of this one.
    #[must_use]
    pub fn in_other_space(&self) -> Ahead<'a> {
        let changed = self.changed.iter();
        let changed = changed.map(|((table, key), value)| {
            let place = (in_other_space(*table), key.clone());
            (place, value.clone())
        });
        Self {
            view: self.view.in_other_space(),
            changed: changed.collect(),
        }
    }

    /// Lays the changes of one more version over them, and its blobs: some trees' tables of names are made of these. One that is there already is the same.
    pub fn put(&mut self, changes: &Changes) {
        for change in changes.flat() {
            let new = change.new.map(Value::from);
            self.changed.insert((change.table, change.key.into()), new);
        }
        for blob in &changes.blobs {
            let place = (blob.table, blob.key.clone());
            self.changed.insert(place, blob.value.clone());
        }
    }

    /// The records of a table whose keys begin with `prefix` and are not below `from`, like [`View::scan`].
    pub fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Entries<'_>, VersionsError> {
        let below = self.view.scan(table, prefix, from)?;
        if self.changed.is_empty() {
            return Ok(below);
        }
        let start = (table, FlatKey::from(prefix.max(from)));
        let prefix: FlatKey = prefix.into();
        let above = self.changed.range(start..);
        let above = above
            .take_while(move |((of, key), _)| *of == table && key.starts_with(&prefix))
            .map(|((_, key), value)| (key.clone(), value.clone()));
        Ok(overlaid(below, above))
    }
}

impl Flat for Ahead<'_> {
    fn value(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StateError> {
        if !self.changed.is_empty()
            && let Some(value) = self.changed.get(&(table, key.into()))
        {
            return Ok(value.clone());
        }
        self.view.value(table, key)
    }

    fn entries(&self, table: Table, prefix: &[u8]) -> Result<FlatEntries<'_>, StateError> {
        let entries = self.scan(table, prefix, prefix)?;
        Ok(Box::new(entries.map(|entry| Ok(entry?))))
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use std::sync::Arc;

    use arbor_store::{MemoryStore, Write};
    use arbor_versions::{Change, Identity, Meta, Options, Version, Versions};
    use proptest::prelude::*;

    use super::*;
    use crate::tables::{ACCOUNTS, CODE, COMMON, SLOTS};

    type Flats = BTreeMap<(Table, FlatKey), Value>;
    /// Keys with their new values, if any.
    type Step = BTreeMap<(Table, FlatKey), Option<Value>>;

    /// Many of them begin with others.
    const KEYS: [&[u8]; 8] = [
        b"",
        b"a",
        b"ab",
        b"ab\xff",
        b"ac",
        b"b",
        b"\xff",
        b"\xff\xff",
    ];

    fn database() -> Versions {
        let identity = Identity {
            tree: "none".into(),
            revision: "1".into(),
            hash: "none".into(),
            layout: 1,
            chain_id: 1,
            genesis: [0; 32],
            space: 0,
            moves_to: None,
            since: None,
        };
        let options = Options {
            dirty_bytes: usize::MAX,
            ..Options::default()
        };
        let store = Arc::new(MemoryStore::default());
        Versions::create(store, None, &identity, &COMMON, options).unwrap()
    }

    /// What a step changes in tables, which it is then applied to.
    fn take(tables: &mut Flats, step: &Step) -> Changes {
        let mut changes = Changes::default();
        for ((table, key), new) in step {
            let place = (*table, key.clone());
            let old = match new {
                Some(new) => tables.insert(place, new.clone()),
                None => tables.remove(&place),
            };
            changes.put_flat(Change {
                table: *table,
                key,
                old: old.as_deref(),
                new: new.as_deref(),
            });
        }
        changes
    }

    fn apply(versions: &mut Versions, tables: &mut Flats, step: &Step) {
        let number = versions.head().map_or(0, |head| head.version.0 + 1);
        let meta = Meta {
            version: Version(number),
            block_number: number,
            block_hash: [0; 32],
            root: [0; 32],
            extra: Vec::new(),
        };
        versions.apply(meta, take(tables, step)).unwrap();
    }

    /// Every way to read the overlay gives what the tables hold.
    fn check(ahead: &Ahead<'_>, tables: &Flats) {
        for table in [ACCOUNTS, SLOTS] {
            let wanted = KEYS.map(|key| tables.get(&(table, key.into())).cloned());
            assert_eq!(KEYS.map(|key| ahead.value(table, key).unwrap()), wanted);
            assert_eq!(ahead.values(table, &KEYS).unwrap(), wanted);
            for (prefix, from) in KEYS.iter().flat_map(|p| KEYS.map(|from| (*p, from))) {
                let listed = |from: &[u8]| {
                    let fits = |key: &[u8]| key.starts_with(prefix) && key >= from;
                    let fitting = tables
                        .iter()
                        .filter(|((of, key), _)| *of == table && fits(key));
                    let entries = fitting.map(|((_, key), value)| (key.clone(), value.clone()));
                    entries.collect::<Vec<_>>()
                };
                let scan = ahead.scan(table, prefix, from).unwrap();
                let scan: Vec<_> = scan.map(Result::unwrap).collect();
                assert_eq!(scan, listed(from), "{prefix:?} {from:?}");
                let entries = ahead.entries(table, prefix).unwrap();
                let entries: Vec<_> = entries.map(Result::unwrap).collect();
                assert_eq!(entries, listed(prefix), "{prefix:?}");
            }
        }
    }

    fn step(changes: &[(&str, Option<&str>)]) -> Step {
        let place = |key: &str| (ACCOUNTS, FlatKey::from(key.as_bytes()));
        let value = |new: &str| Value::from(new.as_bytes());
        let changes = changes
            .iter()
            .map(|(key, new)| (place(key), new.map(value)));
        changes.collect()
    }

    #[test]
    fn a_later_block_reads_what_earlier_ones_left() {
        let (mut versions, mut tables) = (database(), Flats::new());
        let below = [("a", Some("0")), ("ab", Some("0")), ("b", Some("0"))];
        apply(&mut versions, &mut tables, &step(&below));
        let mut ahead = Ahead::of(versions.view());
        let reads = |ahead: &Ahead<'_>, wanted: [Option<&str>; 4]| {
            let values = ahead.values(ACCOUNTS, &[b"a", b"ab", b"ac", b"b"]).unwrap();
            let wanted = wanted.map(|text| text.map(|text| Value::from(text.as_bytes())));
            assert_eq!(values, wanted);
        };
        reads(&ahead, [Some("0"), Some("0"), None, Some("0")]);
        let first = [("a", Some("1")), ("ab", None), ("ac", Some("1"))];
        ahead.put(&take(&mut tables, &step(&first)));
        reads(&ahead, [Some("1"), None, Some("1"), Some("0")]);
        let second = [("a", Some("2")), ("ab", Some("2")), ("ac", None)];
        let mut second = take(&mut tables, &step(&second));
        second.blobs.push(Write::put(CODE, b"hash", b"code"));
        ahead.put(&second);
        let code = ahead.value(CODE, b"hash").unwrap();
        assert_eq!(code.as_deref(), Some(&b"code"[..]));
        reads(&ahead, [Some("2"), Some("2"), None, Some("0")]);
        // Neither another table nor the tables below know of it.
        assert_eq!(ahead.value(SLOTS, b"a").unwrap(), None);
        let below = versions.view().get(ACCOUNTS, b"a").unwrap();
        assert_eq!(below.as_deref(), Some(&b"0"[..]));
    }

    #[test]
    fn an_error_below_is_told_and_hides_nothing() {
        let entry = |key: &[u8]| (FlatKey::from(key), Value::from(*b"0"));
        let below = [Ok(entry(b"b")), Err("lost"), Ok(entry(b"d"))];
        let above = [(b"a", true), (b"c", true), (b"d", false), (b"e", true)];
        let above = above.map(|(key, is)| {
            let (key, value) = entry(key);
            (key, is.then_some(value))
        });
        let found: Vec<_> = overlaid(below.into_iter(), above.into_iter()).collect();
        let keys = [Ok(b"a"), Ok(b"b"), Err("lost"), Ok(b"c"), Ok(b"e")];
        assert_eq!(found, keys.map(|key| key.map(|key| entry(key))));
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let table = prop_oneof![Just(ACCOUNTS), Just(SLOTS)];
        let key = proptest::sample::select(&KEYS[..]).prop_map(FlatKey::from);
        let new = proptest::option::of(0..4u8).prop_map(|new| Some(Value::from([new?])));
        let step = proptest::collection::btree_map((table, key), new, 0..8);
        proptest::collection::vec(step, 0..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Some steps are flushed, some applied, some only laid over them.
        #[test]
        fn the_overlay_reads_like_tables_that_all_was_applied_to(
            [flushed, applied, laid] in [steps(), steps(), steps()],
        ) {
            let (mut versions, mut tables) = (database(), Flats::new());
            flushed.iter().for_each(|step| apply(&mut versions, &mut tables, step));
            versions.flush().unwrap();
            applied.iter().for_each(|step| apply(&mut versions, &mut tables, step));
            let mut ahead = Ahead::of(versions.view());
            check(&ahead, &tables);
            for step in &laid {
                ahead.put(&take(&mut tables, step));
                check(&ahead, &tables);
            }
        }
    }
}

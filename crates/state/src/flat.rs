//! Flat records of one version: what is read without any tree.

use std::collections::BTreeMap;

use arbor_store::{Table, Value};
use arbor_versions::{Changes, View};

use crate::StateError;

/// A key of a flat table.
pub(crate) type FlatKey = Box<[u8]>;

/// Flat records with their keys, ascending.
pub(crate) type FlatEntries<'a> =
    Box<dyn Iterator<Item = Result<(Box<[u8]>, Value), StateError>> + 'a>;

/// Looks up a flat value by table and key.
pub(crate) type Lookup<'a> = &'a (dyn Fn(Table, &[u8]) -> Result<Option<Value>, StateError> + Sync);

/// The flat tables as they are at the head of a database, or were at an older version.
pub(crate) trait Flat {
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
pub(crate) fn overlaid<'a>(
    below: impl Iterator<Item = Result<(Box<[u8]>, Value), StateError>> + 'a,
    above: impl Iterator<Item = (Box<[u8]>, Option<Value>)> + 'a,
) -> FlatEntries<'a> {
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

/// The flat tables with changes that are not applied yet laid over them.
pub(crate) struct Ahead<'a> {
    view: View<'a>,
    changed: BTreeMap<(Table, FlatKey), Option<Value>>,
}

impl<'a> Ahead<'a> {
    /// Nothing but the tables.
    pub(crate) fn of(view: View<'a>) -> Self {
        Self {
            view,
            changed: BTreeMap::new(),
        }
    }

    /// Lays the changes of one more version over them.
    pub(crate) fn put(&mut self, changes: &Changes) {
        for change in changes.flat() {
            let new = change.new.map(Value::from);
            self.changed.insert((change.table, change.key.into()), new);
        }
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
        let start: FlatKey = prefix.into();
        let above = self.changed.range((table, start.clone())..);
        let above = above
            .take_while(move |((of, key), _)| *of == table && key.starts_with(&start))
            .map(|((_, key), value)| (key.clone(), value.clone()));
        Ok(overlaid(self.view.entries(table, prefix)?, above))
    }
}

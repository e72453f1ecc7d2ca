//! Flat records of one version: what is read without any tree.

use arbor_store::{Table, Value};
use arbor_versions::View;

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

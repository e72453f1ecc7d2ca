//! Tables, values and writes.

use std::sync::Arc;

/// A stored value; cheap to clone and to share between caches.
pub type Value = Arc<[u8]>;

/// A table of a store: one byte before every key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Table(pub u8);

/// One write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Write {
    /// The table.
    pub table: Table,
    /// The key.
    pub key: Box<[u8]>,
    /// The new value; `None` deletes the key.
    pub value: Option<Value>,
}

impl Write {
    /// Sets a key to a copy of `value`.
    pub fn put(table: Table, key: &[u8], value: &[u8]) -> Self {
        Self {
            table,
            key: key.into(),
            value: Some(value.into()),
        }
    }

    /// Deletes a key; deleting an absent key is allowed and does nothing.
    pub fn delete(table: Table, key: &[u8]) -> Self {
        Self {
            table,
            key: key.into(),
            value: None,
        }
    }
}

//! Tables, values and writes.

use std::sync::Arc;

/// A stored value; cheap to clone and to share between caches.
pub type Value = Arc<[u8]>;

/// A table of a store: one byte before every key.
///
/// Tables [by owner](Self::is_by_owner) are for what belongs to owners and is read together, as an account, its slots and the nodes of its
/// trie are: a persistent store keeps an owner's keys of all these tables side by side, so that one block of a file has them, where it
/// keeps other tables apart. A scan that begins with less than an owner passes over the keys of the others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Table(pub u8);

/// The longest key in bytes: persistent stores keep key lengths in 16 bits, and add the table in at most two.
pub const MAX_KEY_BYTES: usize = u16::MAX as usize - 2;

/// Bytes of an owner's name, with which every key of a table by owner begins.
pub const OWNER_BYTES: usize = 32;

impl Table {
    /// Whether the table is one of 0x80 to 0x82, or of 0xc0 to 0xc2, which persistent stores keep by owner: its keys have at least [`OWNER_BYTES`] bytes. Those two
    /// groups lie apart.
    pub fn is_by_owner(self) -> bool {
        self.group().is_some()
    }

    /// The first of the tables by owner among which this one lies, if it is one of them: those of a group are kept together.
    pub fn group(self) -> Option<Self> {
        match self.0 {
            0x80..=0x82 => Some(Self(0x80)),
            0xc0..=0xc2 => Some(Self(0xc0)),
            _ => None,
        }
    }
}

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

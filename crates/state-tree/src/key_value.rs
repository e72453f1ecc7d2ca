//! Keys and values of 32 bytes without accounts, in the trees that can.

use alloy_primitives::B256;

/// The revision in the identity of a database that has keys and values alone.
pub const KEY_VALUE_REVISION: &str = "key-value-1";

/// What a key has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyValueEntry {
    /// The index of the leaf, if the tree numbers its leaves: from 1 on, in the order in which
    /// their keys were first written.
    pub index: Option<u64>,
    /// The value.
    pub value: B256,
}

/// A key that gets a value or is deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyValueWrite {
    /// The key: the path from the root, most significant bit of the first byte first.
    pub key: B256,
    /// The value; `None` deletes the key.
    pub value: Option<B256>,
}

impl KeyValueWrite {
    /// Inserts a key, or updates its value.
    #[must_use]
    pub const fn put(key: B256, value: B256) -> Self {
        let value = Some(value);
        Self { key, value }
    }

    /// Deletes a key. An absent key stays absent.
    #[must_use]
    pub const fn delete(key: B256) -> Self {
        Self { key, value: None }
    }
}

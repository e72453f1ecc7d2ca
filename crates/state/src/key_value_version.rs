//! Keys and values as they are at one version.

use std::fmt;

use alloy_primitives::B256;
use arbor_state_tree::{KeyValue, Then};
use arbor_store::Value;
use arbor_verify::Proof;
use arbor_versions::Version;

use crate::head::Head;
use crate::{Historical, KeyValueEntry, KeyValueError, StateError, StateTree};

/// Returns what a tree supplies for keys and values.
pub(crate) fn key_value(tree: &dyn StateTree) -> Result<&dyn KeyValue, KeyValueError> {
    let tree_name = tree.kind().name;
    tree.key_value()
        .ok_or(KeyValueError::AccountsAlone { tree: tree_name })
}

/// The keys and values of a retained version, readable and provable.
///
/// Reading a key takes some look-ups more than at the head. The first proof of an older version
/// rebuilds nodes in memory from what changed since.
pub struct KeyValueVersion<'a> {
    then: Historical<'a>,
    key_value: &'a dyn KeyValue,
}

impl fmt::Debug for KeyValueVersion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyValueVersion").field(&self.then).finish()
    }
}

impl<'a> KeyValueVersion<'a> {
    /// Opens a retained version.
    pub(crate) fn at(head: Head<'a>, version: Version) -> Result<Self, KeyValueError> {
        let key_value = key_value(&**head.tree())?;
        let then = head.at(version)?;
        Ok(Self { then, key_value })
    }

    /// Opens the latest version.
    pub(crate) fn latest(head: Head<'a>) -> Result<Self, KeyValueError> {
        let meta = head.meta().ok_or(KeyValueError::NoVersion)?;
        Self::at(head, meta.version)
    }

    /// Opens the newest retained version with a root.
    pub(crate) fn at_root(head: Head<'a>, root: B256) -> Result<Self, KeyValueError> {
        let key_value = key_value(&**head.tree())?;
        let then = head.at_root(root)?;
        Ok(Self { then, key_value })
    }

    /// Returns the version.
    pub fn version(&self) -> Version {
        self.then.meta().version
    }

    /// Returns the root.
    pub fn root(&self) -> B256 {
        self.then.meta().root.into()
    }

    /// Returns what a key has; `None` if it is absent.
    ///
    /// # Errors
    /// The store's errors; a damaged record.
    pub fn get(&self, key: B256) -> Result<Option<KeyValueEntry>, KeyValueError> {
        Ok(self.get_many(&[key])?.pop().flatten())
    }

    /// Returns what keys have, in their order; `None` for each that is absent.
    ///
    /// # Errors
    /// Those of [`get`](Self::get).
    pub fn get_many(&self, keys: &[B256]) -> Result<Vec<Option<KeyValueEntry>>, KeyValueError> {
        let (view, table) = (self.then.view(), self.key_value.entries());
        let version = self.version();
        let is_head = view.head().is_some_and(|head| head.version == version);
        let records: Vec<Option<Value>> = match is_head {
            true => {
                let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_slice()).collect();
                view.multi_get(table, &keys).map_err(StateError::from)?
            }
            false => {
                let records = keys
                    .iter()
                    .map(|key| view.get_at(version, table, key.as_slice()));
                records
                    .collect::<Result<_, _>>()
                    .map_err(StateError::from)?
            }
        };
        let entries = keys.iter().zip(records).map(|(key, record)| {
            let entry = record.map(|record| self.key_value.decode(key.as_slice(), &record));
            Ok(entry.transpose()?)
        });
        entries.collect()
    }

    /// Returns the keys that are not below `from` with what they have, ascending. What changed
    /// since the version is held in memory.
    ///
    /// # Errors
    /// Those of [`get`](Self::get), also from the iterator.
    pub fn entries(
        &self,
        from: B256,
    ) -> Result<impl Iterator<Item = Result<(B256, KeyValueEntry), KeyValueError>>, KeyValueError>
    {
        let (view, key_value) = (self.then.view(), self.key_value);
        let entries = view.scan_at(self.version(), key_value.entries(), &[], from.as_slice());
        let entries = entries.map_err(StateError::from)?;
        Ok(entries.map(move |entry| {
            let (key, record) = entry.map_err(StateError::from)?;
            // Decoding checks the length of the key.
            let entry = key_value.decode(&key, &record)?;
            Ok((B256::from_slice(&key), entry))
        }))
    }

    /// Proves keys, present or absent, by one proof. [`Proof::verify`] checks it against the
    /// [root](Self::root), and [`Proof::write_json`] writes the file that `arbor-verify` reads
    /// without a database.
    ///
    /// # Errors
    /// No keys; the store's errors; nodes that do not lead to the root.
    pub fn prove(&self, keys: &[B256]) -> Result<Box<dyn Proof>, KeyValueError> {
        if keys.is_empty() {
            return Err(KeyValueError::NoKeys);
        }
        Ok(self.key_value.prove(&self.then, keys)?)
    }
}

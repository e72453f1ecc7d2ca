//! Opening databases of keys and values without accounts.

use std::path::Path;

use arbor_state::{KeyValueSnapshot, KeyValueTree, TreeKind};
use arbor_versions::DirReader;

use crate::folder::Folder;
use crate::scratch::scratch;
use crate::store::{memory_store, open_store, open_store_to_read};
use crate::{DatabaseError, OpenOptions};

impl OpenOptions {
    /// Opens the keys and values in a folder for writing and locks the folder. Makes the folder and
    /// the database if there is none, unless [`create_if_missing`](Self::create_if_missing) forbids
    /// it.
    ///
    /// The tree is `"ar16mt"` or `"eip8297"`, each a cargo feature. A new database gets the first
    /// of them that the crate is built with unless the tree is set. [`network`](Self::network) is
    /// not used.
    ///
    /// # Errors
    /// A tree that the registry does not have, or one with accounts alone; a database of another
    /// tree, hash function or settings, or one with accounts; a folder that another process writes;
    /// a folder without a database, if none is to be made; errors of the store.
    pub fn open_key_value(&self, dir: impl AsRef<Path>) -> Result<KeyValueTree, DatabaseError> {
        let folder = Folder::new(dir.as_ref(), &self.trees);
        let kind = self.key_value_kind(folder)?;
        self.open_agreed(folder, kind, |(store, tree), budget| {
            let opened = || {
                let lock = folder.lock()?;
                let store = open_store(folder.dir, Some(store), folder.may_create(), budget)?;
                folder.check_head(&*store)?;
                let options = budget.options();
                let tree = KeyValueTree::open(store, Some(lock), tree, options)?;
                Ok(match scratch(budget.memory) {
                    Some(scratch) => tree.with_scratch(scratch),
                    None => tree,
                })
            };
            opened().map_err(|error| folder.open_error(false, error))
        })
    }

    /// Opens the keys and values in a folder for reading alone, at the last flushed version, also
    /// while another process writes them.
    ///
    /// # Errors
    /// A folder without a database; those of [`open_key_value`](Self::open_key_value), except for a
    /// folder that another process writes.
    pub fn open_key_value_to_read(
        &self,
        dir: impl AsRef<Path>,
    ) -> Result<KeyValueSnapshot, DatabaseError> {
        let folder = Folder::new(dir.as_ref(), &self.trees);
        if !folder.has("")? {
            return Err(DatabaseError::NoFolder(dir.as_ref().to_owned()));
        }
        let kind = self.key_value_kind(folder)?;
        let opened = || {
            let head = DirReader::new(folder.dir)?;
            let store = open_store_to_read(folder.dir, self.budget.memory)?;
            let settings = folder.tree_settings()?.unwrap_or_default();
            let hash = folder.head_file()?.identity.hash;
            let tree = settings.tree(kind, Some(hash), self.budget.memory)?;
            let snapshot = KeyValueSnapshot::open(store, Some(head), tree)?;
            Ok(match scratch(self.budget.memory) {
                Some(scratch) => snapshot.with_scratch(scratch),
                None => snapshot,
            })
        };
        opened().map_err(|error| folder.open_error(true, error))
    }

    /// Opens an empty database of keys and values in memory.
    ///
    /// # Errors
    /// A tree that the registry does not have, that has accounts alone, or that does not have the
    /// settings.
    pub fn key_value_in_memory(&self) -> Result<KeyValueTree, DatabaseError> {
        let kind = self.usual_key_value(None)?;
        let (tree, budget) = self.of_memory(kind)?;
        let store = memory_store(budget.throttle);
        Ok(KeyValueTree::open(store, None, tree, budget.options())?)
    }

    /// The tree asked for, else the one in the folder, else the usual one.
    fn key_value_kind(&self, folder: Folder<'_>) -> Result<&'static TreeKind, DatabaseError> {
        let file = folder.head_file().ok();
        let found = file.and_then(|file| self.trees.of_key_value(&file.identity));
        let kind = self.usual_key_value(found)?;
        match found {
            Some(found) if found.name != kind.name => Err(DatabaseError::OtherTree {
                found,
                wanted: kind,
            }),
            _ => Ok(kind),
        }
    }

    /// The tree asked for, else the one that was found, else the first one of the registry that has keys and values without accounts.
    fn usual_key_value(
        &self,
        found: Option<&'static TreeKind>,
    ) -> Result<&'static TreeKind, DatabaseError> {
        let mut rows = self.trees.rows();
        let usual = found.or_else(|| rows.find(|row| row.tree().key_value().is_some()));
        match (usual, self.has_tree_set()) {
            (None, false) => Err(DatabaseError::NoKeyValueTree),
            (usual, _) => self.named(usual),
        }
    }
}

//! Checking a tree's older versions: each is rebuilt from its undo records.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use alloy_primitives::B256;
use arbor_store::{Table, Value, Write};
use arbor_versions::Version;

use crate::error::corrupt;
use crate::{Check, StateError, StateTree};

impl Check<'_> {
    /// The root of the latest version; that of the tree without leaves before genesis.
    pub fn root(&self, tree: &dyn StateTree) -> B256 {
        let head = self.view.head();
        head.map_or(tree.empty_root(), |head| head.root.into())
    }

    /// Rebuilds every retained version, going back from the head, and compares the roots. What lies
    /// behind a version that does not hold cannot be judged.
    pub fn history(&self, tree: &dyn StateTree) {
        if let Err(error) = self.versions_back(tree) {
            self.tell_fault(format!("history: {error}"));
        }
    }

    fn versions_back(&self, tree: &dyn StateTree) -> Result<(), StateError> {
        match (self.view.oldest(), self.view.head()) {
            (Some(oldest), Some(newest)) => tree.check_history(self, oldest, newest.version),
            _ => Ok(()),
        }
    }

    /// Leads the nodes of a tree's newest version back through the undo records to the oldest, and
    /// compares every root.
    pub fn walk_back<T: StateTree + ?Sized>(
        &self,
        tree: &T,
        oldest: Version,
        newest: Version,
    ) -> Result<(), StateError> {
        let mut nodes = tree.nodes(self.view);
        let mut flat: HashMap<(Table, Box<[u8]>), Option<Value>> = HashMap::new();
        for version in (oldest.0..newest.0).rev() {
            let undo = self.view.undo_of(Version(version + 1))?;
            let now = |table, key: &[u8]| match flat.get(&(table, Box::from(key))) {
                Some(value) => Ok(value.clone()),
                None => Ok(self.view.get(table, key)?),
            };
            // An account's creation is undone with all its slots, so that the root does not tell
            // whether they are listed.
            for Write { table, key, value } in &undo {
                if now(*table, key)? == *value {
                    return Err(corrupt(
                        self.table_name(*table),
                        key,
                        "undone to what it is, though only changes are",
                    ));
                }
            }
            let meta = self.view.meta(Version(version))?;
            let meta =
                meta.ok_or_else(|| StateError::Read(format!("no meta of version {version}")))?;
            tree.step(self.view, &mut nodes, &meta, &undo, &now)?;
            let undone = undo.into_iter();
            flat.extend(undone.map(|write| ((write.table, write.key), write.value)));
            self.counts.versions.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

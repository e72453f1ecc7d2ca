//! Checking a tree's older versions: each is rebuilt from its undo records.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use alloy_primitives::B256;
use arbor_store::{Table, Value, Write};
use arbor_versions::{Meta, Version, View};

use crate::error::corrupt;
use crate::{Check, Lookup, Rewound, StateError, StateTree};

impl Check<'_> {
    /// The root of the latest version; that of the tree without leaves before genesis.
    pub fn root(&self, tree: &dyn StateTree) -> B256 {
        let root = self.view.root();
        root.map_or(tree.empty_root(), B256::from)
    }

    /// Rebuilds every retained version, going back from the head, and compares the roots. What lies
    /// behind a version that does not hold cannot be judged.
    ///
    /// # Errors
    /// Those of copies of the database, which say nothing of the database itself.
    pub fn history(&self, tree: &dyn StateTree) -> Result<(), StateError> {
        match self.versions_back(tree) {
            Err(error @ StateError::Scratch { .. }) => return Err(error),
            Err(error) => self.tell_fault(format!("history: {error}")),
            Ok(()) => {}
        }
        Ok(())
    }

    fn versions_back(&self, tree: &dyn StateTree) -> Result<(), StateError> {
        let (Some(oldest), Some(newest)) = (self.view.oldest(), self.view.head()) else {
            return Ok(());
        };
        let newest = newest.version;
        match self.view.keeps_nodes_since() {
            Some(since) if since <= oldest => self.kept_versions_back(tree, oldest, newest),
            Some(since) => {
                self.kept_nodes(tree, since, newest)?;
                tree.check_history(self, oldest, newest)
            }
            None => tree.check_history(self, oldest, newest),
        }
    }

    /// Leads the nodes of a tree's newest version back through the undo records to the oldest, and
    /// compares every root. When more has changed than may be in memory, it goes on over a copy of
    /// the database that was taken back as far, if there is a way to make one.
    pub fn walk_back<T: StateTree + ?Sized>(
        &self,
        tree: &T,
        oldest: Version,
        newest: Version,
    ) -> Result<(), StateError> {
        self.walk_back_from(self.view, tree, oldest, newest)
    }

    /// As [`walk_back`](Self::walk_back), from a version whose view is given.
    pub(crate) fn walk_back_from<T: StateTree + ?Sized>(
        &self,
        view: View<'_>,
        tree: &T,
        oldest: Version,
        newest: Version,
    ) -> Result<(), StateError> {
        let mut nodes = tree.nodes(view);
        let mut flat: HashMap<(Table, Box<[u8]>), Option<Value>> = HashMap::new();
        let mut rewound: Option<Arc<dyn Rewound>> = None;
        let mut held = 0;
        for version in (oldest.0..newest.0).rev() {
            if let Some(rewind) = self.rewind.filter(|rewind| held > rewind.changes()) {
                // Given back first: a copy that nobody has is taken on.
                drop(rewound.take());
                rewound = rewind.to(Version(version + 1))?;
                if let Some(copy) = &rewound {
                    nodes = tree.nodes(copy.view());
                    flat.clear();
                    held = 0;
                }
            }
            let view = rewound.as_deref().map_or(view, Rewound::view);
            let undo = view.undo_of(Version(version + 1))?;
            held += undo.len() as u64;
            let now = |table, key: &[u8]| match flat.get(&(table, Box::from(key))) {
                Some(value) => Ok(value.clone()),
                None => Ok(view.get(table, key)?),
            };
            self.changes_only(&undo, &now)?;
            tree.step(view, &mut nodes, &self.meta(version)?, &undo, &now)?;
            let undone = undo.into_iter();
            flat.extend(undone.map(|write| ((write.table, write.key), write.value)));
            self.counts.versions.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Checks that undo leads from the present values to other ones. An account's creation is undone with all its slots, so that
    /// the root does not tell whether they are listed.
    pub(crate) fn changes_only(&self, undo: &[Write], now: Lookup<'_>) -> Result<(), StateError> {
        for Write { table, key, value } in undo {
            if now(*table, key)? == *value {
                return Err(corrupt(
                    self.table_name(*table),
                    key,
                    "undone to what it is, though only changes are",
                ));
            }
        }
        Ok(())
    }

    /// The record of a retained version.
    pub(crate) fn meta(&self, version: u64) -> Result<Meta, StateError> {
        let meta = self.view.meta(Version(version))?;
        meta.ok_or_else(|| StateError::Read(format!("no meta of version {version}")))
    }
}

//! Checking the nodes that are kept of older versions: each record is compared with what the tree makes of undo.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::Ordering;

use alloy_primitives::hex;
use arbor_store::{Table, Value, Write};
use arbor_versions::Version;

use crate::tables::ROOTS;
use crate::{Check, StateError, StateTree};

/// Keys of nodes, and what they have at a version.
type Records = BTreeMap<(Table, Box<[u8]>), Option<Value>>;

impl Check<'_> {
    /// Rebuilds every retained version from the nodes that are kept of the one after it, and compares roots and nodes. Of more than one version
    /// nothing is in memory.
    pub(crate) fn kept_versions_back(
        &self,
        tree: &dyn StateTree,
        oldest: Version,
        newest: Version,
    ) -> Result<(), StateError> {
        let mut at = newest;
        while at > oldest {
            let before = self.kept_nodes_before(tree, at)?;
            let to = before.map_or(oldest, |before| before.max(oldest));
            match to.0 + 1 == at.0 && before.is_some() {
                // Its nodes were compared, and its root with them.
                true => drop(self.counts.versions.fetch_add(1, Ordering::Relaxed)),
                false => {
                    let then = self.meta(at.0)?;
                    self.walk_back_from(self.view.as_of(&then), tree, to, at)?;
                }
            }
            at = to;
        }
        Ok(())
    }

    /// Compares the nodes that are kept of every version from one on.
    pub(crate) fn kept_nodes(
        &self,
        tree: &dyn StateTree,
        since: Version,
        newest: Version,
    ) -> Result<(), StateError> {
        let mut at = newest;
        while at > since {
            at = self.kept_nodes_before(tree, at)?.unwrap_or(since);
        }
        Ok(())
    }

    /// Compares what is kept of the kept version before one with what the tree makes of undo. Returns that version. None if it is not known: then nothing reads
    /// what is kept of it.
    fn kept_nodes_before(
        &self,
        tree: &dyn StateTree,
        version: Version,
    ) -> Result<Option<Version>, StateError> {
        let Some((before, kept)) = self.view.nodes_before(version)? else {
            return Ok(None);
        };
        let then = self.meta(version.0)?;
        let view = self.view.as_of(&then);
        let undo = view.undo_since(before)?;
        if before.0 + 1 == version.0 {
            self.changes_only(&undo, &|table, key| Ok(view.get(table, key)?))?;
        }
        let earlier = self.meta(before.0)?;
        let writes = tree.writes_back(view, &earlier, &undo)?;
        let mut wanted = records(writes);
        if tree.kind().tables.iter().any(|spec| spec.table == ROOTS) {
            // Roots that no header carries: undo leads to none of them, but the versions after the earlier one wrote theirs.
            let after = earlier.block_number.saturating_add(1).to_be_bytes();
            for row in self.scan(ROOTS, &[], &after)? {
                let (key, _) = row?;
                if key[..] > then.block_number.to_be_bytes()[..] {
                    break;
                }
                wanted.insert((ROOTS, key), None);
            }
        }
        let kept = records(kept);
        for (table, key) in kept.keys() {
            if let Entry::Vacant(entry) = wanted.entry((*table, key.clone())) {
                entry.insert(view.get(*table, key)?);
            }
        }
        for ((table, key), value) in wanted {
            let now = view.get(table, &key)?;
            let found = kept.get(&(table, key.clone()));
            let is_right = match (found.unwrap_or(&now), &value) {
                (Some(then), Some(wanted)) if then != wanted && table != ROOTS => {
                    tree.is_same_node(&key, [then, wanted])
                }
                (then, wanted) => Ok(then == wanted),
            };
            // What did not change is not kept.
            let is_right = is_right.map(|is_right| is_right && found != Some(&now));
            let why = match is_right {
                Ok(true) => continue,
                Ok(false) => String::new(),
                Err(error) => format!(": {error}"),
            };
            self.tell_fault(format!(
                "node {} of {}: what version {} keeps of it is not what it was at version {}{why}",
                hex::encode(&key),
                self.table_name(table),
                version.0,
                before.0
            ));
        }
        Ok(Some(before))
    }
}

fn records(writes: Vec<Write>) -> Records {
    let writes = writes.into_iter();
    writes
        .map(|write| ((write.table, write.key), write.value))
        .collect()
}

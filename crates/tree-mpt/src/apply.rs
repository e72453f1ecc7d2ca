//! Applying updates.

use std::collections::HashSet;
use std::sync::Arc;

use arbor_tree::{Hash, Leaf, LeafChange, NodeChange, NodeReader, Path, Position};

use crate::EMPTY_ROOT;
use crate::error::TreeError;
use crate::forest::{Forest, Place, Task, Value, Work};
use crate::update::{ApplyStats, OuterUpdate, TreeUpdate};

/// Applies updates to the outer trie with the given root and the tries nested under its keys.
///
/// The reader must give the state that `root` and the updates' inner roots name. Updates that
/// change nothing (a value set again, an absent key removed) are allowed. Without updates nothing is read.
///
/// A trie that is not empty and whose reader has no node at its root is taken for a single leaf.
///
/// # Errors
/// When updates are out of order or malformed, when a node that is needed is missing or malformed,
/// and when `existed` is found to be wrong. A key that is said to be new and is there is always found, and so
/// is a key that is said to have existed if the search for it ends at no leaf or at a leaf in memory. Only a
/// stored leaf is replaced or removed without being read, so there it must be true that the key existed.
pub fn apply(
    reader: &dyn NodeReader,
    root: Hash,
    updates: &[OuterUpdate],
) -> Result<TreeUpdate, TreeError> {
    check(updates)?;
    if updates.is_empty() {
        return Ok(TreeUpdate {
            root,
            ..TreeUpdate::default()
        });
    }
    Forest::new(root, updates).apply(reader)
}

/// As [`apply`], but without lists of the nodes changed, which `each` is given, and of the leaves placed, for a caller who knows them.
///
/// # Errors
/// As [`apply`].
pub fn apply_nodes(
    reader: &dyn NodeReader,
    root: Hash,
    updates: &[OuterUpdate],
    each: &mut dyn FnMut(&Position, Option<&[u8]>),
) -> Result<TreeUpdate, TreeError> {
    check(updates)?;
    let mut forest = Forest::new(root, updates);
    forest.restructure(reader)?;
    let changed = forest.commit();
    forest.each_node_change(&changed, each);
    Ok(forest.into_update())
}

/// What [`apply_inner`] made of the inner tries under some outer keys.
#[derive(Clone, Debug)]
pub struct InnerPart {
    update: TreeUpdate,
}

/// Applies only what changes below some outer keys, that is the first part of the work of [`apply`].
///
/// Inner tries have nothing to do with each other, so the caller may give consecutive pieces of its updates to as many
/// threads, and their parts, in order, to [`apply_outer`].
///
/// # Errors
/// As [`apply`].
pub fn apply_inner(
    reader: &dyn NodeReader,
    updates: &[OuterUpdate],
) -> Result<InnerPart, TreeError> {
    check(updates)?;
    let mut forest = Forest::new(EMPTY_ROOT, updates);
    forest.inner_only = true;
    let update = forest.apply(reader)?;
    Ok(InnerPart { update })
}

/// Applies the rest of `updates` to the outer trie with the given root, and puts all together: the result is that of
/// [`apply`], nodes and leaves perhaps in another order.
///
/// # Errors
/// As [`apply`]; [`TreeError::BadValue`] if the parts are not those of all the updates.
pub fn apply_outer(
    reader: &dyn NodeReader,
    root: Hash,
    updates: &[OuterUpdate],
    parts: impl IntoIterator<Item = InnerPart>,
) -> Result<TreeUpdate, TreeError> {
    let mut whole = TreeUpdate::default();
    for InnerPart { update } in parts {
        whole.inner_roots.extend(update.inner_roots);
        whole.nodes.extend(update.nodes);
        whole.leaves.extend(update.leaves);
        whole.fresh.extend(update.fresh);
        whole.stats.add(&update.stats);
    }
    if whole.inner_roots.len() != updates.len() {
        return Err(TreeError::BadValue {
            outer: whole.inner_roots.len(),
            reason: "the inner parts are not those of the updates",
        });
    }
    let outer = updates.iter().zip(&whole.inner_roots);
    let outer: Vec<OuterUpdate> = outer
        .map(|(update, inner_root)| OuterUpdate {
            inner_root: *inner_root,
            inner: Vec::new(),
            key: update.key,
            existed: update.existed,
            leaf: update.leaf.clone(),
        })
        .collect();
    let update = apply(reader, root, &outer)?;
    whole.root = update.root;
    whole.nodes.extend(update.nodes);
    whole.leaves.extend(update.leaves);
    whole.stats.add(&update.stats);
    Ok(whole)
}

fn check(updates: &[OuterUpdate]) -> Result<(), TreeError> {
    for (index, update) in updates.iter().enumerate() {
        if index > 0 && updates[index - 1].key >= update.key {
            return Err(TreeError::UnsortedOuter { index });
        }
        let bad = |reason| TreeError::BadValue {
            outer: index,
            reason,
        };
        match &update.leaf {
            None if !update.inner.is_empty() => return Err(bad("a removed key has inner updates")),
            Some(leaf) if leaf.bytes.len() < leaf.hole.saturating_add(32) => {
                return Err(bad("the hole for the inner root is not within the leaf"));
            }
            _ => {}
        }
        for (at, inner) in update.inner.iter().enumerate() {
            if at > 0 && update.inner[at - 1].key >= inner.key {
                return Err(TreeError::UnsortedInner {
                    outer: index,
                    index: at,
                });
            }
            if inner.value.as_ref().is_some_and(|value| value.is_empty()) {
                return Err(bad("an inner value is empty"));
            }
        }
    }
    Ok(())
}

impl Forest<'_> {
    fn apply(mut self, reader: &dyn NodeReader) -> Result<TreeUpdate, TreeError> {
        self.restructure(reader)?;
        let placed = self.placed_leaves();
        let changed = self.commit();
        let nodes = self.node_changes(&changed);
        let leaves = placed.iter().map(|&leaf| self.leaf_change(leaf)).collect();
        Ok(TreeUpdate {
            nodes,
            leaves,
            ..self.into_update()
        })
    }

    /// Reads what the updates touch, and changes it but for the hashes.
    fn restructure(&mut self, reader: &dyn NodeReader) -> Result<(), TreeError> {
        self.load(reader)?;
        self.edit(reader)?;
        self.settle(reader)
    }

    /// The leaves listed for hashing and their slots.
    fn placed_leaves(&self) -> Vec<(u32, Place)> {
        let leaf = |task: &Task| match task.work {
            Work::Leaf(leaf) => Some((leaf, task.place)),
            Work::Branch(_) | Work::Extension(_) => None,
        };
        self.tasks.iter().flatten().filter_map(leaf).collect()
    }

    /// The update, without nodes and leaves.
    fn into_update(self) -> TreeUpdate {
        let inner_roots = (0..).zip(self.updates).map(|(index, update)| {
            if update.leaf.is_some() {
                self.inner_root(index)
            } else {
                EMPTY_ROOT
            }
        });
        let fresh = self
            .updates
            .iter()
            .filter(|update| update.leaf.is_none() || update.inner_root == EMPTY_ROOT);
        TreeUpdate {
            root: self.tries[0].hash,
            inner_roots: inner_roots.collect(),
            fresh: fresh.map(|update| update.key).collect(),
            stats: ApplyStats {
                nodes_read: self.nodes_read,
                leaves_read: self.leaves_read,
                nodes_hashed: self.lanes.hashed,
                permutations: self.lanes.permutations,
            },
            ..TreeUpdate::default()
        }
    }

    /// Lists the nodes whose stored record changes.
    pub(crate) fn node_changes(&mut self, changed: &[u32]) -> Vec<NodeChange> {
        let mut changes = Vec::with_capacity(changed.len());
        self.each_node_change(changed, &mut |position, record| {
            changes.push(NodeChange {
                position: *position,
                record: record.map(Arc::from),
            });
        });
        changes
    }

    /// Gives the nodes whose stored record changes, `None` for one that is gone.
    fn each_node_change(
        &mut self,
        changed: &[u32],
        each: &mut dyn FnMut(&Position, Option<&[u8]>),
    ) {
        let mut record = Vec::with_capacity(600);
        let mut claimed = HashSet::new();
        for &index in changed {
            let node = &self.nodes[index as usize];
            if node.reference.as_hash().is_none() {
                self.vacate(index);
                continue;
            }
            match node.stored_as {
                // What hashes to the same is the same.
                Some(before) if before == node.reference => continue,
                Some(_) => {}
                None if self.vacated.is_empty() => {}
                None => {
                    claimed.insert((node.trie, node.path));
                }
            }
            record.clear();
            node.record.encode_into(&mut record);
            each(&self.position(node.trie, node.path), Some(&record));
        }
        for &(trie, path) in &self.vacated {
            if !claimed.contains(&(trie, path)) {
                each(&self.position(trie, path), None);
            }
        }
    }

    fn leaf_change(&self, (leaf, place): (u32, Place)) -> LeafChange {
        let (trie, path): (u32, Path) = self.locate(place);
        let leaf = &self.leaves[leaf as usize];
        let value = match &leaf.value {
            Value::Given(value) => value.to_vec(),
            Value::Owned(value) => value.clone(),
            Value::Template(update) => self.filled_template(*update),
        };
        LeafChange {
            position: self.position(trie, path),
            leaf: Leaf {
                key: leaf.key,
                value,
            },
        }
    }

    fn filled_template(&self, update: u32) -> Vec<u8> {
        let template = self.updates[update as usize].leaf.as_ref();
        template.map_or_else(Vec::new, |template| template.fill(&self.inner_root(update)))
    }
}

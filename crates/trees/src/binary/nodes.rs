//! The records of nodes: at the head, and at older versions.

use std::collections::HashMap;
use std::sync::Arc;

use arbor_state_tree::{Lookup, StateError};
use arbor_store::Write;
use arbor_tree::ReadError;
use arbor_tree_binary::{LeafUpdate, NodeChange, NodeHash, Packing, Path, PathKey, Reader, apply};
use arbor_versions::{Change, Meta, View};
use foldhash::fast::RandomState;

use super::NODES;

/// The records of the latest version.
#[derive(Clone, Copy)]
pub(crate) struct AtHead<'a>(pub(crate) View<'a>);

impl Reader for AtHead<'_> {
    fn records(&self, paths: &[Path]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        let keys: Vec<PathKey> = paths.iter().map(Path::database_key).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &**key).collect();
        Ok(self.0.multi_get(NODES, &keys).map_err(StateError::from)?)
    }
}

/// The records of another version than the head's: what changed on the way there laid over those of
/// the head.
#[derive(Default)]
pub(crate) struct Undone {
    changed: HashMap<Path, Option<Arc<[u8]>>, RandomState>,
}

/// Those records laid over the head's.
#[derive(Clone, Copy)]
pub(crate) struct AtVersion<'u> {
    pub(crate) undone: &'u Undone,
    pub(crate) head: AtHead<'u>,
}

impl Reader for AtVersion<'_> {
    fn records(&self, paths: &[Path]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        let mut found: Vec<Option<Arc<[u8]>>> = vec![None; paths.len()];
        let mut below = Vec::new();
        for (place, path) in paths.iter().enumerate() {
            match self.undone.changed.get(path) {
                Some(record) => found[place].clone_from(record),
                None => below.push(place),
            }
        }
        let wanted: Vec<Path> = below.iter().map(|place| paths[*place]).collect();
        for (place, record) in below.into_iter().zip(self.head.records(&wanted)?) {
            found[place] = record;
        }
        Ok(found)
    }
}

/// Flat changes from one version to another.
pub(crate) type FlatChanges<'i, 'c> = &'i mut (dyn Iterator<Item = Change<'c>> + 'i);

/// A tree whose nodes follow from flat records, forwards and backwards.
pub(crate) trait Undo {
    /// What its nodes hash to.
    type Hash: NodeHash;

    /// The name of the tree, for errors.
    fn name(&self) -> &'static str;

    /// The hash, and how new records are packed.
    fn nodes(&self) -> (Self::Hash, Packing);

    /// The updates of leaves, ascending by key, that flat changes in any order come to.
    fn updates(
        &self,
        view: View<'_>,
        flat: FlatChanges<'_, '_>,
    ) -> Result<Vec<LeafUpdate<<Self::Hash as NodeHash>::Value>>, StateError>;
}

impl Undone {
    /// The writes of records that lead back.
    pub(crate) fn into_writes(self) -> Vec<Write> {
        let changed = self.changed.into_iter();
        changed
            .map(|(path, record)| node_write(&path, record))
            .collect()
    }

    /// See [`StateTree::step`](arbor_state_tree::StateTree::step).
    pub(crate) fn step(
        &mut self,
        (tree, view): (&impl Undo, View<'_>),
        to: &Meta,
        then: &[Write],
        now: Lookup<'_>,
    ) -> Result<(), StateError> {
        let present = then.iter().map(|write| now(write.table, &write.key));
        let present: Vec<_> = present.collect::<Result<_, StateError>>()?;
        let mut flat = then.iter().zip(&present).map(|(write, now)| Change {
            table: write.table,
            key: &write.key,
            old: now.as_deref(),
            new: write.value.as_deref(),
        });
        let updates = tree.updates(view, &mut flat)?;
        let here = AtVersion {
            undone: self,
            head: AtHead(view),
        };
        let (hash, packing) = tree.nodes();
        let update = apply(&here, hash, packing, &updates)
            .map_err(|error| StateError::of_tree(tree.name(), error))?;
        if update.root != to.root {
            return Err(StateError::RebuiltRoot {
                version: to.version.0,
                expected: to.root.into(),
                actual: update.root.into(),
            });
        }
        let changed = update.nodes.into_iter();
        self.changed
            .extend(changed.map(|NodeChange { path, record }| (path, record)));
        Ok(())
    }
}

pub(crate) fn node_write(path: &Path, record: Option<Arc<[u8]>>) -> Write {
    Write {
        table: NODES,
        key: path.database_key()[..].into(),
        value: record,
    }
}

/// The number of bits of a node's path, which its key ends with.
pub(crate) fn depth_of_key(key: &[u8]) -> u16 {
    u16::from_be_bytes(key.last_chunk().copied().unwrap_or_default())
}

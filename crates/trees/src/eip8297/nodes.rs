//! The records of nodes: at the head, and at older versions.

use std::collections::HashMap;
use std::sync::Arc;

use super::failed;
use arbor_state_tree::{Lookup, StateError};
use arbor_store::Write;
use arbor_tree::ReadError;
use arbor_tree_eip8297::{NodeChange, Path, PathKey, Reader, apply};
use arbor_versions::{Change, Meta, View};
use foldhash::fast::RandomState;

use super::leaves::leaf_updates;
use super::{Eip8297, NODES};
use crate::stems::stored_code;

/// The records of the latest version.
#[derive(Clone, Copy)]
pub(super) struct AtHead<'a>(pub(super) View<'a>);

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
pub(super) struct Undone {
    changed: HashMap<Path, Option<Arc<[u8]>>, RandomState>,
}

/// Those records laid over the head's.
#[derive(Clone, Copy)]
pub(super) struct AtVersion<'u> {
    pub(super) undone: &'u Undone,
    pub(super) head: AtHead<'u>,
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

impl Undone {
    /// The writes of records that lead back.
    pub(super) fn into_writes(self) -> Vec<Write> {
        let changed = self.changed.into_iter();
        changed
            .map(|(path, record)| node_write(&path, record))
            .collect()
    }

    /// See [`StateTree::step`](arbor_state_tree::StateTree::step).
    pub(super) fn step(
        &mut self,
        (tree, view): (Eip8297, View<'_>),
        to: &Meta,
        then: &[Write],
        now: Lookup<'_>,
    ) -> Result<(), StateError> {
        let present = then.iter().map(|write| now(write.table, &write.key));
        let present: Vec<_> = present.collect::<Result<_, StateError>>()?;
        let flat = then.iter().zip(&present).map(|(write, now)| Change {
            table: write.table,
            key: &write.key,
            old: now.as_deref(),
            new: write.value.as_deref(),
        });
        let updates = leaf_updates(flat, tree.embedding(), &|hash| stored_code(view, hash))?;
        let here = AtVersion {
            undone: self,
            head: AtHead(view),
        };
        let update = apply(&here, tree.hasher, tree.packing, &updates).map_err(failed)?;
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

pub(super) fn node_write(path: &Path, record: Option<Arc<[u8]>>) -> Write {
    Write {
        table: NODES,
        key: path.database_key()[..].into(),
        value: record,
    }
}

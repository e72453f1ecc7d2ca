//! The nodes of a Verkle state: at the head, and at older versions.

use std::collections::HashMap;
use std::sync::Arc;

use arbor_store::Write;
use arbor_tree::ReadError;
use arbor_tree_verkle::{NodeKey, NodeReader, TreeUpdate, apply};
use arbor_versions::{Change, Meta, View};

use super::failed;
use super::updates::updates;
use super::{NODES, Verkle};
use crate::stems::{leaf_changes, stored_code};
use arbor_state_tree::Lookup;
use arbor_state_tree::StateError;

/// The nodes of the latest version.
#[derive(Clone, Copy)]
pub(crate) struct AtHead<'a>(pub(super) View<'a>);

impl NodeReader for AtHead<'_> {
    fn nodes(&self, keys: &[NodeKey]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        let keys: Vec<&[u8]> = keys.iter().map(NodeKey::encode).collect();
        Ok(self.0.multi_get(NODES, &keys).map_err(StateError::from)?)
    }
}

/// The nodes of another version than the head's: what changed on the way there laid over those of the head.
#[derive(Default)]
pub(super) struct Undone {
    changed: HashMap<NodeKey, Option<Arc<[u8]>>>,
}

/// Those nodes laid over the head's.
#[derive(Clone, Copy)]
pub(super) struct AtVersion<'u> {
    pub(super) undone: &'u Undone,
    pub(super) head: AtHead<'u>,
}

impl AtVersion<'_> {
    fn update_to(
        &self,
        verkle: &Verkle,
        then: &[Write],
        now: Lookup<'_>,
    ) -> Result<TreeUpdate, StateError> {
        let present: Result<Vec<_>, StateError> = then
            .iter()
            .map(|write| now(write.table, &write.key))
            .collect();
        let present = present?;
        let flat = then.iter().zip(&present).map(|(write, now)| Change {
            table: write.table,
            key: &write.key,
            old: now.as_deref(),
            new: write.value.as_deref(),
        });
        let (settings, stems) = (verkle.settings(), verkle.stems());
        let code = |hash| stored_code(self.head.0, hash);
        let updates = updates(leaf_changes(flat, settings.layout, stems, &code)?);
        apply(self, stems.committer(), &updates, &settings.tree).map_err(failed)
    }
}

impl Undone {
    /// The writes of nodes that lead back.
    pub(super) fn into_writes(self) -> Vec<Write> {
        let changed = self.changed.into_iter();
        changed
            .map(|(key, record)| node_write(&key, record))
            .collect()
    }

    /// See [`StateTree::step`](crate::StateTree::step).
    pub(super) fn step(
        &mut self,
        (verkle, view): (&Verkle, View<'_>),
        to: &Meta,
        then: &[Write],
        now: Lookup<'_>,
    ) -> Result<(), StateError> {
        let here = AtVersion {
            undone: self,
            head: AtHead(view),
        };
        let update = here.update_to(verkle, then, now)?;
        if update.root_hash() != to.root {
            return Err(StateError::RebuiltRoot {
                version: to.version.0,
                expected: to.root.into(),
                actual: update.root_hash().into(),
            });
        }
        let changed = update.nodes.into_iter();
        self.changed
            .extend(changed.map(|change| (change.key, change.record)));
        Ok(())
    }
}

impl NodeReader for AtVersion<'_> {
    fn nodes(&self, keys: &[NodeKey]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        let mut found: Vec<Option<Arc<[u8]>>> = vec![None; keys.len()];
        let mut below = Vec::new();
        for (place, key) in keys.iter().enumerate() {
            match self.undone.changed.get(key) {
                Some(record) => found[place].clone_from(record),
                None => below.push(place),
            }
        }
        let wanted: Vec<NodeKey> = below.iter().map(|place| keys[*place]).collect();
        for (place, record) in below.into_iter().zip(self.head.nodes(&wanted)?) {
            found[place] = record;
        }
        Ok(found)
    }
}

pub(super) fn node_write(key: &NodeKey, record: Option<Arc<[u8]>>) -> Write {
    Write {
        table: NODES,
        key: key.encode().into(),
        value: record,
    }
}

//! The nodes of a state in AR16MT: at the head, and at older versions.

use std::collections::HashMap;
use std::sync::Arc;

use arbor_store::Write;
use arbor_tree::{Hash, Path, Position, ReadError};
use arbor_tree_ar16mt::{Entry, LeafUpdate, NodeChange, Reader, StoredLeaf, TreeUpdate, apply};
use arbor_versions::{Meta, View};
use foldhash::fast::RandomState;
use rayon::prelude::*;

use super::failed;
use super::records::{decode_leaf, leaf_key};
use super::settings::with_hasher;
use super::{Ar16mt, LEAVES, NODES};
use arbor_state_tree::Lookup;
use arbor_state_tree::StateError;

/// The nodes of the latest version.
#[derive(Clone, Copy)]
pub(super) struct AtHead<'a> {
    pub(super) view: View<'a>,
    pub(super) ar16mt: Ar16mt,
}

impl Reader for AtHead<'_> {
    fn nodes(&self, paths: &[Path]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        let some = |paths: &[Path]| -> Result<Vec<_>, StateError> {
            let keys: Vec<_> = paths
                .iter()
                .map(|path| Position::outer(*path).key())
                .collect();
            let keys: Vec<&[u8]> = keys.iter().map(|key| &**key).collect();
            Ok(self.view.multi_get(NODES, &keys)?)
        };
        Ok(spread(self.ar16mt, paths, some)?)
    }

    fn leaves_below(&self, paths: &[Path]) -> Result<Vec<Option<StoredLeaf>>, ReadError> {
        let some = |paths: &[Path]| {
            let leaves = paths.iter().map(|path| leaf_below(self.view, path, None));
            leaves.collect()
        };
        Ok(spread(self.ar16mt, paths, some)?)
    }

    fn leaves(&self, keys: &[Hash]) -> Result<Vec<Option<Entry>>, ReadError> {
        let some = |keys: &[Hash]| -> Result<Vec<_>, StateError> {
            let wanted: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            let found = self.view.multi_get(LEAVES, &wanted)?.into_iter().zip(keys);
            let entries = found.map(|(bytes, key)| {
                let entry = bytes.map(|bytes| decode_leaf(key, &bytes));
                entry.transpose()
            });
            entries.collect()
        };
        Ok(spread(self.ar16mt, keys, some)?)
    }
}

/// Answers many requests on the threads of the pool, few on this one.
pub(super) fn spread<T: Sync, R: Send>(
    ar16mt: Ar16mt,
    requests: &[T],
    some: impl Fn(&[T]) -> Result<Vec<R>, StateError> + Send + Sync,
) -> Result<Vec<R>, StateError> {
    let chunk = ar16mt.chunk.get();
    if requests.len() <= chunk {
        return some(requests);
    }
    let parts = requests.par_chunks(chunk).map(some);
    let parts: Result<Vec<Vec<R>>, StateError> = parts.collect();
    Ok(parts?.into_iter().flatten().collect())
}

/// The first leaf below a place, of those of the head that `now` has; what it says they hold.
fn leaf_below(
    view: View<'_>,
    path: &Path,
    now: Option<Lookup<'_>>,
) -> Result<Option<StoredLeaf>, StateError> {
    let packed = path.packed();
    // Of an odd path the last byte is half a path: it tells where to begin, not where to end.
    let whole = &packed[..path.len() / 2];
    // No leaf ever goes: those of a version are among the newest one's, of which `now` says what they hold.
    let entries = match now {
        Some(_) => view.newest().scan(LEAVES, whole, packed)?,
        None => view.scan(LEAVES, whole, packed)?,
    };
    for entry in entries {
        let (key, bytes) = entry?;
        let key = leaf_key(&key)?;
        if !path.is_prefix_of(&key) {
            return Ok(None);
        }
        let bytes = match now {
            Some(now) => now(LEAVES, &key)?,
            None => Some(bytes),
        };
        if let Some(bytes) = bytes {
            let entry = decode_leaf(&key, &bytes)?;
            return Ok(Some(StoredLeaf { key, entry }));
        }
    }
    Ok(None)
}

/// The nodes of another version than the head's: what changed on the way there laid over those of the head.
#[derive(Default)]
pub(super) struct Undone {
    nodes: HashMap<Path, Option<Arc<[u8]>>, RandomState>,
}

/// The same with the leaves that the flat tables had. None comes and goes: what is there at an older version is there at the head.
pub(super) struct Standing<'u> {
    pub(super) head: AtHead<'u>,
    pub(super) undone: &'u Undone,
    pub(super) now: Lookup<'u>,
}

impl Undone {
    pub(super) fn updates_to(
        then: &[Write],
        now: Lookup<'_>,
    ) -> Result<Vec<LeafUpdate>, StateError> {
        let mut updates = Vec::with_capacity(then.len());
        for Write { table, key, value } in then {
            if *table != LEAVES {
                continue;
            }
            let key = leaf_key(key)?;
            let record = value.as_deref();
            let new = record.map(|bytes| decode_leaf(&key, bytes)).transpose()?;
            let existed = now(LEAVES, &key)?.is_some();
            updates.push(LeafUpdate { key, existed, new });
        }
        updates.sort_unstable_by_key(|update| update.key);
        Ok(updates)
    }

    /// Takes changes over.
    pub(super) fn take(&mut self, changes: Vec<NodeChange>) {
        let changes = changes.into_iter();
        self.nodes
            .extend(changes.map(|change| (change.path, change.record)));
    }

    /// Forgets nodes of which nobody will ask.
    pub(super) fn keep(&mut self, wanted: impl Fn(&Path) -> bool) {
        self.nodes.retain(|path, _| wanted(path));
        self.nodes.shrink_to_fit();
    }

    /// Nodes that are so.
    #[cfg(test)]
    pub(super) fn count(&self, are: impl Fn(&Path) -> bool) -> usize {
        self.nodes.keys().filter(|path| are(path)).count()
    }

    /// Takes changes over, but forgets nodes that go: for whoever only goes on back, where none comes and so nothing leads to them any more.
    pub(super) fn forget_gone(&mut self, nodes: Vec<NodeChange>) {
        for NodeChange { path, record } in nodes {
            match record {
                None => drop(self.nodes.remove(&path)),
                record => drop(self.nodes.insert(path, record)),
            }
        }
    }

    /// The writes of nodes that lead back.
    pub(super) fn into_writes(self) -> Vec<Write> {
        let nodes = self.nodes.into_iter();
        nodes
            .map(|(path, record)| node_write(path, record))
            .collect()
    }

    /// See [`StateTree::step`](crate::StateTree::step).
    pub(super) fn step(
        &mut self,
        head: AtHead<'_>,
        to: &Meta,
        then: &[Write],
        now: Lookup<'_>,
    ) -> Result<(), StateError> {
        let updates = Self::updates_to(then, now)?;
        let standing = Standing {
            head,
            undone: self,
            now,
        };
        let update: TreeUpdate =
            with_hasher!(head.ar16mt, hasher => apply(&standing, hasher, &updates))
                .map_err(failed)?;
        if update.root != to.root {
            return Err(StateError::RebuiltRoot {
                version: to.version.0,
                expected: to.root.into(),
                actual: update.root.into(),
            });
        }
        self.take(update.nodes);
        Ok(())
    }
}

impl Reader for Standing<'_> {
    fn nodes(&self, paths: &[Path]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        let mut found: Vec<Option<Arc<[u8]>>> = vec![None; paths.len()];
        let mut below = Vec::new();
        for (place, path) in paths.iter().enumerate() {
            match self.undone.nodes.get(path) {
                Some(record) => found[place].clone_from(record),
                None => below.push(place),
            }
        }
        let wanted: Vec<Path> = below.iter().map(|place| paths[*place]).collect();
        for (place, record) in below.into_iter().zip(self.head.nodes(&wanted)?) {
            found[place] = record;
        }
        Ok(found)
    }

    fn leaves_below(&self, paths: &[Path]) -> Result<Vec<Option<StoredLeaf>>, ReadError> {
        let view = self.head.view;
        let leaves = paths
            .iter()
            .map(|path| leaf_below(view, path, Some(self.now)));
        let leaves: Result<_, StateError> = leaves.collect();
        Ok(leaves?)
    }
}

pub(super) fn node_write(path: Path, record: Option<Arc<[u8]>>) -> Write {
    Write {
        table: NODES,
        key: Position::outer(path).key()[..].into(),
        value: record,
    }
}

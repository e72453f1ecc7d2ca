//! A tree in maps.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arbor_tree::{Path, ReadError};

use crate::{Entry, Hash, LeafUpdate, Reader, StoredLeaf, TreeUpdate};

/// The simplest reader: nodes and leaves in memory.
#[derive(Clone, Default, Debug)]
pub struct MemoryTree {
    nodes: HashMap<Path, Arc<[u8]>>,
    leaves: BTreeMap<Hash, Entry>,
}

impl MemoryTree {
    /// Takes over what an update made of the nodes, and the leaves that it was made of.
    pub fn change(&mut self, update: &TreeUpdate, leaves: &[LeafUpdate]) {
        for change in &update.nodes {
            match &change.record {
                Some(record) => self.nodes.insert(change.path, record.clone()),
                None => self.nodes.remove(&change.path),
            };
        }
        for leaf in leaves {
            match leaf.new {
                Some(entry) => self.leaves.insert(leaf.key, entry),
                None => self.leaves.remove(&leaf.key),
            };
        }
    }

    /// The records of all nodes.
    #[must_use]
    pub fn nodes(&self) -> &HashMap<Path, Arc<[u8]>> {
        &self.nodes
    }

    /// All leaves, ascending by key.
    #[must_use]
    pub fn leaves(&self) -> &BTreeMap<Hash, Entry> {
        &self.leaves
    }
}

impl Reader for MemoryTree {
    fn nodes(&self, paths: &[Path]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        Ok(paths
            .iter()
            .map(|path| self.nodes.get(path).cloned())
            .collect())
    }

    fn leaves_below(&self, paths: &[Path]) -> Result<Vec<Option<StoredLeaf>>, ReadError> {
        let below = |path: &Path| {
            let mut start = [0; 32];
            start[..path.packed().len()].copy_from_slice(path.packed());
            let (&key, &entry) = self.leaves.range(start..).next()?;
            path.is_prefix_of(&key).then_some(StoredLeaf { key, entry })
        };
        Ok(paths.iter().map(below).collect())
    }
}

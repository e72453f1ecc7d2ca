//! Nodes and leaves in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::{Hash, Leaf, NodeChange, NodeReader, NodeRequest, Path, Position, ReadError};

/// One state in memory: the records of its nodes and its flat leaves.
///
/// Serves tests, benches and states small enough to be held.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct MemoryNodes {
    nodes: HashMap<Position, Arc<[u8]>, RandomState>,
    leaves: HashMap<Option<Hash>, BTreeMap<Hash, Vec<u8>>>,
}

impl MemoryNodes {
    /// Returns a state without nodes and leaves.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes and deletes nodes.
    pub fn change_nodes<'a>(&mut self, changes: impl IntoIterator<Item = &'a NodeChange>) {
        for change in changes {
            match &change.record {
                Some(record) => self.put_node(change.position, record.clone()),
                None => {
                    self.nodes.remove(&change.position);
                }
            }
        }
    }

    /// Writes a node.
    pub fn put_node(&mut self, position: Position, record: Arc<[u8]>) {
        self.nodes.insert(position, record);
    }

    /// Writes (`Some`) or removes a leaf of the outer trie (`trie` is `None`) or of a nested one.
    pub fn set_leaf(&mut self, trie: Option<Hash>, key: Hash, value: Option<Vec<u8>>) {
        let leaves = self.leaves.entry(trie).or_default();
        match value {
            Some(value) => {
                leaves.insert(key, value);
            }
            None => {
                leaves.remove(&key);
                if leaves.is_empty() {
                    self.leaves.remove(&trie);
                }
            }
        }
    }

    /// Removes all nodes and leaves of the trie under an outer key.
    pub fn clear_trie(&mut self, owner: &Hash) {
        self.leaves.remove(&Some(*owner));
        self.nodes
            .retain(|position, _| position.trie != Some(*owner));
    }

    /// The records of all nodes, by position.
    pub fn records(&self) -> &HashMap<Position, Arc<[u8]>, RandomState> {
        &self.nodes
    }

    /// Returns the leaf of a key.
    pub fn get_leaf(&self, trie: Option<Hash>, key: &Hash) -> Option<&[u8]> {
        Some(self.leaves.get(&trie)?.get(key)?)
    }
}

impl NodeReader for MemoryNodes {
    fn nodes(&self, requests: &[NodeRequest]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        let find = |request: &NodeRequest| self.nodes.get(&request.position).cloned();
        Ok(requests.iter().map(find).collect())
    }

    fn leaf(&self, request: &NodeRequest) -> Result<Option<Leaf>, ReadError> {
        let path: Path = request.position.path;
        let mut from = Hash::default();
        from[..path.packed().len()].copy_from_slice(path.packed());
        let below = self
            .leaves
            .get(&request.position.trie)
            .and_then(|leaves| leaves.range(from..).next())
            .filter(|(key, _)| path.is_prefix_of(key));
        Ok(below.map(|(&key, value)| Leaf {
            key,
            value: value.clone(),
        }))
    }
}

//! How the tree reads.

use crate::{NodeChange, NodeKey, Stem, Value};
use arbor_tree::ReadError;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Reads the nodes of one state.
pub trait NodeReader: Sync {
    /// The records at these places, in their order; `None` where there is none. The places of one call are those that the tree needs of one or
    /// two levels, or a part of them: threads ask at the same time.
    ///
    /// # Errors
    /// When the store could not be read.
    fn nodes(&self, keys: &[NodeKey]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError>;
}

/// Reads the values of leaves, too, which only proofs need: an update brings the old values along.
pub trait ValueReader: NodeReader {
    /// All values under each of these stems, ascending by suffix: stems that are asked for and that the tree has.
    ///
    /// # Errors
    /// When the store could not be read.
    fn values(&self, stems: &[Stem]) -> Result<Vec<Vec<(u8, Value)>>, ReadError>;
}

impl<R: NodeReader + ?Sized> NodeReader for &R {
    fn nodes(&self, keys: &[NodeKey]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        (**self).nodes(keys)
    }
}

impl<R: ValueReader + ?Sized> ValueReader for &R {
    fn values(&self, stems: &[Stem]) -> Result<Vec<Vec<(u8, Value)>>, ReadError> {
        (**self).values(stems)
    }
}

/// One state in memory: records and values. Serves tests, benches and states small enough to be held.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct MemoryTree {
    nodes: HashMap<NodeKey, Arc<[u8]>>,
    values: BTreeMap<Stem, BTreeMap<u8, Value>>,
}

impl MemoryTree {
    /// A state with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes and deletes nodes.
    pub fn change_nodes<'a>(&mut self, changes: impl IntoIterator<Item = &'a NodeChange>) {
        for change in changes {
            match &change.record {
                Some(record) => {
                    self.nodes.insert(change.key, record.clone());
                }
                None => {
                    self.nodes.remove(&change.key);
                }
            }
        }
    }

    /// Writes or removes a value; the one that was there.
    pub fn set_value(&mut self, stem: Stem, suffix: u8, value: Option<Value>) -> Option<Value> {
        let leaf = self.values.entry(stem).or_default();
        let before = match value {
            Some(value) => leaf.insert(suffix, value),
            None => leaf.remove(&suffix),
        };
        if leaf.is_empty() {
            self.values.remove(&stem);
        }
        before
    }

    /// The value of a stem and suffix.
    #[must_use]
    pub fn value(&self, stem: &Stem, suffix: u8) -> Option<Value> {
        self.values.get(stem)?.get(&suffix).copied()
    }

    /// All values by stem and suffix.
    #[must_use]
    pub fn all_values(&self) -> &BTreeMap<Stem, BTreeMap<u8, Value>> {
        &self.values
    }

    /// All records.
    #[must_use]
    pub fn records(&self) -> &HashMap<NodeKey, Arc<[u8]>> {
        &self.nodes
    }
}

impl NodeReader for MemoryTree {
    fn nodes(&self, keys: &[NodeKey]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        Ok(keys
            .iter()
            .map(|key| self.nodes.get(key).cloned())
            .collect())
    }
}

impl ValueReader for MemoryTree {
    fn values(&self, stems: &[Stem]) -> Result<Vec<Vec<(u8, Value)>>, ReadError> {
        let list = |stem: &Stem| {
            let leaf = self.values.get(stem).into_iter().flatten();
            leaf.map(|(&suffix, &value)| (suffix, value)).collect()
        };
        Ok(stems.iter().map(list).collect())
    }
}

//! Reading a state that lies some updates above a stored one.

use std::collections::HashMap;
use std::sync::Arc;

use arbor_tree::{Hash, Leaf, NodeReader, NodeRequest, Path, ReadError};

use crate::update::TreeUpdate;

/// A reader over another with the changes of updates laid over it.
///
/// Serves roots within a block, and the nodes of older versions, without writing anything.
pub struct Overlay<R> {
    base: R,
    tries: HashMap<Option<Hash>, Changes>,
}

/// What updates changed in one trie.
#[derive(Default)]
struct Changes {
    /// Whether the trie started empty at some update, so that nothing of the base counts.
    fresh: bool,
    nodes: HashMap<Path, Option<Arc<[u8]>>>,
    leaves: HashMap<Path, Leaf>,
}

impl<R: NodeReader> Overlay<R> {
    /// Lays nothing over a reader yet.
    pub fn new(base: R) -> Self {
        Self {
            base,
            tries: HashMap::new(),
        }
    }

    /// Lays an update over all that came before; it must have been applied to this overlay's state.
    pub fn push(&mut self, update: &TreeUpdate) {
        for &key in &update.fresh {
            let fresh = Changes {
                fresh: true,
                ..Changes::default()
            };
            self.tries.insert(Some(key), fresh);
        }
        for change in &update.nodes {
            let trie = self.tries.entry(change.position.trie).or_default();
            trie.nodes
                .insert(change.position.path, change.record.clone());
        }
        for change in &update.leaves {
            let trie = self.tries.entry(change.position.trie).or_default();
            trie.leaves
                .insert(change.position.path, change.leaf.clone());
        }
    }

    /// The reader below.
    pub const fn base(&self) -> &R {
        &self.base
    }

    /// The record that updates left at a position; `None` where the base is to be asked.
    fn own_node(&self, request: &NodeRequest) -> Option<Option<Arc<[u8]>>> {
        let trie = self.tries.get(&request.position.trie)?;
        match trie.nodes.get(&request.position.path) {
            Some(record) => Some(record.clone()),
            None => trie.fresh.then_some(None),
        }
    }
}

impl<R: NodeReader> NodeReader for Overlay<R> {
    fn nodes(&self, requests: &[NodeRequest]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        let own: Vec<_> = requests
            .iter()
            .map(|request| self.own_node(request))
            .collect();
        let below: Vec<NodeRequest> = requests
            .iter()
            .zip(&own)
            .filter_map(|(request, own)| own.is_none().then_some(*request))
            .collect();
        let mut below = if below.is_empty() {
            Vec::new().into_iter()
        } else {
            self.base.nodes(&below)?.into_iter()
        };
        Ok(own
            .into_iter()
            .map(|own| own.unwrap_or_else(|| below.next().flatten()))
            .collect())
    }

    fn leaf(&self, request: &NodeRequest) -> Result<Option<Leaf>, ReadError> {
        let trie = self.tries.get(&request.position.trie);
        match trie {
            Some(trie) if trie.leaves.contains_key(&request.position.path) => {
                Ok(trie.leaves.get(&request.position.path).cloned())
            }
            Some(trie) if trie.fresh => Ok(None),
            _ => self.base.leaf(request),
        }
    }
}

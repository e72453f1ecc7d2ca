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
    laid: LaidNodes,
}

/// What updates changed, without the state below: see [`LaidNodes::over`].
#[derive(Default)]
pub struct LaidNodes {
    tries: HashMap<Option<Hash>, Changes>,
}

/// A reader with the changes of updates laid over it for a while.
#[derive(Clone, Copy)]
pub struct Over<'l, R> {
    base: R,
    laid: &'l LaidNodes,
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
            laid: LaidNodes::default(),
        }
    }

    /// Lays an update over all that came before; it must have been applied to this overlay's state.
    pub fn push(&mut self, update: &TreeUpdate) {
        self.laid.push(update);
    }

    /// The reader below.
    pub const fn base(&self) -> &R {
        &self.base
    }
}

impl LaidNodes {
    /// Reads through these changes from a state that they are laid over.
    pub const fn over<R: NodeReader>(&self, base: R) -> Over<'_, R> {
        Over { base, laid: self }
    }

    /// Lays an update over all that came before; it must have been applied to the state that these
    /// changes make.
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

    /// The record that updates left at a position, which is none where they left a leaf; `None` where the base is to be
    /// asked.
    fn own_node(&self, request: &NodeRequest) -> Option<Option<Arc<[u8]>>> {
        let trie = self.tries.get(&request.position.trie)?;
        match trie.nodes.get(&request.position.path) {
            Some(record) => Some(record.clone()),
            None if trie.leaves.contains_key(&request.position.path) => Some(None),
            None => trie.fresh.then_some(None),
        }
    }
}

impl<R: NodeReader> NodeReader for Overlay<R> {
    fn nodes(&self, requests: &[NodeRequest]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        self.laid.over(&self.base).nodes(requests)
    }

    fn leaf(&self, request: &NodeRequest) -> Result<Option<Leaf>, ReadError> {
        self.laid.over(&self.base).leaf(request)
    }
}

impl<R: NodeReader> NodeReader for Over<'_, R> {
    fn nodes(&self, requests: &[NodeRequest]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        let own: Vec<_> = requests
            .iter()
            .map(|request| self.laid.own_node(request))
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
        let trie = self.laid.tries.get(&request.position.trie);
        match trie {
            Some(trie) if trie.leaves.contains_key(&request.position.path) => {
                Ok(trie.leaves.get(&request.position.path).cloned())
            }
            Some(trie) if trie.fresh => Ok(None),
            _ => self.base.leaf(request),
        }
    }
}

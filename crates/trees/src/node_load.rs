//! Loading the nodes of a tree that is made part by part.

use std::collections::BTreeMap;

use arbor_store::Write;
use arbor_versions::Versions;
use rayon::prelude::*;

use arbor_state_tree::StateError;

/// Bytes of equally deep nodes that are loaded together, as one of the store's files or a few.
const GATHERED: usize = 16 << 20;
/// Bytes of memory that a node takes beside its key and record.
const OVERHEAD: usize = 80;

/// Nodes of parts that follow each other by path, on their way into a database.
///
/// By key every part lies between the others, or the nodes of one depth between those of others. They are gathered by depth and loaded in runs of
/// which none lies between another's: the store's engine leaves such runs as they are, where it would merge others over and over.
pub(crate) struct NodeLoad {
    by_depth: BTreeMap<u16, Gathered>,
    /// The depth that a key says.
    depth: fn(&[u8]) -> u16,
    /// Bytes of a depth that are loaded.
    full: usize,
}

#[derive(Default)]
struct Gathered {
    nodes: Vec<Write>,
    bytes: usize,
}

/// Keys begin with depths of one byte.
impl Default for NodeLoad {
    fn default() -> Self {
        Self::by(|key| key.first().copied().unwrap_or_default().into())
    }
}

impl NodeLoad {
    /// Nodes whose depths their keys say in another way.
    pub(crate) fn by(depth: fn(&[u8]) -> u16) -> Self {
        Self {
            by_depth: BTreeMap::new(),
            depth,
            full: GATHERED,
        }
    }

    /// Takes the nodes of the next part, in any order.
    pub(crate) fn add(
        &mut self,
        versions: &mut Versions,
        nodes: impl IntoIterator<Item = Write>,
    ) -> Result<(), StateError> {
        for node in nodes {
            let depth = (self.depth)(&node.key);
            let gathered = self.by_depth.entry(depth).or_default();
            let record = node.value.as_ref().map_or(0, |record| record.len());
            gathered.bytes += OVERHEAD + node.key.len() + record;
            gathered.nodes.push(node);
        }
        let gathered = self.by_depth.values_mut();
        gathered
            .filter(|gathered| gathered.bytes >= self.full)
            .try_for_each(|gathered| gathered.load(versions))
    }

    /// Loads what is left.
    pub(crate) fn finish(mut self, versions: &mut Versions) -> Result<(), StateError> {
        let mut left = self.by_depth.values_mut();
        left.try_for_each(|gathered| gathered.load(versions))
    }
}

impl Gathered {
    fn load(&mut self, versions: &mut Versions) -> Result<(), StateError> {
        let Self { mut nodes, .. } = std::mem::take(self);
        nodes.par_sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Ok(versions.load(&mut nodes.into_iter())?)
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use std::sync::Arc;

    use alloy_primitives::B256;
    use arbor_store::{MemoryStore, Store};

    use super::*;
    use crate::MPT;
    use crate::mpt::TABLES;
    use arbor_state_tree::Network;

    /// Of each depth some are loaded on the way, and others at the end.
    #[test]
    fn every_node_is_loaded_once() {
        let network = Network {
            chain_id: 1,
            genesis_hash: B256::ZERO,
        };
        let store = Arc::new(MemoryStore::default());
        let (tree, store) = (MPT.tree(), Arc::clone(&store) as Arc<dyn Store>);
        let identity = tree.identity(network);
        let made = Versions::create(store, None, &identity, &TABLES, Default::default());
        let (mut versions, table) = (made.unwrap(), TABLES[0].table);
        let node = |part: u8, depth: u8, number: u8| Write {
            table,
            key: [depth, part, number].into(),
            value: Some([part, depth, number].into()),
        };
        let parts = (0..16).map(|part| {
            let nodes = (0..3 * part).map(move |number| node(part, number % 5, number));
            nodes.rev().collect::<Vec<_>>()
        });
        let parts: Vec<Vec<Write>> = parts.collect();
        let mut load = NodeLoad {
            full: 20 * OVERHEAD,
            ..NodeLoad::default()
        };
        for part in &parts {
            load.add(&mut versions, part.clone()).unwrap();
        }
        let mut all = parts.concat();
        all.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let stored = |versions: &Versions| -> Vec<_> {
            let entries = versions.view().scan(table, &[], &[]).unwrap();
            entries.map(Result::unwrap).collect()
        };
        let before = stored(&versions).len();
        assert!((1..all.len()).contains(&before), "{before}");
        load.finish(&mut versions).unwrap();
        let all = all.into_iter().map(|node| (node.key, node.value.unwrap()));
        assert!(all.eq(stored(&versions)));
    }
}

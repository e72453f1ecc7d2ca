//! Loading the nodes of a tree that is made part by part.

use std::collections::BTreeMap;

use arbor_store::Write;
use arbor_versions::Versions;
use rayon::prelude::*;

use crate::StateError;

/// Bytes of equally deep nodes that are loaded together, as one of the store's files or a few.
const GATHERED: usize = 16 << 20;
/// Bytes of memory that a node takes beside its key and record.
const OVERHEAD: usize = 80;

/// Nodes of parts that follow each other by path, on their way into a database.
///
/// Their keys begin with their depths, so that by key every part lies between the others. They are gathered by depth and loaded in runs of
/// which none lies between another's: the store's engine leaves such runs as they are, where it would merge others over and over.
#[derive(Default)]
pub(crate) struct NodeLoad {
    by_depth: BTreeMap<u8, Gathered>,
}

#[derive(Default)]
struct Gathered {
    nodes: Vec<Write>,
    bytes: usize,
}

impl NodeLoad {
    /// Takes the nodes of the next part, in any order.
    pub(crate) fn add(
        &mut self,
        versions: &mut Versions,
        nodes: impl IntoIterator<Item = Write>,
    ) -> Result<(), StateError> {
        for node in nodes {
            let depth = node.key.first().copied().unwrap_or_default();
            let gathered = self.by_depth.entry(depth).or_default();
            let record = node.value.as_ref().map_or(0, |record| record.len());
            gathered.bytes += OVERHEAD + node.key.len() + record;
            gathered.nodes.push(node);
        }
        let full = self.by_depth.values_mut();
        full.filter(|gathered| gathered.bytes >= GATHERED)
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

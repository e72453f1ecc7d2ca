//! Building a whole state at once: flat tables in the order of names, then the tree in the order of
//! stems, bottom-up.

use std::sync::Arc;

use arbor_state_tree::{AccountSource, Computed, StateError};
use arbor_store::Write;
use arbor_tree_eip7864::{Builder, Part, Path, Stem, join, key};
use arbor_verify::stems::LeafValue;
use arbor_versions::{Changes, Versions};
use rayon::prelude::*;

use super::{Eip7864, failed};
use crate::binary::{depth_of_key, node_write};
use crate::node_load::NodeLoad;
use crate::stems::{OrderedLeaves, first_bytes, load_flat};

/// First bytes of stems whose nodes are made together: those of a sixteenth of the state.
const TOGETHER: usize = 16;
/// Bits that the stems of a part share.
const PART_BITS: usize = 8;

/// Fills an empty database with a whole state.
///
/// The source is read twice, in the order of addresses. Then every name is hashed, for a very large
/// state several times, and of each first byte of stems the part of the tree is built. In memory
/// are [`leaf_bytes`](Eip7864::leaf_bytes) of leaves, and the nodes of a sixteenth of them.
pub(super) fn load(
    tree: Eip7864,
    versions: &mut Versions,
    source: &dyn AccountSource,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Computed, StateError> {
    /// Accounts, slots, and each first byte of stems.
    const PARTS: u64 = 2 + 256;
    load_flat(versions, source, &mut |done| progress(done, PARTS))?;

    let stems = tree.stems();
    let mut parts: Vec<Part> = Vec::with_capacity(256);
    let mut load = NodeLoad::by(depth_of_key);
    for firsts in first_bytes(
        versions.view(),
        &Vec::from_iter(0..=u8::MAX),
        tree.leaf_bytes,
    )? {
        let leaves = OrderedLeaves::read(versions.view(), &stems, &firsts, &Err)?;
        for firsts in firsts.chunks(TOGETHER) {
            let view = versions.view();
            let built = firsts.par_iter().map(|first| {
                let leaves = leaves.take(*first);
                let found = leaves.stems().map(|under| {
                    let values = under.values(view, Eip7864::LAYOUT)?;
                    Ok((under.stem, values))
                });
                let mut nodes = Vec::new();
                let mut sink = |path: Path, record: Arc<[u8]>| {
                    nodes.push(node_write(&path, Some(record)));
                };
                let part = part(tree, found, &mut sink)?;
                Ok((part, nodes))
            });
            let built: Result<Vec<(Part, Vec<Write>)>, StateError> = built.collect();
            for (part, nodes) in built? {
                parts.push(part);
                load.add(versions, nodes)?;
                progress(2 + parts.len() as u64, PARTS);
            }
        }
    }
    let mut nodes = Vec::new();
    let mut sink = |path: Path, record: Arc<[u8]>| nodes.push(node_write(&path, Some(record)));
    let root = join(tree.hasher, tree.packing, &parts, &mut sink).map_err(failed)?;
    load.finish(versions)?;
    nodes.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    versions.load(&mut nodes.into_iter())?;
    Ok(Computed::of_load(root.into(), Changes::default()))
}

/// Builds the part of the tree below one first byte, from its stems, ascending.
pub(super) fn part(
    tree: Eip7864,
    stems: impl Iterator<Item = Result<(Stem, Vec<(u8, LeafValue)>), StateError>>,
    sink: &mut dyn FnMut(Path, Arc<[u8]>),
) -> Result<Part, StateError> {
    let mut builder = Builder::part(tree.hasher, tree.packing, PART_BITS);
    for found in stems {
        let (stem, values) = found?;
        for (suffix, value) in values {
            let added = builder.add(key(&stem, suffix), Some(value), sink);
            added.map_err(failed)?;
        }
    }
    builder.finish_part(sink).map_err(failed)
}

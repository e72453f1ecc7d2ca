//! Building a whole state at once: flat tables in the order of names, then the tree in the order of stems, bottom-up.

use arbor_store::Write;
use arbor_tree_verkle::{NodeKey, Part, build_part, join};
use arbor_versions::{Changes, Versions};
use rayon::prelude::*;

use super::Verkle;
use super::failed;
use super::nodes::node_write;
use crate::node_load::NodeLoad;
use crate::stems::{OrderedLeaves, first_bytes, load_flat};
use arbor_state_tree::{AccountSource, Computed, StateError};

/// First bytes of stems whose nodes are made together: those of a sixteenth of the state.
const FIRST_BYTES_LOADED_TOGETHER: usize = 16;

/// Fills an empty database with a whole state.
///
/// The source is read twice, in the order of addresses. Then every name is hashed, for a very large state several times, and of each first byte of
/// stems the part of the tree is built. In memory are
/// [`leaf_bytes`](crate::verkle::VerkleSettings::leaf_bytes) of leaves, and the nodes of a sixteenth of them.
pub(crate) fn load(
    verkle: &Verkle,
    versions: &mut Versions,
    source: &dyn AccountSource,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Computed, StateError> {
    /// Accounts, slots, and each first byte of stems.
    const PARTS: u64 = 2 + 256;
    load_flat(versions, source, &mut |done| progress(done, PARTS))?;

    let (settings, stems) = (verkle.settings(), verkle.stems());
    let committer = stems.committer();
    let (mut parts, mut load): (Vec<Part>, _) = (Vec::with_capacity(256), NodeLoad::default());
    for firsts in first_bytes(
        versions.view(),
        &Vec::from_iter(0..=u8::MAX),
        settings.leaf_bytes,
    )? {
        let leaves = OrderedLeaves::read(versions.view(), stems, &firsts, &Err)?;
        for firsts in firsts.chunks(FIRST_BYTES_LOADED_TOGETHER) {
            let view = versions.view();
            let built = firsts.par_iter().map(|first| {
                let (leaves, mut failed) = (leaves.take(*first), None);
                let found = leaves.stems().map_while(|under| {
                    let values = under.values(view, settings.layout);
                    let leaf = values.map(|values| (under.stem, values));
                    leaf.map_err(|error| failed = Some(error)).ok()
                });
                let mut nodes = Vec::new();
                let mut sink = |key: NodeKey, record| nodes.push(node_write(&key, Some(record)));
                let part = build_part(committer, &settings.tree, found, &mut sink);
                match failed {
                    Some(error) => Err(error),
                    None => Ok((part.map_err(super::failed)?, nodes)),
                }
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
    let root = join(committer, &settings.tree, parts, &mut |key, record| {
        nodes.push(node_write(&key, Some(record)));
    })
    .map_err(failed)?;
    load.add(versions, nodes)?;
    load.finish(versions)?;
    let root = root.to_bytes().into();
    Ok(Computed::of_load(root, Changes::default()))
}

//! Leaves with their names.

use std::sync::Arc;

use alloy_primitives::B256;
use arbor_ipa::Committer;
use arbor_tree_verkle::{BuildLeaf, Settings, build};

use super::stems::Stems;
use crate::named_leaves::{LeafValues, NamedLeaf, WholeAccount};
use crate::stems::{HeaderLayout, named_leaves};

/// The name of the tree's one hash function.
pub(super) const HASH: &str = "pedersen";

/// The leaves of an account; `None` for a hash function that the tree does not have.
pub(super) fn leaves_of(
    layout: HeaderLayout,
    committer: &Arc<Committer>,
    hash: &str,
    of: WholeAccount<'_>,
) -> Option<Result<Vec<NamedLeaf>, String>> {
    let stems = (hash == HASH).then(|| Stems::new(Arc::clone(committer), 0))?;
    Some(named_leaves(&stems, layout, of))
}

/// The root of leaves; `None` for a hash function that the tree does not have.
pub(super) fn root_of(
    committer: &Committer,
    hash: &str,
    leaves: &LeafValues,
) -> Option<Result<B256, String>> {
    (hash == HASH).then(|| root(committer, leaves))
}

fn root(committer: &Committer, leaves: &LeafValues) -> Result<B256, String> {
    let mut stems: Vec<BuildLeaf> = Vec::new();
    for (key, value) in leaves {
        let Some((stem, [suffix])) = key.split_first_chunk() else {
            return Err(format!("a key of {} bytes: all have 32", key.len()));
        };
        match stems.last_mut() {
            Some((last, values)) if last == stem => values.push((*suffix, value.0)),
            _ => stems.push((*stem, vec![(*suffix, value.0)])),
        }
    }
    let root = build(committer, &Settings::default(), stems, &mut |_, _| ());
    Ok(root.map_err(|error| error.to_string())?.to_bytes().into())
}

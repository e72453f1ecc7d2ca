//! Leaves with their names.

use alloy_primitives::B256;
use arbor_tree_eip7864::{Builder, HashFunction, Hasher, Packing, Path};

use super::stems::{Revision, Stems};
use crate::named_leaves::{LeafValues, NamedLeaf, WholeAccount};
use crate::stems::{HeaderLayout, named_leaves};

/// The leaves of an account; `None` for a hash function that the tree does not have.
pub(super) fn leaves_of(
    revision: Revision,
    hash: &str,
    of: WholeAccount<'_>,
) -> Option<Result<Vec<NamedLeaf>, String>> {
    let function = HashFunction::named(hash)?;
    let stems = Stems { revision, function };
    Some(named_leaves(&stems, HeaderLayout::BasicData, of))
}

/// The root of leaves; `None` for a hash function that the tree does not have.
pub(super) fn root_of(hash: &str, leaves: &LeafValues) -> Option<Result<B256, String>> {
    let hasher = Hasher::named(hash)?;
    Some(root(hasher, leaves))
}

fn root(hasher: Hasher, leaves: &LeafValues) -> Result<B256, String> {
    let mut builder = Builder::new(hasher, Packing::default());
    let mut sink = |_, _| {};
    for (key, value) in leaves {
        let key = Path::of_key(key).map_err(|error| error.to_string())?;
        let added = builder.add(key, Some(value.0), &mut sink);
        added.map_err(|error| error.to_string())?;
    }
    let root = builder.finish(&mut sink);
    Ok(root.map_err(|error| error.to_string())?.into())
}

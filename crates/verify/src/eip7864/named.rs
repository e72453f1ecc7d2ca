//! Leaves with their names.

use alloy_primitives::{B256, U256};
use arbor_tree_eip7864::{Builder, HashFunction, Hasher, Packing, Path, key};

use super::stems::{Revision, Stems};
use crate::named_leaves::{LeafValues, NamedLeaf, Origin, WholeAccount};
use crate::stems::{HeaderLayout, StemHash, StemName, chunk_code, chunk_place, slot_place};

/// The names of the fields, by suffix.
const FIELDS: [&str; 2] = ["basic data", "code hash"];

/// The leaves of an account; `None` for a hash function that the tree does not have.
pub(super) fn leaves_of(
    revision: Revision,
    hash: &str,
    of: WholeAccount<'_>,
) -> Option<Result<Vec<NamedLeaf>, String>> {
    let function = HashFunction::named(hash)?;
    Some(leaves(Stems { revision, function }, of))
}

fn leaves(stems: Stems, of: WholeAccount<'_>) -> Result<Vec<NamedLeaf>, String> {
    let WholeAccount {
        address,
        account,
        code,
        slots,
    } = of;
    let told = |error: &dyn std::fmt::Display| format!("account {address:#x}: {error}");
    let size = u32::try_from(code.len()).map_err(|error| told(&error))?;
    let fields = HeaderLayout::BasicData.leaves(&account, size);
    let mut found = Vec::new();
    for (suffix, value) in fields.map_err(|error| told(&error))? {
        let field = FIELDS[usize::from(suffix)];
        let origin = Origin::Field { address, field };
        found.push(((U256::ZERO, suffix), value, origin));
    }
    for (slot, value) in slots {
        let (slot, value) = (*slot, value.to_be_bytes());
        found.push((slot_place(slot), value, Origin::Slot { address, slot }));
    }
    for (chunk, value) in (0..).zip(chunk_code(code)) {
        let origin = Origin::AccountChunk { address, chunk };
        found.push((chunk_place(chunk), value, origin));
    }
    let names = found.iter().map(|((index, _), ..)| StemName {
        address,
        index: *index,
    });
    let stems = stems.of_once(&names.collect::<Vec<_>>());
    let leaves = stems.iter().zip(found);
    let leaves = leaves.map(|(stem, ((_, suffix), value, origin))| NamedLeaf {
        key: key(stem, suffix).packed().to_vec(),
        value: value.into(),
        origin,
    });
    Ok(leaves.collect())
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

//! Leaves with their names.

use alloy_primitives::B256;
use arbor_tree::Hash;
use arbor_tree_eip8297::{Builder, Hasher, Packing, Path};

use super::embedding::{Embedding, header_key};
use super::header::{Code, FIELDS, fields};
use super::leaves::code_leaves_with_chunks;
use crate::named_leaves::{LeafValues, NamedLeaf, NamedLeaves, Origin, WholeAccount};

/// The names of the fields, in the order of [`FIELDS`].
const NAMES: [&str; 3] = ["basic data", "code hash", "delegation"];

/// The leaves of EIP-8297.
pub(super) const LEAVES: NamedLeaves = NamedLeaves {
    of: |hash, account| Some(leaves_of(Hasher::named(hash)?, account)),
    root: |hash, leaves| Some(root_of(Hasher::named(hash)?, leaves)),
};

fn leaves_of(hasher: Hasher, of: WholeAccount<'_>) -> Result<Vec<NamedLeaf>, String> {
    let WholeAccount {
        address,
        account: Some(account),
        code,
        slots,
        ..
    } = of
    else {
        // Zero is absence in this tree, so that nothing is left of an account that is gone.
        return Ok(Vec::new());
    };
    let told = |error: &dyn std::error::Error| format!("account {address:#x}: {error}");
    let kind = Code::of(code).map_err(|error| told(&error))?;
    let values = fields(&account, kind).map_err(|error| told(&error))?;
    let embedding = Embedding(hasher);
    let hash = embedding.account(address);
    let mut leaves = Vec::new();
    let mut put = |key: Path, value: Hash, origin| {
        if value != [0; 32] {
            leaves.push(NamedLeaf {
                key: key.packed().to_vec(),
                value: value.into(),
                origin,
            });
        }
    };
    for ((suffix, field), value) in FIELDS.into_iter().zip(NAMES).zip(values) {
        let origin = Origin::Field { address, field };
        put(header_key(&hash, suffix), value, origin);
    }
    let names: Vec<_> = slots
        .iter()
        .map(|(slot, _)| (hash, address, *slot))
        .collect();
    for (key, (slot, value)) in embedding.slots(&names).into_iter().zip(slots) {
        let slot = *slot;
        put(key, value.to_be_bytes(), Origin::Slot { address, slot });
    }
    if matches!(kind, Code::Bytes(_)) {
        let code_hash = account.code_hash;
        for (chunk, leaf) in code_leaves_with_chunks(embedding, code_hash, code) {
            put(leaf.key, leaf.value, Origin::Chunk { code_hash, chunk });
        }
    }
    Ok(leaves)
}

fn root_of(hasher: Hasher, leaves: &LeafValues) -> Result<B256, String> {
    let mut builder = Builder::new(hasher, Packing::default());
    let mut sink = |_, _| {};
    for (key, value) in leaves {
        let key = Path::of_key(key).map_err(|error| error.to_string())?;
        let added = builder.add(key, value.0, &mut sink);
        added.map_err(|error| error.to_string())?;
    }
    let root = builder.finish(&mut sink);
    Ok(root.map_err(|error| error.to_string())?.into())
}

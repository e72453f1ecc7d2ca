//! Leaves of an account with their names, in any tree of stems.

use alloy_primitives::U256;

use super::{HeaderLayout, LeafValue, StemHash, StemName, chunk_code, chunk_place, slot_place};
use crate::named_leaves::{NamedLeaf, Origin, WholeAccount};

/// A leaf before its stem is computed: its index and suffix, its value, and what it stands for.
type Placed = ((U256, u8), LeafValue, Origin);

/// Returns the leaves of an account. What is gone has leaves of zeros: fields of an account that does not
/// exist, slots without a value, and chunks past the end of the code.
///
/// # Errors
/// Values that have no room in their leaves; the text names the account.
pub(crate) fn named_leaves(
    stems: &dyn StemHash,
    layout: HeaderLayout,
    of: WholeAccount<'_>,
) -> Result<Vec<NamedLeaf>, String> {
    let address = of.address;
    let told = |error: &dyn std::fmt::Display| format!("account {address:#x}: {error}");
    let mut found = fields(layout, &of).map_err(|error| told(&error))?;
    for (slot, value) in of.slots {
        let (slot, value) = (*slot, value.to_be_bytes());
        found.push((slot_place(slot), value, Origin::Slot { address, slot }));
    }
    let mut chunks = chunk_code(of.code);
    if let Some(past) = of.past_chunks {
        chunks.resize(chunks.len().max(past as usize), [0; 32]);
    }
    for (chunk, value) in (0..).zip(chunks) {
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
        key: [&stem[..], &[suffix]].concat(),
        value: value.into(),
        origin,
    });
    Ok(leaves.collect())
}

/// The leaves of an account's fields.
fn fields(layout: HeaderLayout, of: &WholeAccount<'_>) -> Result<Vec<Placed>, String> {
    let address = of.address;
    let size = u32::try_from(of.code.len()).map_err(|error| error.to_string())?;
    let account = of.account.unwrap_or_default();
    let leaves = layout.leaves(&account, size);
    let mut leaves = leaves.map_err(|error| error.to_string())?;
    if of.account.is_none() {
        leaves.iter_mut().for_each(|(_, value)| *value = [0; 32]);
    }
    // An account that had code once keeps the leaf of its size.
    if let Some(suffix) = layout.code_size_leaf()
        && of.past_chunks.is_some()
        && leaves.iter().all(|(present, _)| *present != suffix)
    {
        leaves.push((suffix, [0; 32]));
    }
    let placed = leaves.into_iter().map(|(suffix, value)| {
        let field = layout.field(suffix);
        let origin = Origin::Field { address, field };
        ((U256::ZERO, suffix), value, origin)
    });
    Ok(placed.collect())
}

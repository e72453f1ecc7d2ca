//! Proofs of all leaves between two keys.

use alloy_primitives::B256;
use arbor_tree_ar16mt::{Entry, LeafProof, prove};
use arbor_verify::ar16mt::{RangeEntry, RangeProof};

use super::Ar16mt;
use super::failed;
use super::nodes::{AtHead, Standing};
use super::parts::{Ways, leaves_between};
use super::settings::with_hasher;
use arbor_state_tree::StateError;
use arbor_state_tree::Then;

/// Proves all leaves from one key to another.
pub(crate) fn prove_range(
    ar16mt: Ar16mt,
    state: &dyn Then,
    (from, to): (B256, B256),
) -> Result<RangeProof, StateError> {
    if from > to {
        let why = format!("a range from {from} to {to}, which lies before it");
        return Err(StateError::Read(why));
    }
    let ends = [from.0, to.0];
    let ways = Ways::of(ar16mt, state, &ends)?;
    let view = state.view();
    let standing = Standing {
        head: AtHead { view, ar16mt },
        undone: &ways,
        now: &|table, key| state.value(table, key),
    };
    let proofs = with_hasher!(ar16mt, hasher => prove(&standing, hasher, &ends)).map_err(failed)?;
    let entries = leaves_between(state, (from.0, to.0))?.map(|leaf| {
        let (key, Entry { index, value }) = leaf?;
        let (key, value) = (key.into(), value.into());
        Ok(RangeEntry { key, index, value })
    });
    let entries = entries.collect::<Result<Vec<_>, StateError>>()?;
    let path = |proof: &LeafProof| proof.path.iter().map(|hash| B256::from(*hash)).collect();
    Ok(RangeProof {
        from,
        to,
        entries,
        from_path: path(&proofs[0]),
        to_path: path(&proofs[1]),
    })
}

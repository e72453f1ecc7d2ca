//! Proofs of an account and its slots, with a path for each leaf.

use alloy_primitives::{B256, U256};
use arbor_tree_ar16mt::{LeafProof as KeyProof, prove};
use arbor_verify::ar16mt::{ABSENT, LeafProof, SlotProof, StateProof};

use super::failed;
use super::names::LeafName;
use super::nodes::{AtHead, Standing};
use super::parts::Ways;
use super::settings::with_hasher;
use super::{Ar16mt, reader};
use arbor_state_tree::Then;
use arbor_state_tree::{AccountSlots, StateError};

/// Proves an account and some of its slots.
pub(crate) fn prove_account(
    ar16mt: Ar16mt,
    state: &dyn Then,
    AccountSlots { address, slots }: &AccountSlots,
) -> Result<StateProof, StateError> {
    let address = *address;
    let names: Vec<LeafName> = LeafName::fields(address)
        .into_iter()
        .chain(slots.iter().map(|slot| LeafName::Slot(address, *slot)))
        .collect();
    let keys = LeafName::keys(&names);
    let ways = Ways::of(ar16mt, state, &keys)?;
    let view = state.view();
    let standing = Standing {
        head: AtHead { view, ar16mt },
        undone: &ways,
        now: &|table, key| state.value(table, key),
    };
    let proofs = with_hasher!(ar16mt, hasher => prove(&standing, hasher, &keys)).map_err(failed)?;
    let mut leaves = proofs.into_iter().map(|KeyProof { entry, path }| {
        let path = path.into_iter().map(B256::from).collect();
        let index = entry.map(|entry| entry.index);
        let value = entry.map_or(U256::ZERO, |entry| U256::from_be_bytes(entry.value));
        (value, LeafProof { index, path })
    });
    let account = reader::account(state, address)?;
    let fields = account.unwrap_or(ABSENT);
    let mut next = || leaves.next().map(|(_, leaf)| leaf);
    let (Some(nonce_leaf), Some(balance_leaf), Some(code_hash_leaf)) = (next(), next(), next())
    else {
        unreachable!("a leaf for each name");
    };
    let slots = slots.iter().zip(leaves).map(|(slot, (value, leaf))| {
        let slot = *slot;
        SlotProof { slot, value, leaf }
    });
    Ok(StateProof {
        address,
        exists: account.is_some(),
        nonce: fields.nonce,
        balance: fields.balance,
        code_hash: fields.code_hash,
        nonce_leaf,
        balance_leaf,
        code_hash_leaf,
        slots: slots.collect(),
    })
}

//! Proofs: the nodes that show accounts and slots.

use alloy_primitives::{B256, Bytes, U64, U256};
use arbor_tree::Hash;
use arbor_tree_mpt::{EMPTY_ROOT, prove};
use arbor_verify::mpt::{AccountProof, Base, SlotProof, account_key, slot_key};

use super::failed;
use arbor_state_tree::{AccountSlots, StateError};

/// A state whose slots can be read by the account's tree key, and proven.
pub(crate) trait Provable: Base {
    /// The value of a slot of the account with this tree key, zero if absent.
    fn slot_value(&self, account: &Hash, slot: U256) -> Result<U256, StateError>;
}

pub(crate) fn prove_account(
    state: &dyn Provable,
    AccountSlots { address, slots }: &AccountSlots,
) -> Result<AccountProof, StateError> {
    let address = *address;
    let key = account_key(address);
    let account_proof = prove(state, None, state.root(), &key).map_err(failed)?;
    let record = state.account_record(address, &key)?;
    let storage_root = record.map_or(EMPTY_ROOT, |record| record.storage_root.0);
    let mut storage_proof = Vec::with_capacity(slots.len());
    for &slot in slots {
        let nodes = prove(state, Some(key), storage_root, &slot_key(slot)).map_err(failed)?;
        let value = state.slot_value(&key, slot)?;
        storage_proof.push(SlotProof {
            key: slot,
            proof: nodes.into_iter().map(Bytes::from).collect(),
            value,
        });
    }
    let account = record.map(|record| record.account);
    Ok(AccountProof {
        address,
        account_proof: account_proof.into_iter().map(Bytes::from).collect(),
        balance: account.map_or(U256::ZERO, |account| account.balance),
        code_hash: account.map_or(B256::ZERO, |account| account.code_hash),
        nonce: U64::from(account.map_or(0, |account| account.nonce)),
        storage_hash: record.map_or(B256::ZERO, |record| record.storage_root),
        storage_proof,
    })
}

//! Proofs and witnesses: the nodes that show accounts and slots.

use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U64, U256};
use arbor_tree::{Hash, Leaf, NodeReader, NodeRequest, ReadError as NodeError};
use arbor_tree_mpt::{Access, EMPTY_ROOT, Recorder, prove};
use arbor_verify::mpt::{
    AccountProof, Base, PendingRoots, SlotProof, account_key, keyed, slot_key, tree_updates,
};

use super::failed;
use super::records::AccountRecord;
use arbor_state_tree::{AccountSlots, IntermediateRoots, ReadError, StateError, Touched};

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

/// The nodes over which a block can be executed: those of what it reads and changes, and those that the root after each
/// of its transactions needs.
pub(crate) fn witness_nodes(
    base: &dyn Base,
    touched: Touched<'_>,
) -> Result<Vec<Bytes>, StateError> {
    let changes = touched.changes;
    let changed = keyed(changes, |keys| {
        let names = changes.accounts.keys().zip(keys);
        let records = names.map(|(address, key)| base.account_record(*address, key));
        records.collect()
    })?;
    let mut names = touched.reads.clone();
    for (address, change) in touched.transactions.iter().flat_map(|one| &one.accounts) {
        let slots = names.entry(*address).or_default();
        slots.extend(change.slots.keys());
    }
    let mut accesses = Vec::with_capacity(names.len());
    for (address, slots) in names {
        let key = account_key(address);
        let record = base.account_record(address, &key)?;
        let mut inner: Vec<Hash> = slots.into_iter().map(slot_key).collect();
        inner.sort_unstable();
        accesses.push(Access {
            key,
            inner_root: record.map_or(EMPTY_ROOT, |record| record.storage_root.0),
            inner,
        });
    }
    accesses.sort_unstable_by_key(|access| access.key);
    let recorder = Recorder::new(base);
    recorder
        .record(base.root(), &accesses, &tree_updates(&changed))
        .map_err(failed)?;
    // A trie that one transaction changes and another changes back needs more nodes than the block's change as a whole.
    let mut roots = PendingRoots::new(Recorded(&recorder));
    for transaction in touched.transactions {
        roots.root_after(transaction)?;
    }
    Ok(recorder.into_nodes().into_iter().map(Bytes::from).collect())
}

/// A state whose nodes are recorded as they are read.
struct Recorded<'r, 'b>(&'r Recorder<&'b dyn Base>);

impl NodeReader for Recorded<'_, '_> {
    fn nodes(&self, requests: &[NodeRequest]) -> Result<Vec<Option<Arc<[u8]>>>, NodeError> {
        self.0.nodes(requests)
    }

    fn leaf(&self, request: &NodeRequest) -> Result<Option<Leaf>, NodeError> {
        self.0.leaf(request)
    }
}

impl Base for Recorded<'_, '_> {
    fn root(&self) -> Hash {
        self.0.base().root()
    }

    fn account_record(
        &self,
        address: Address,
        key: &Hash,
    ) -> Result<Option<AccountRecord>, ReadError> {
        self.0.base().account_record(address, key)
    }
}

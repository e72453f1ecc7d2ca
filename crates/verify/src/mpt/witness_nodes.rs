//! The nodes of a witness: those that reading names and applying changes needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alloy_primitives::{Address, Bytes, U256};
use arbor_accounts::{IntermediateRoots, ReadError, StateChanges};
use arbor_tree::{Hash, Leaf, NodeReader, NodeRequest, ReadError as NodeError};
use arbor_tree_mpt::{Access, EMPTY_ROOT, Recorder};

use super::embedding::{keyed, tree_updates};
use super::keys::{account_key, slot_key};
use super::leaf::AccountRecord;
use super::pending::{Base, PendingRoots};

/// What a block touches of the state before it.
#[derive(Clone, Copy, Debug)]
pub struct TouchedNames<'a> {
    /// Accounts read, present or not, with the slots read.
    pub reads: &'a BTreeMap<Address, BTreeSet<U256>>,
    /// What the block makes of the state.
    pub changes: &'a StateChanges,
    /// Before Byzantium, what each transaction changes after those before it. Else none.
    pub transactions: &'a [StateChanges],
}

/// Lists the RLP of the nodes over which a block can be executed, each once: those on the way to
/// each name that it reads or changes, and the siblings that the collapse of a branch joins. Before
/// Byzantium, also those that the root after each transaction needs.
///
/// This is the set `state` of the canonical execution witness (execution-apis 845 and 847, EIP-8025).
///
/// # Errors
/// Those of the base; changes that contradict it.
pub fn witness_nodes(base: &dyn Base, touched: TouchedNames<'_>) -> Result<Vec<Bytes>, ReadError> {
    let changes = touched.changes;
    let changed = keyed(changes, |keys| {
        let names = changes.accounts.keys().zip(keys);
        let records = names.map(|(address, key)| base.account_record(*address, key));
        records.collect::<Result<Vec<_>, ReadError>>()
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
        .map_err(ReadError::below)?;
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

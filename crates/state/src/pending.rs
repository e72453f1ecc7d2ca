//! Roots inside a block, and of blocks that no database holds.

use std::collections::HashMap;

use alloy_primitives::{Address, B256};
use arbor_tree::{Hash, NodeReader};
use arbor_tree_mpt::{Overlay, apply};

use crate::embedding::{keyed, tree_updates};
use crate::records::AccountRecord;
use crate::{IntermediateRoots, StateChanges, StateError};

/// A state that changes can be laid over: a database's head or a witness.
pub(crate) trait Base: NodeReader {
    /// The root of the account trie.
    fn root(&self) -> Hash;

    /// The record of an account, found by its tree key.
    fn account_record(
        &self,
        address: Address,
        key: &Hash,
    ) -> Result<Option<AccountRecord>, StateError>;
}

/// Changes laid over a base state without writing to it; tells the root after each of them.
pub struct PendingRoots<'a> {
    base: &'a dyn Base,
    overlay: Overlay<&'a dyn NodeReader>,
    accounts: HashMap<Hash, Option<AccountRecord>>,
    root: Hash,
}

impl<'a> PendingRoots<'a> {
    pub(crate) fn new(base: &'a dyn Base) -> Self {
        Self {
            base,
            overlay: Overlay::new(base as &dyn NodeReader),
            accounts: HashMap::new(),
            root: base.root(),
        }
    }
}

impl IntermediateRoots for PendingRoots<'_> {
    fn root_after(&mut self, changes: &StateChanges) -> Result<B256, StateError> {
        let keyed = keyed(changes, |address, key| match self.accounts.get(key) {
            Some(record) => Ok(*record),
            None => self.base.account_record(address, key),
        })?;
        let update = apply(&self.overlay, self.root, &tree_updates(&keyed))?;
        for (change, root) in keyed.iter().zip(&update.inner_roots) {
            self.accounts.insert(change.key, change.new_record(*root));
        }
        self.root = update.root;
        self.overlay.push(&update);
        Ok(self.root.into())
    }
}

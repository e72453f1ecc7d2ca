//! Roots inside a block, and of blocks that no database holds.

use std::collections::HashMap;

use alloy_primitives::{Address, B256};
use arbor_accounts::{IntermediateRoots, ReadError, StateChanges};
use arbor_tree::{Hash, NodeReader};
use arbor_tree_mpt::{Overlay, apply};

use super::embedding::{keyed, tree_updates};
use super::leaf::AccountRecord;

/// A state that changes can be laid over: a database's head or a witness.
pub trait Base: NodeReader {
    /// The root of the account trie.
    fn root(&self) -> Hash;

    /// The record of an account, found by its tree key.
    ///
    /// # Errors
    /// A store that cannot be read; a witness that does not show the account.
    fn account_record(
        &self,
        address: Address,
        key: &Hash,
    ) -> Result<Option<AccountRecord>, ReadError>;
}

/// Changes laid over a base state without writing to it; tells the root after each of them.
pub struct PendingRoots<B> {
    overlay: Overlay<B>,
    accounts: HashMap<Hash, Option<AccountRecord>>,
    root: Hash,
}

impl<B: Base> PendingRoots<B> {
    /// Nothing but the base yet.
    pub fn new(base: B) -> Self {
        Self {
            root: base.root(),
            overlay: Overlay::new(base),
            accounts: HashMap::new(),
        }
    }
}

impl<B: Base> IntermediateRoots for PendingRoots<B> {
    fn root_after(&mut self, changes: &StateChanges) -> Result<B256, ReadError> {
        let keyed = keyed(changes, |keys| {
            let names = changes.accounts.keys().zip(keys);
            let records = names.map(|(address, key)| match self.accounts.get(key) {
                Some(record) => Ok(*record),
                None => self.overlay.base().account_record(*address, key),
            });
            records.collect()
        })?;
        let update = apply(&self.overlay, self.root, &tree_updates(&keyed));
        let update = update.map_err(ReadError::below)?;
        for (change, root) in keyed.iter().zip(&update.inner_roots) {
            self.accounts.insert(change.key, change.new_record(*root));
        }
        self.root = update.root;
        self.overlay.push(&update);
        Ok(self.root.into())
    }
}

impl<B: Base + ?Sized> Base for &B {
    fn root(&self) -> Hash {
        (**self).root()
    }

    fn account_record(
        &self,
        address: Address,
        key: &Hash,
    ) -> Result<Option<AccountRecord>, ReadError> {
        (**self).account_record(address, key)
    }
}

//! A version of a database as a stream of accounts, from which other trees are loaded.

use alloy_primitives::{B256, Bytes};
use arbor_state_tree::{
    AccountOrder, AccountSource, FullAccount, FullAccounts, KeyedAccounts, ReadError, StateView,
};

use crate::Historical;

impl Historical<'_> {
    /// Reads all accounts with their slots, in the order of the
    /// [tree](arbor_state_tree::StateTree::order).
    ///
    /// # Errors
    /// The store's errors, and records that cannot be read. An error may also come in place of an
    /// account.
    pub fn full_accounts(
        &self,
    ) -> Result<impl Iterator<Item = Result<FullAccount, ReadError>> + '_, ReadError> {
        self.listed(None)
    }

    fn listed(
        &self,
        first: Option<u8>,
    ) -> Result<impl Iterator<Item = Result<FullAccount, ReadError>> + '_, ReadError> {
        let accounts = self.tree().records().listing(self, first)?;
        Ok(accounts.map(|account| Ok(account?.into())))
    }
}

impl AccountSource for Historical<'_> {
    fn order(&self) -> &'static AccountOrder {
        self.tree().order()
    }

    fn stream(&self, first: Option<u8>) -> Result<KeyedAccounts<'_>, ReadError> {
        Ok(self.tree().order().keyed(self.listed(first)?))
    }

    fn full(&self, first: Option<u8>) -> Result<FullAccounts<'_>, ReadError> {
        Ok(Box::new(self.listed(first)?))
    }

    fn code_bytes(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        StateView::code(self, code_hash)
    }
}

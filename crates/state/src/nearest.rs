//! Names near a key: how accounts and slots are picked at random from a state that is too large to be listed.

use alloy_primitives::{Address, U256};
use arbor_tree::Hash;

use crate::StateError;
use crate::head::Head;

impl Head<'_> {
    /// The first account, in the order of the flat table, whose key is `from` or above; `None` past the last. Where keys are plain names, the first
    /// bytes count.
    ///
    /// # Errors
    /// Those of the store; a record that cannot be read.
    pub fn account_from(self, from: &Hash) -> Result<Option<Address>, StateError> {
        self.tree().records().account_from(self.view(), from)
    }

    /// A slot of the first account with storage whose key is `account` or above: the first whose key is `slot` or above, else the
    /// account's first; `None` past the last account with storage.
    ///
    /// # Errors
    /// Those of the store; a record that cannot be read; slots without their account.
    pub fn slot_from(
        self,
        account: &Hash,
        slot: &Hash,
    ) -> Result<Option<(Address, U256)>, StateError> {
        self.tree().records().slot_from(self.view(), account, slot)
    }
}

//! Names near a key: how accounts and slots are picked at random from a state that is too large to be listed.

use alloy_primitives::{Address, U256};
use arbor_tree::Hash;

use crate::StateError;
use crate::head::Head;
use crate::keys::{ACCOUNTS, SLOTS};
use crate::records::{AccountRecord, SlotRecord};

impl Head<'_> {
    /// The first account whose key is `from` or above; `None` past the last.
    ///
    /// # Errors
    /// Those of the store; a record that cannot be read.
    pub fn account_from(self, from: &Hash) -> Result<Option<Address>, StateError> {
        let Some(entry) = self.view().scan(ACCOUNTS, &[], from)?.next() else {
            return Ok(None);
        };
        let (key, bytes) = entry?;
        Ok(Some(AccountRecord::decode(&key, &bytes)?.address))
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
        let Some(first) = self.view().scan(SLOTS, &[], account)?.next() else {
            return Ok(None);
        };
        let first = first?;
        let corrupt = |why| StateError::Corrupt {
            table: "slots",
            key: first.0.to_vec(),
            why,
        };
        let owner: &Hash = first
            .0
            .first_chunk()
            .ok_or_else(|| corrupt("key of the wrong length"))?;
        let account = self
            .account_record(owner)?
            .ok_or_else(|| corrupt("no such account"))?;
        let from = [&owner[..], slot].concat();
        let mut from_slot = self.view().scan(SLOTS, owner, &from)?;
        let (key, bytes) = from_slot.next().unwrap_or_else(|| Ok(first.clone()))?;
        let slot = SlotRecord::decode(&key, &bytes)?.slot;
        Ok(Some((account.address, slot)))
    }
}

//! Changes that are written down one by one, on top of a view that has the old values.

use std::collections::btree_map::Entry;

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};

use crate::{Account, AccountChange, ReadError, SlotChange, StateChanges, StateView};

impl StateChanges {
    /// Sets an account, or removes it with its storage. `before` is the state that all of these changes are made to, and has the old values.
    ///
    /// # Errors
    /// A view that cannot be read.
    pub fn set_account(
        &mut self,
        before: &dyn StateView,
        address: Address,
        account: Option<Account>,
    ) -> Result<(), ReadError> {
        let change = self.change_of(before, address)?;
        if account.is_none() {
            change.storage_cleared |= change.old.is_some();
            change.slots.clear();
        }
        change.new = account;
        Ok(())
    }

    /// Sets a slot of an account that exists; zero removes the slot. `before` is as in [`set_account`](Self::set_account).
    ///
    /// # Errors
    /// A view that cannot be read.
    pub fn set_slot(
        &mut self,
        before: &dyn StateView,
        address: Address,
        slot: U256,
        new: U256,
    ) -> Result<(), ReadError> {
        let change = self.change_of(before, address)?;
        let old = match change.slots.get(&slot) {
            Some(earlier) => earlier.old,
            None if change.storage_cleared => U256::ZERO,
            None => before.storage(address, slot)?,
        };
        match old == new {
            true => change.slots.remove(&slot),
            false => change.slots.insert(slot, SlotChange { old, new }),
        };
        Ok(())
    }

    /// Adds a code, and returns the hash by which an account names it.
    pub fn add_code(&mut self, code: Bytes) -> B256 {
        let hash = keccak256(&code);
        self.codes.insert(hash, code);
        hash
    }

    /// The change of an account, which changes nothing if there was none yet.
    fn change_of(
        &mut self,
        before: &dyn StateView,
        address: Address,
    ) -> Result<&mut AccountChange, ReadError> {
        match self.accounts.entry(address) {
            Entry::Occupied(found) => Ok(found.into_mut()),
            Entry::Vacant(place) => {
                let old = before.account(address)?;
                Ok(place.insert(AccountChange {
                    old,
                    new: old,
                    ..AccountChange::default()
                }))
            }
        }
    }
}

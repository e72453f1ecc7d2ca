//! The order in which a state's accounts and slots come.

use std::fmt;

use alloy_primitives::{Address, U256};

use crate::{FullAccount, KeyedAccount, KeyedAccounts, KeyedSlot, ReadError, SortKey};

/// An order of accounts and of the slots within each account: ascending by a key that their names
/// determine.
///
/// A tree is loaded in the order of its flat tables. Two orders are equal if they have the same
/// name.
pub struct AccountOrder {
    /// The name of the order, for error messages: "by name", "by Keccak-256".
    pub name: &'static str,
    /// Computes the keys of addresses, in their order. Both slices have the same length.
    pub account_keys: fn(&[Address], &mut [SortKey]),
    /// Computes the keys of slot numbers, in their order. Both slices have the same length.
    pub slot_keys: fn(&[U256], &mut [SortKey]),
}

/// Ascending by address, and by slot number.
///
/// The key of an account is its address, followed by 12 zero bytes. The key of a slot is its
/// number, most significant byte first.
pub static BY_NAME: AccountOrder = AccountOrder {
    name: "by name",
    account_keys: |addresses, keys| {
        for (address, key) in addresses.iter().zip(keys) {
            *key = [0; 32];
            key[..20].copy_from_slice(address.as_slice());
        }
    },
    slot_keys: |slots, keys| {
        for (slot, key) in slots.iter().zip(keys) {
            *key = slot.to_be_bytes();
        }
    },
};

/// Accounts whose keys are computed together, unless they have many slots.
const ACCOUNTS_KEYED_TOGETHER: usize = 1 << 10;
/// From this number of slots on, keys are computed without waiting for more accounts.
const MANY_SLOTS: usize = 1 << 14;

impl AccountOrder {
    /// Computes the keys of accounts and slots, all in two calls. Slots are sorted by their keys;
    /// accounts stay in their order.
    pub fn with_keys(&self, accounts: Vec<FullAccount>) -> Vec<KeyedAccount> {
        let addresses: Vec<Address> = accounts.iter().map(|account| account.address).collect();
        let mut account_keys = vec![SortKey::default(); addresses.len()];
        (self.account_keys)(&addresses, &mut account_keys);
        let slots = accounts.iter().flat_map(|account| &account.slots);
        let slots: Vec<U256> = slots.map(|(slot, _)| *slot).collect();
        let mut slot_keys = vec![SortKey::default(); slots.len()];
        (self.slot_keys)(&slots, &mut slot_keys);
        let mut slot_keys = slot_keys.into_iter();
        let accounts = accounts.into_iter().zip(account_keys);
        let accounts = accounts.map(|(account, key)| {
            let slots = account.slots.into_iter().zip(&mut slot_keys);
            let slots = slots.map(|((slot, value), key)| KeyedSlot { key, slot, value });
            let mut slots: Vec<KeyedSlot> = slots.collect();
            slots.sort_unstable_by_key(|slot| slot.key);
            KeyedAccount {
                key,
                address: account.address,
                account: account.account,
                slots,
            }
        });
        accounts.collect()
    }

    /// Returns accounts with their keys, page by page. Slots are sorted; accounts stay in their
    /// order.
    ///
    /// A page has up to 1,024 accounts, and fewer if they have many slots. An error ends the pages.
    pub fn pages<'a>(
        &'a self,
        accounts: impl Iterator<Item = Result<FullAccount, ReadError>> + 'a,
    ) -> impl Iterator<Item = Result<Vec<KeyedAccount>, ReadError>> + 'a {
        let (mut accounts, mut is_over) = (accounts, false);
        std::iter::from_fn(move || {
            let (mut page, mut slots) = (Vec::new(), 0);
            while !is_over && page.len() < ACCOUNTS_KEYED_TOGETHER && slots < MANY_SLOTS {
                match accounts.next() {
                    Some(Ok(account)) => {
                        slots += account.slots.len();
                        page.push(account);
                    }
                    Some(Err(error)) => {
                        is_over = true;
                        return Some(Err(error));
                    }
                    None => is_over = true,
                }
            }
            (!page.is_empty()).then(|| Ok(self.with_keys(page)))
        })
    }

    /// Returns accounts with their keys, one after another. Slots are sorted; accounts stay in
    /// their order.
    pub fn keyed<'a>(
        &'a self,
        accounts: impl Iterator<Item = Result<FullAccount, ReadError>> + 'a,
    ) -> KeyedAccounts<'a> {
        let accounts = self.pages(accounts).flat_map(|page| {
            let (page, error) = match page {
                Ok(page) => (page, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            page.into_iter().map(Ok).chain(error)
        });
        Box::new(accounts)
    }
}

impl PartialEq for AccountOrder {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for AccountOrder {}

impl fmt::Debug for AccountOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AccountOrder").field(&self.name).finish()
    }
}

//! Accounts and slots in flat tables: what is read and listed without any node.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, U256};
use arbor_store::Table;
use arbor_tree::Hash;
use arbor_versions::{Change, View};

use crate::{Account, AccountOrder, Ahead, Flat, FlatKey, StateError, WithSlots};

/// Accounts with their slots, in the order of a tree's flat tables.
pub type Accounts<'a> = Box<dyn Iterator<Item = Result<WithSlots, StateError>> + 'a>;

/// Accounts that change in any way, and the slots that do.
pub type ChangedNames = BTreeMap<Address, BTreeSet<U256>>;

/// The way in which accounts and slots lie in flat tables. Several trees may share one.
pub trait FlatRecords: Send + Sync {
    /// Reads an account.
    fn account(&self, flat: &dyn Flat, address: Address) -> Result<Option<Account>, StateError>;

    /// Reads accounts, in the order of their addresses, all records together.
    fn accounts(
        &self,
        flat: &dyn Flat,
        addresses: &[Address],
    ) -> Result<Vec<Option<Account>>, StateError>;

    /// Returns the keys of what the flat tables have of these accounts and slots.
    fn keys(&self, accounts: &[Address], slots: &[(Address, U256)]) -> [(Table, Vec<FlatKey>); 2];

    /// Reads a slot, zero if absent.
    fn storage(&self, flat: &dyn Flat, address: Address, slot: U256) -> Result<U256, StateError>;

    /// Returns whether an account has a slot that is not zero.
    fn has_storage(&self, flat: &dyn Flat, address: Address) -> Result<bool, StateError>;

    /// Returns the order in which accounts are listed and loaded: that of the flat tables.
    fn order(&self) -> &'static AccountOrder;

    /// Lists accounts with their slots that are not zero, in this [order](Self::order): those whose
    /// keys have this first byte, or all accounts.
    fn listing<'a>(
        &'a self,
        flat: &'a dyn Flat,
        first: Option<u8>,
    ) -> Result<Accounts<'a>, StateError>;

    /// Computes the Merkle-Patricia root of the flat tables on the threads of the caller's pool,
    /// without reading a node.
    fn root(&self, flat: &Ahead<'_>) -> Result<B256, StateError>;

    /// Returns the accounts, each with those of its slots, whose flat records these are the changes of. A change that names
    /// no account or slot is passed over. `None` if records do not lead to names.
    ///
    /// # Errors
    /// A record that is not what its table promises.
    fn changed_names(&self, changes: &[Change<'_>]) -> Result<Option<ChangedNames>, StateError> {
        let _ = changes;
        Ok(None)
    }

    /// Returns the first account whose key is `from` or above, in the order of the flat tables.
    fn account_from(&self, view: View<'_>, from: &Hash) -> Result<Option<Address>, StateError>;

    /// Returns a slot of the first account with storage whose key is `account` or above: the first
    /// slot whose key is `slot` or above, else the account's first.
    fn slot_from(
        &self,
        view: View<'_>,
        account: &Hash,
        slot: &Hash,
    ) -> Result<Option<(Address, U256)>, StateError>;
}

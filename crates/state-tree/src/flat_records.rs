//! Accounts and slots in flat tables: what is read and listed without any node.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use alloy_primitives::{Address, B256, U256};
use arbor_store::Table;
use arbor_tree::Hash;
use arbor_versions::{Change, View};

use crate::{Account, AccountOrder, Ahead, Flat, FlatKey, KeptAccount, StateError, WithSlots};

/// Accounts with their slots, in the order of a tree's flat tables.
pub type Accounts<'a> = Box<dyn Iterator<Item = Result<WithSlots, StateError>> + 'a>;

/// Accounts with their slots, and with what the flat tables keep of what is gone.
pub type KeptAccounts<'a> = Box<dyn Iterator<Item = Result<KeptAccount, StateError>> + 'a>;

/// Accounts that change in any way, and the slots that do.
pub type ChangedNames = BTreeMap<Address, BTreeSet<U256>>;

/// All accounts, whose values were brought into the order in which accounts are listed.
pub trait Arranged: Sync {
    /// Lists accounts like [`FlatRecords::listing`].
    fn listing(&self, first: Option<u8>) -> Result<Accounts<'_>, StateError>;

    /// Computes the Merkle-Patricia root like [`FlatRecords::root`].
    fn root(&self, bytes: usize) -> Result<B256, StateError>;
}

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

    /// Lists all accounts like [`listing`](Self::listing), and also accounts and slots that are gone, if the tree
    /// keeps their leaves. The tree's root follows from what is listed.
    fn kept_listing<'a>(&'a self, flat: &'a dyn Flat) -> Result<KeptAccounts<'a>, StateError> {
        let listed = self.listing(flat, None)?;
        Ok(Box::new(listed.map(|account| Ok(account?.into()))))
    }

    /// Brings the values of all accounts into the order of the [listing](Self::listing), through unnamed files in a folder. It
    /// is of use if the whole state is read and the tables lie in another order, so that a listing reads each value alone.
    /// `None` if they do not. It takes up to `bytes` of memory, on the threads of the caller's pool.
    ///
    /// # Errors
    /// The store's errors, records that are not what their tables promise, and files that cannot be written.
    fn arrange<'a>(
        &'a self,
        flat: &'a (dyn Flat + Sync),
        folder: &Path,
        bytes: usize,
    ) -> Result<Option<Box<dyn Arranged + 'a>>, StateError> {
        let _ = (flat, folder, bytes);
        Ok(None)
    }

    /// Computes the Merkle-Patricia root of the flat tables on the threads of the caller's pool,
    /// without reading a node. Accounts that must be put into another order take up to `bytes` of
    /// memory, and at least those whose hashed addresses have one first byte.
    fn root(&self, flat: &Ahead<'_>, bytes: usize) -> Result<B256, StateError>;

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

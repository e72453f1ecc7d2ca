//! A whole state as a stream of accounts.

use std::path::Path;

use alloy_primitives::{B256, Bytes};

use crate::{AccountOrder, FullAccounts, KeyedAccounts, ReadError};

/// A whole state that a tree can be loaded from: all accounts with their slots, in one order, and
/// the codes.
///
/// Every tree loads from every source whose order is the tree's.
/// [`SortedAccounts`](crate::SortedAccounts) makes such a source of accounts that come in any other
/// order.
///
/// A load reads accounts several times, or by several threads, and the source returns the same
/// accounts each time. An account's slots are in memory together.
pub trait AccountSource: Sync {
    /// Returns the order in which accounts and slots come.
    fn order(&self) -> &'static AccountOrder;

    /// Reads the accounts whose keys have this first byte, or all accounts; ascending by key.
    ///
    /// # Errors
    /// The source cannot be read. An error may also come in place of an account; no account follows
    /// it.
    fn stream(&self, first: Option<u8>) -> Result<KeyedAccounts<'_>, ReadError>;

    /// Reads the accounts whose keys have this first byte, or all accounts, ascending by key. Slots come in any order,
    /// and no key is computed.
    ///
    /// # Errors
    /// As [`stream`](Self::stream).
    fn full(&self, first: Option<u8>) -> Result<FullAccounts<'_>, ReadError> {
        let accounts = self.stream(first)?;
        Ok(Box::new(accounts.map(|account| Ok(account?.into()))))
    }

    /// Makes a source of the same accounts that reads all of them faster, if there is one: values that lie in another order
    /// than accounts are listed in are put into that order once, through unnamed files in a folder, in up to
    /// `bytes` of memory.
    ///
    /// # Errors
    /// The source cannot be read, or the files cannot be written.
    fn arrange(
        &self,
        folder: &Path,
        bytes: usize,
    ) -> Result<Option<Box<dyn AccountSource + '_>>, ReadError> {
        let _ = (folder, bytes);
        Ok(None)
    }

    /// Reads the code with this hash, which an account has.
    ///
    /// # Errors
    /// [`ReadError::MissingCode`] if the source does not have the code; the source cannot be read.
    fn code_bytes(&self, code_hash: B256) -> Result<Bytes, ReadError>;
}

/// Checks that accounts come in an order.
///
/// # Errors
/// A source of another order.
pub fn check_order(source: &dyn AccountSource, wanted: &AccountOrder) -> Result<(), ReadError> {
    let found = source.order();
    match found == wanted {
        true => Ok(()),
        false => Err(ReadError::new(format!(
            "accounts are needed sorted {}, and the source has them sorted {}: sort them first",
            wanted.name, found.name
        ))),
    }
}

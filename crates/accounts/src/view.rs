//! What execution reads.

use alloy_primitives::{Address, B256, Bytes, U256};

use crate::{Account, ReadError, StateChanges};

/// Reads one state by plain names.
///
/// A read fails if a store cannot be read or has a damaged record, or if a witness lacks what is read:
/// absence is no error.
pub trait StateView {
    /// Returns an account; `None` if it does not exist.
    ///
    /// # Errors
    /// A store that cannot be read; a part of a state that does not show the account.
    fn account(&self, address: Address) -> Result<Option<Account>, ReadError>;

    /// Returns accounts, in the order of their addresses: a database reads many at a time, where each question would wait for the disk, or at least for memory.
    ///
    /// # Errors
    /// The errors of [`account`](Self::account).
    fn accounts(&self, addresses: &[Address]) -> Result<Vec<Option<Account>>, ReadError> {
        let accounts = addresses.iter().map(|address| self.account(*address));
        accounts.collect()
    }

    /// Returns a slot's value, zero if absent.
    ///
    /// # Errors
    /// A store that cannot be read; a part of a state that does not show the slot.
    fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError>;

    /// Returns whether an account has a slot that is not zero, which creating a contract asks of an account without code and
    /// nonce (EIP-7610). Only artificial states, and on mainnet accounts that no creation can meet, have such storage; a view
    /// that cannot tell says no.
    ///
    /// # Errors
    /// The errors of [`account`](Self::account).
    fn has_storage(&self, _address: Address) -> Result<bool, ReadError> {
        Ok(false)
    }

    /// Tells that these accounts and slots will be asked for soon: a database then reads what it has not in memory, many at a time, where each question would wait for
    /// the disk. Nothing comes of an error; the question itself will meet it.
    fn expect(&self, _accounts: &[Address], _slots: &[(Address, U256)]) {}

    /// Returns the code with this hash.
    ///
    /// # Errors
    /// [`ReadError::MissingCode`] if the view does not have it; a store that cannot be read.
    fn code(&self, code_hash: B256) -> Result<Bytes, ReadError>;

    /// Returns the code of one account, if the view has parts of codes by account and no whole codes by hash. `None` if the
    /// view has whole codes, or if the account does not have the code with this hash.
    ///
    /// # Errors
    /// A part of a state that does not show all chunks of the code.
    fn code_of(&self, _address: Address, _code_hash: B256) -> Result<Option<Bytes>, ReadError> {
        Ok(None)
    }
}

/// Roots after each transaction of a block, which receipts carried before Byzantium.
pub trait IntermediateRoots {
    /// Returns the root after `changes`, which follow those of earlier calls for the same block.
    ///
    /// # Errors
    /// A store that cannot be read; a witness without a node that the changes need.
    fn root_after(&mut self, changes: &StateChanges) -> Result<B256, ReadError>;
}

impl<R: IntermediateRoots + ?Sized> IntermediateRoots for Box<R> {
    fn root_after(&mut self, changes: &StateChanges) -> Result<B256, ReadError> {
        (**self).root_after(changes)
    }
}

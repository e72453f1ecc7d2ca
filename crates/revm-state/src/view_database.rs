//! A view as revm's database.

use std::fmt;
use std::ops::Deref;

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use arbor_accounts::{ReadError, StateView};
use revm::bytecode::Bytecode;
use revm::database_interface::{DBErrorMarker, DatabaseRef};
use revm::state::AccountInfo;

use crate::account::info_of;

/// A [`ReadError`] as revm passes it through.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ViewError(#[from] pub ReadError);

impl DBErrorMarker for ViewError {}

/// Returns the hash of a block by its number, for `BLOCKHASH`.
type BlockHashes<'a> = Box<dyn Fn(u64) -> Result<B256, ReadError> + Send + Sync + 'a>;

/// A view of a state as revm's database. `V` is a reference to a view, or an `Arc` or a `Box` of one.
///
/// Reads are not cached here: revm's `State` and `CacheDB` do that.
pub struct ViewDatabase<'a, V> {
    view: V,
    block_hashes: Option<BlockHashes<'a>>,
}

impl<'a, V: Deref<Target: StateView>> ViewDatabase<'a, V> {
    /// Makes a database of a view. It knows no hashes of blocks, and asking for one is an error.
    #[must_use]
    pub fn new(view: V) -> Self {
        Self {
            view,
            block_hashes: None,
        }
    }

    /// Sets where the hashes of the last 256 blocks come from.
    #[must_use]
    pub fn with_block_hashes(
        self,
        block_hashes: impl Fn(u64) -> Result<B256, ReadError> + Send + Sync + 'a,
    ) -> Self {
        Self {
            block_hashes: Some(Box::new(block_hashes)),
            ..self
        }
    }

    /// The view.
    pub fn view(&self) -> &V::Target {
        &self.view
    }
}

impl<V: fmt::Debug> fmt::Debug for ViewDatabase<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ViewDatabase").field(&self.view).finish()
    }
}

impl<V: Deref<Target: StateView>> DatabaseRef for ViewDatabase<'_, V> {
    type Error = ViewError;

    fn basic_ref(&self, address: Address) -> Result<Option<AccountInfo>, ViewError> {
        let Some(account) = self.view.account(address)? else {
            return Ok(None);
        };
        // A witness of leaves has parts of codes by account.
        let code = match account.code_hash {
            KECCAK256_EMPTY => Some(Bytecode::default()),
            hash => self.view.code_of(address, hash)?.map(Bytecode::new_raw),
        };
        Ok(Some(AccountInfo {
            code,
            ..info_of(account)
        }))
    }

    fn code_by_hash_ref(&self, code_hash: B256) -> Result<Bytecode, ViewError> {
        match code_hash {
            KECCAK256_EMPTY => Ok(Bytecode::default()),
            hash => Ok(Bytecode::new_raw(self.view.code(hash)?)),
        }
    }

    fn storage_ref(&self, address: Address, index: U256) -> Result<U256, ViewError> {
        Ok(self.view.storage(address, index)?)
    }

    fn block_hash_ref(&self, number: u64) -> Result<B256, ViewError> {
        match &self.block_hashes {
            Some(hashes) => Ok(hashes(number)?),
            None => {
                let why = format!(
                    "the hash of block {number} is not known: give `with_block_hashes` to the database"
                );
                Err(ReadError::new(why).into())
            }
        }
    }
}

//! What loading a whole state needs under every tree.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY};
use arbor_accounts::{Account, AccountSource, ReadError};
use arbor_versions::Versions;

use crate::checks::check_code_hashes;
use crate::tables::code_write;
use crate::{StateError, WrongChanges};

/// The codes that loaded accounts have. Each is read twice: it is checked when the first account
/// has it, and stored after all accounts, because codes are stored in another order.
pub struct LoadedCodes<'a> {
    source: &'a dyn AccountSource,
    /// The sizes in bytes, by hash.
    sizes: RwLock<BTreeMap<B256, usize>>,
}

impl<'a> LoadedCodes<'a> {
    /// No codes of a source yet.
    pub fn of(source: &'a dyn AccountSource) -> Self {
        Self {
            source,
            sizes: RwLock::default(),
        }
    }

    /// Returns the size in bytes of an account's code, zero for an account without code.
    ///
    /// # Errors
    /// The source does not have the code, or gives code with another hash; the source's errors.
    pub fn size(&self, address: Address, account: &Account) -> Result<usize, StateError> {
        let code_hash = account.code_hash;
        if code_hash == KECCAK256_EMPTY {
            return Ok(0);
        }
        let known = self.sizes.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(size) = known.get(&code_hash) {
            return Ok(*size);
        }
        drop(known);
        let code = self
            .source
            .code_bytes(code_hash)
            .map_err(|error| match error {
                ReadError::MissingCode(_) => WrongChanges::NoCode { address, code_hash }.into(),
                error => StateError::from(error),
            })?;
        check_code_hashes([(&code_hash, &code)].into_iter())?;
        let mut sizes = self.sizes.write().unwrap_or_else(PoisonError::into_inner);
        sizes.insert(code_hash, code.len());
        Ok(code.len())
    }

    /// Reads the code with this hash.
    ///
    /// # Errors
    /// The source's errors.
    pub fn bytes(&self, code_hash: B256) -> Result<Bytes, StateError> {
        Ok(self.source.code_bytes(code_hash)?)
    }

    /// Stores all codes that accounts have, ascending by hash.
    ///
    /// # Errors
    /// The source's errors, and those of the store.
    pub fn store(&self, versions: &mut Versions) -> Result<(), StateError> {
        let sizes = self.sizes.read().unwrap_or_else(PoisonError::into_inner);
        let mut failed = None;
        let writes = sizes.keys().map_while(|code_hash| {
            let code = self.source.code_bytes(*code_hash);
            let code = code.map_err(|error| failed = Some(error)).ok()?;
            Some(code_write(code_hash, &code))
        });
        versions.load(&mut writes.into_iter())?;
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}

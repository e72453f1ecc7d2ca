//! The fields of a `config` object.

use alloy_primitives::{Address, U256};

use super::GenesisError;
use super::fields::{Fields, Value};

/// The fields of `config`, taken out one by one so that those left over can be reported.
#[derive(Debug)]
pub(crate) struct RawConfig<'t> {
    pub(super) fields: Fields<'t>,
}

impl<'t> RawConfig<'t> {
    /// Reads the object.
    pub(super) fn parse(config: &Value<'t>) -> Result<Self, GenesisError> {
        let fields = config.fields()?;
        Ok(Self { fields })
    }

    /// Reads the object's text.
    pub(super) fn of_text(config: &'t str) -> Result<Self, GenesisError> {
        let fields = Fields::parse(config, "config")?;
        Ok(Self { fields })
    }

    /// Takes a number of 64 bits.
    pub(crate) fn number(&mut self, field: &str) -> Result<Option<u64>, GenesisError> {
        let Some(value) = self.fields.take(field) else {
            return Ok(None);
        };
        // In a header's and an account's numbers it is zero.
        if value.string().is_some_and(|text| text.is_empty()) {
            return Err(value.wrong("a number below 2^64"));
        }
        value.narrow().map(Some)
    }

    /// Takes a number of 256 bits.
    pub(super) fn wide(&mut self, field: &str) -> Result<Option<U256>, GenesisError> {
        let value = self.fields.take(field);
        value.map(|value| value.number()).transpose()
    }

    /// Takes an address.
    pub(super) fn address(&mut self, field: &str) -> Result<Option<Address>, GenesisError> {
        let value = self.fields.take(field);
        value.map(|value| value.address()).transpose()
    }
}

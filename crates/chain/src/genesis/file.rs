//! A genesis file as it is written: header fields and accounts.

use std::collections::BTreeMap;
use std::fmt;

use alloy_primitives::{Address, B256, Bytes, U64, U256};
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::GenesisError;
use super::config::RawConfig;
use super::population::Population;

/// An account that exists from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenesisAccount {
    /// Its address.
    pub address: Address,
    /// Wei.
    pub balance: U256,
    /// Transactions sent, or 1 for a contract of EIP-161.
    pub nonce: u64,
    /// Its code, empty for none.
    pub code: Bytes,
    /// Its slots in ascending order, without those that are zero.
    pub storage: Vec<(B256, U256)>,
}

/// The file's content. Go's decoder ignores the case of names, so files spell `mixHash` in two ways.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct GenesisFile {
    pub(super) config: Option<RawConfig>,
    pub(super) nonce: U256,
    pub(super) timestamp: U256,
    pub(super) extra_data: Bytes,
    pub(super) gas_limit: U256,
    pub(super) difficulty: U256,
    #[serde(alias = "mixhash")]
    pub(super) mix_hash: B256,
    pub(super) coinbase: Address,
    pub(super) alloc: Alloc,
    pub(super) number: U256,
    pub(super) gas_used: U256,
    pub(super) parent_hash: B256,
    pub(super) base_fee_per_gas: Option<U256>,
    pub(super) excess_blob_gas: Option<U256>,
    pub(super) blob_gas_used: Option<U256>,
    pub(super) slot_number: Option<U256>,
    pub(super) state_root: Option<B256>,
    pub(super) population: Option<Population>,
}

/// The names that [`GenesisFile`] reads, and one of other tools that repeats what follows from the rest.
const KNOWN: [&str; 19] = [
    "config",
    "nonce",
    "timestamp",
    "extraData",
    "gasLimit",
    "difficulty",
    "mixHash",
    "mixhash",
    "coinbase",
    "alloc",
    "number",
    "gasUsed",
    "parentHash",
    "baseFeePerGas",
    "excessBlobGas",
    "blobGasUsed",
    "slotNumber",
    "stateRoot",
    "population",
];

impl GenesisFile {
    /// Reads a file's text; the second value lists names that have no meaning here.
    pub(super) fn parse(text: &str) -> Result<(Self, Vec<String>), GenesisError> {
        let file = serde_json::from_str(text)?;
        let names: BTreeMap<String, IgnoredAny> = serde_json::from_str(text)?;
        let unknown = names
            .into_keys()
            .filter(|name| !KNOWN.contains(&name.as_str()));
        Ok((
            file,
            unknown
                .map(|name| format!("{name} is not known and has no effect"))
                .collect(),
        ))
    }
}

/// Accounts in ascending order of addresses.
#[derive(Debug, Default)]
pub(super) struct Alloc {
    pub(super) accounts: Vec<GenesisAccount>,
    /// An address that is listed twice.
    pub(super) duplicate: Option<Address>,
}

impl<'de> Deserialize<'de> for Alloc {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Accounts;
        impl<'de> Visitor<'de> for Accounts {
            type Value = Alloc;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of accounts by address")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Alloc, A::Error> {
                let mut accounts = Vec::new();
                while let Some((address, listed)) = map.next_entry::<Address, Listed>()? {
                    accounts.push(GenesisAccount {
                        address,
                        balance: listed.balance,
                        nonce: listed.nonce.unwrap_or_default().to(),
                        code: listed.code.unwrap_or_default(),
                        storage: listed.storage.unwrap_or_default().0,
                    });
                }
                accounts.sort_by_key(|account| account.address);
                let duplicate = accounts
                    .windows(2)
                    .find(|pair| pair[0].address == pair[1].address);
                let duplicate = duplicate.map(|pair| pair[0].address);
                Ok(Alloc {
                    accounts,
                    duplicate,
                })
            }
        }
        deserializer.deserialize_map(Accounts)
    }
}

/// An account as it is listed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    nonce: Option<U64>,
    balance: U256,
    code: Option<Bytes>,
    storage: Option<Slots>,
    /// Whose it is, in files for tests.
    #[serde(rename = "secretKey", default)]
    _secret_key: IgnoredAny,
}

/// Slots in ascending order, without those that are zero.
#[derive(Default)]
struct Slots(Vec<(B256, U256)>);

impl<'de> Deserialize<'de> for Slots {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Slots;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of values by slot")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Slots, A::Error> {
                let mut slots = BTreeMap::new();
                while let Some((slot, value)) = map.next_entry::<Bytes, Bytes>()? {
                    let slot = word(&slot)?;
                    if slots.insert(slot, word(&value)?).is_some() {
                        return Err(Error::custom(format!("slot {slot} is there twice")));
                    }
                }
                let slots = slots.into_iter();
                let slots = slots.map(|(slot, value)| (slot, U256::from_be_bytes(value.0)));
                Ok(Slots(slots.filter(|(_, value)| !value.is_zero()).collect()))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// A slot or a value, of which leading zeros may be left out.
fn word<E: Error>(bytes: &Bytes) -> Result<B256, E> {
    match bytes.len() {
        0..=32 => Ok(B256::left_padding_from(bytes)),
        length => Err(E::custom(format!(
            "{length} bytes for a slot or its value, which have 32"
        ))),
    }
}

impl GenesisAccount {
    /// An account as a genesis that is being made has it.
    pub(crate) fn new(address: Address, account: alloy_genesis::GenesisAccount) -> Self {
        let storage = account
            .storage_slots()
            .filter(|(_, value)| !value.is_zero())
            .collect();
        Self {
            address,
            balance: account.balance,
            nonce: account.nonce.unwrap_or_default(),
            code: account.code.unwrap_or_default(),
            storage,
        }
    }
}

/// Narrows a header field to 64 bits.
pub(super) fn narrow(field: &str, value: U256) -> Result<u64, GenesisError> {
    let error = |_| {
        GenesisError::Json(serde_json::Error::custom(format!(
            "{field} = {value} exceeds 64 bits"
        )))
    };
    u64::try_from(value).map_err(error)
}

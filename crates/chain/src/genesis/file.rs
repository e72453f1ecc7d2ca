//! A genesis file as it is written: header fields and accounts.

use alloy_primitives::{Address, B256, Bytes, U256};

use super::GenesisError;
use super::account::GenesisAccount;
use super::alloc::{Alloc, Packing};
use super::fields::{Fields, Value, address, each_entry, word};
use super::population::Population;
use super::raw_config::RawConfig;

/// The content of a file in geth's form.
#[derive(Debug, Default)]
pub(super) struct GenesisFile<'t> {
    pub(super) config: Option<RawConfig<'t>>,
    pub(super) nonce: u64,
    pub(super) timestamp: u64,
    pub(super) extra_data: Bytes,
    pub(super) gas_limit: u64,
    pub(super) difficulty: U256,
    pub(super) mix_hash: B256,
    pub(super) coinbase: Address,
    pub(super) alloc: Alloc,
    pub(super) number: u64,
    pub(super) gas_used: u64,
    pub(super) parent_hash: B256,
    pub(super) base_fee_per_gas: Option<u64>,
    pub(super) excess_blob_gas: Option<u64>,
    pub(super) blob_gas_used: Option<u64>,
    pub(super) slot_number: Option<u64>,
    pub(super) state_root: Option<B256>,
}

/// Names that files of other forms have, and geth's has not: of Nethermind's and Parity's chainspec.
const CHAINSPEC: [&str; 4] = ["engine", "params", "accounts", "genesis"];

impl<'t> GenesisFile<'t> {
    /// Reads a file's text; the second value lists names that have no meaning here.
    pub(super) fn parse(text: &'t str) -> Result<(Self, Vec<String>), GenesisError> {
        let mut fields = Fields::parse(text, "")?;
        let foreign: Vec<&str> = CHAINSPEC
            .into_iter()
            .filter(|name| fields.has(name))
            .collect();
        if foreign.len() > 1 && !fields.has("gasLimit") {
            return Err(GenesisError::Chainspec(foreign.join(", ")));
        }
        let mut unknown = Unknown::default();
        let mut narrow = |name: &str| -> Result<Option<u64>, GenesisError> {
            let value = fields.take(name);
            value.map(|value| value.narrow()).transpose()
        };
        let mut file = Self {
            nonce: narrow("nonce")?.unwrap_or_default(),
            timestamp: narrow("timestamp")?.unwrap_or_default(),
            gas_limit: narrow("gasLimit")?.ok_or(GenesisError::Missing("gasLimit"))?,
            number: narrow("number")?.unwrap_or_default(),
            gas_used: narrow("gasUsed")?.unwrap_or_default(),
            base_fee_per_gas: narrow("baseFeePerGas")?,
            excess_blob_gas: narrow("excessBlobGas")?,
            blob_gas_used: narrow("blobGasUsed")?,
            slot_number: narrow("slotNumber")?,
            ..Self::default()
        };
        let difficulty = fields.take("difficulty");
        let difficulty = difficulty.ok_or(GenesisError::Missing("difficulty"))?;
        file.difficulty = difficulty.number()?;
        if let Some(config) = fields.take("config") {
            file.config = Some(RawConfig::parse(&config)?);
        }
        if let Some(extra_data) = fields.take("extraData") {
            file.extra_data = extra_data.bytes()?;
        }
        if let Some(coinbase) = fields.take("coinbase") {
            file.coinbase = coinbase.address()?;
        }
        let hashes = [
            ("mixHash", &mut file.mix_hash),
            ("parentHash", &mut file.parent_hash),
        ];
        for (name, hash) in hashes {
            if let Some(value) = fields.take(name) {
                *hash = value.hash()?;
            }
        }
        let state_root = fields.take("stateRoot");
        file.state_root = state_root.map(|root| root.hash()).transpose()?;
        let population = fields.take("population");
        match fields.take("alloc") {
            Some(listed) => file.alloc = accounts(&listed, &mut unknown)?,
            None if population.is_none() => return Err(GenesisError::Missing("alloc")),
            None => {}
        }
        if let Some(population) = population {
            let read: Result<Population, _> = serde_json::from_str(population.text());
            let read = read.map_err(|error| population.wrong(&error.to_string()))?;
            if read.contract > Population::MOST_SLOTS {
                let most = Population::MOST_SLOTS;
                return Err(population.wrong(&format!("contract is above {most} slots")));
            }
            file.alloc = file.alloc.with_population(read)?;
        }
        unknown.extend(fields.left());
        Ok((file, unknown.warnings()))
    }
}

/// Names that have no meaning here. Of a genesis with a million accounts the first names suffice.
#[derive(Default)]
struct Unknown {
    named: Vec<String>,
    more: usize,
}

impl Unknown {
    const NAMED: usize = 20;

    fn extend(&mut self, names: impl Iterator<Item = String>) {
        for name in names {
            match self.named.len() < Self::NAMED {
                true => self.named.push(name),
                false => self.more += 1,
            }
        }
    }

    fn warnings(self) -> Vec<String> {
        let named = self.named.into_iter();
        let mut warnings: Vec<String> = named
            .map(|name| format!("{name} is not known and has no effect"))
            .collect();
        if self.more > 0 {
            let more = self.more;
            warnings.push(format!(
                "{more} more names are not known and have no effect"
            ));
        }
        warnings
    }
}

/// The accounts that are listed. Fields without a meaning here are added to `unknown`.
fn accounts(alloc: &Value<'_>, unknown: &mut Unknown) -> Result<Alloc, GenesisError> {
    let mut accounts = Packing::default();
    each_entry(alloc, &mut |name, value| {
        let Some(address) = address(name) else {
            return Err(alloc.wrong(&format!("an address instead of '{name}'")));
        };
        accounts.push(&account(address, &value, unknown)?);
        Ok(())
    })?;
    accounts.finish()
}

fn account(
    address: Address,
    listed: &Value<'_>,
    unknown: &mut Unknown,
) -> Result<GenesisAccount, GenesisError> {
    let mut fields = listed.fields()?;
    let nonce = fields.take("nonce").map(|nonce| nonce.narrow());
    let code = fields.take("code").map(|code| code.bytes());
    let storage = fields.take("storage").map(|storage| slots(&storage));
    let balance = fields.take("balance");
    let balance = balance.ok_or_else(|| listed.wrong("a balance in it"))?;
    // Whose account it is, in files for tests.
    fields.take("secretKey");
    unknown.extend(fields.left());
    Ok(GenesisAccount {
        address,
        balance: balance.number()?,
        nonce: nonce.transpose()?.unwrap_or_default(),
        code: code.transpose()?.unwrap_or_default(),
        storage: storage.transpose()?.unwrap_or_default(),
    })
}

/// Slots in ascending order, without those that are zero.
fn slots(storage: &Value<'_>) -> Result<Vec<(B256, U256)>, GenesisError> {
    let mut slots = Vec::new();
    each_entry(storage, &mut |name, value| {
        let wanted = "up to 32 bytes in hexadecimal";
        let Some(slot) = word(name) else {
            return Err(storage.wrong(&format!("slots by number, {wanted}, instead of '{name}'")));
        };
        let text = value.string();
        let read = text.and_then(|text| word(&text));
        let read = read.ok_or_else(|| value.wrong(wanted))?;
        slots.push((slot, U256::from_be_bytes(read.0)));
        Ok(())
    })?;
    slots.sort_unstable_by_key(|(slot, _)| *slot);
    let mut pairs = slots.windows(2);
    if let Some(pair) = pairs.find(|pair| pair[0].0 == pair[1].0) {
        let slot = pair[0].0;
        return Err(storage.wrong(&format!("each slot once, but slot {slot} is there twice")));
    }
    slots.retain(|(_, value)| !value.is_zero());
    Ok(slots)
}

//! The `config` object of a genesis file: fork schedule and parameters.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use alloy_primitives::{Address, U256};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::difficulty::Bomb;
use super::rewards::RewardSchedule;
use super::spec::{DaoFork, Limitation};
use super::{Activation, Fork, GenesisError};
use crate::json::{Unique, twice};

/// Everything that a [`super::ChainSpec`] is made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    pub(crate) chain_id: u64,
    pub(crate) forks: Vec<(Fork, Activation)>,
    pub(crate) terminal_total_difficulty: Option<U256>,
    pub(crate) dao: Option<DaoFork>,
    pub(crate) eip155: Option<u64>,
    pub(crate) eip160: Option<u64>,
    pub(crate) blobs: Vec<(Fork, BlobEntry)>,
    pub(crate) deposit_contract: Option<Address>,
    pub(crate) rewards: RewardSchedule,
    pub(crate) bomb: Bomb,
    pub(crate) limitations: Vec<Limitation>,
}

/// An entry of `blobSchedule`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlobEntry {
    pub(crate) target: u64,
    pub(crate) max: u64,
    pub(crate) fraction: u128,
}

/// Forks by block in geth's words.
const BLOCK_FORKS: [(&str, Fork); 12] = [
    ("homesteadBlock", Fork::Homestead),
    ("eip150Block", Fork::TangerineWhistle),
    ("eip158Block", Fork::SpuriousDragon),
    ("byzantiumBlock", Fork::Byzantium),
    ("constantinopleBlock", Fork::Constantinople),
    ("petersburgBlock", Fork::Petersburg),
    ("istanbulBlock", Fork::Istanbul),
    ("muirGlacierBlock", Fork::MuirGlacier),
    ("berlinBlock", Fork::Berlin),
    ("londonBlock", Fork::London),
    ("arrowGlacierBlock", Fork::ArrowGlacier),
    ("grayGlacierBlock", Fork::GrayGlacier),
];

/// Forks by time in geth's words: the field, the entry of `blobSchedule`.
const TIME_FORKS: [(&str, &str, Fork); 10] = [
    ("shanghaiTime", "shanghai", Fork::Shanghai),
    ("cancunTime", "cancun", Fork::Cancun),
    ("pragueTime", "prague", Fork::Prague),
    ("osakaTime", "osaka", Fork::Osaka),
    ("bpo1Time", "bpo1", Fork::Bpo1),
    ("bpo2Time", "bpo2", Fork::Bpo2),
    ("bpo3Time", "bpo3", Fork::Bpo3),
    ("bpo4Time", "bpo4", Fork::Bpo4),
    ("bpo5Time", "bpo5", Fork::Bpo5),
    ("amsterdamTime", "amsterdam", Fork::Amsterdam),
];

/// Fields without a meaning for executing blocks: what `networkId` and the engines say concerns peers and sealing, and
/// `mergeNetsplitBlock` only the fork identifier (EIP-2124).
const WITHOUT_EFFECT: [&str; 6] = [
    "networkId",
    "ethash",
    "terminalTotalDifficultyPassed",
    "mergeNetsplitBlock",
    "mergeForkBlock",
    "proofOfWork",
];

/// The fields of `config`, taken out one by one so that those left over can be reported.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawConfig {
    fields: BTreeMap<String, Value>,
    /// Apart from the others because it may exceed 64 bits, which a JSON value of serde_json would round.
    terminal_total_difficulty: Option<u128>,
}

impl RawConfig {
    /// Turns the fields into a configuration; the second value lists what had no meaning here.
    pub(crate) fn read(mut self) -> Result<(Config, Vec<String>), GenesisError> {
        let chain_id = self.number("chainId")?;
        let mut config = Config {
            chain_id: chain_id.unwrap_or(1),
            terminal_total_difficulty: self.terminal_total_difficulty.map(U256::from),
            ..Config::default()
        };
        let mut warnings = Vec::new();
        if chain_id.is_none() {
            warnings.push("config has no chainId: 1 is taken".to_owned());
        }
        for (field, fork) in BLOCK_FORKS {
            let block = self.number(field)?;
            config
                .forks
                .extend(block.map(|block| (fork, Activation::Block(block))));
        }
        for (field, _, fork) in TIME_FORKS {
            let time = self.number(field)?;
            config
                .forks
                .extend(time.map(|time| (fork, Activation::Time(time))));
        }
        config.eip155 = self.number("eip155Block")?;
        config.dao = self.dao()?;
        config.blobs = self.blob_schedule(&mut warnings)?;
        config.deposit_contract = self.address("depositContractAddress")?;
        super::classic::read(&mut self, &mut config)?;
        if let Some(clique) = self
            .fields
            .remove("clique")
            .filter(|value| !value.is_null())
        {
            warnings.push(format!("config: clique {clique} (proof of authority): seals are not checked, and blocks pay rewards as under proof of work"));
        }
        for field in WITHOUT_EFFECT {
            self.fields.remove(field);
        }
        let unknown = self.fields.iter().filter(|(_, value)| !value.is_null());
        warnings.extend(unknown.map(|(name, value)| {
            format!("config: {name} = {value} is not known and has no effect")
        }));
        Ok((config, warnings))
    }

    /// Takes a number: a JSON number, or a string of decimal or `0x` hexadecimal digits.
    pub(crate) fn number(&mut self, field: &str) -> Result<Option<u64>, GenesisError> {
        match self.fields.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => parse_number(&value)
                .map(Some)
                .ok_or_else(|| wrong(field, &value, "a number of 64 bits")),
        }
    }

    fn address(&mut self, field: &str) -> Result<Option<Address>, GenesisError> {
        match self.fields.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let address = value.as_str().and_then(|text| text.parse().ok());
                address
                    .map(Some)
                    .ok_or_else(|| wrong(field, &value, "an address"))
            }
        }
    }

    fn dao(&mut self) -> Result<Option<DaoFork>, GenesisError> {
        let support = match self.fields.remove("daoForkSupport") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(support)) => support,
            Some(value) => return Err(wrong("daoForkSupport", &value, "true or false")),
        };
        Ok(self
            .number("daoForkBlock")?
            .map(|block| DaoFork { block, support }))
    }

    fn blob_schedule(
        &mut self,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<(Fork, BlobEntry)>, GenesisError> {
        let entries = match self.fields.remove("blobSchedule") {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Object(entries)) => entries,
            Some(value) => return Err(wrong("blobSchedule", &value, "an object")),
        };
        let mut schedule = Vec::new();
        for (name, value) in entries {
            let Some((_, _, fork)) = TIME_FORKS.iter().find(|(_, known, _)| *known == name) else {
                warnings.push(format!(
                    "config: blobSchedule.{name} is not a known fork and has no effect"
                ));
                continue;
            };
            let part = |part: &str| {
                let number = value.get(part).and_then(parse_number);
                number.ok_or_else(|| {
                    wrong(
                        &format!("blobSchedule.{name}.{part}"),
                        &value,
                        "a number there",
                    )
                })
            };
            let fraction = u128::from(part("baseFeeUpdateFraction")?);
            if fraction == 0 {
                return Err(wrong(
                    &format!("blobSchedule.{name}"),
                    &value,
                    "a fraction above 0",
                ));
            }
            schedule.push((
                *fork,
                BlobEntry {
                    target: part("target")?,
                    max: part("max")?,
                    fraction,
                },
            ));
        }
        Ok(schedule)
    }
}

fn wrong(field: &str, value: &Value, wanted: &str) -> GenesisError {
    GenesisError::Field {
        field: field.to_owned(),
        reason: format!("{value} instead of {wanted}"),
    }
}

fn parse_number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => {
            let (digits, base) = match text.strip_prefix("0x") {
                Some(digits) => (digits, 16),
                None => (text.as_str(), 10),
            };
            // A sign would be read too.
            let is_number = digits.chars().all(|digit| digit.is_digit(base));
            let number = u64::from_str_radix(digits, base).ok();
            number.filter(|_| is_number)
        }
        _ => None,
    }
}

impl<'de> Deserialize<'de> for RawConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = RawConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a chain configuration")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawConfig, A::Error> {
                let (mut config, mut names) = (RawConfig::default(), HashSet::new());
                while let Some(name) = map.next_key::<String>()? {
                    if !names.insert(name.clone()) {
                        return Err(twice(&name));
                    }
                    if name == "terminalTotalDifficulty" {
                        config.terminal_total_difficulty = map.next_value()?;
                    } else {
                        let Unique(value) = map.next_value()?;
                        config.fields.insert(name, value);
                    }
                }
                Ok(config)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

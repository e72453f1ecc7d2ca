//! What a chain to be generated is to look like.

use std::{fmt, str::FromStr};

use arbor_chain::genesis::Population;
use serde::{Deserialize, Serialize};

/// A kind of transaction in the workload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Ether from one account to another, old or new.
    Transfer,
    /// A token's `transfer`; sometimes `approve`.
    Erc20,
    /// A swap at a constant-product pair (or the `approve` that a trader's first swap needs).
    Swap,
    /// A creation transaction: a token, or a contract whose code nobody else has.
    Create,
    /// Entries appended to or overwritten in one contract with very many slots.
    Wide,
    /// One or two slots written in each of a few out of very many contracts, or new ones made.
    Sparse,
    /// Slots zeroed, or a contract made and destroyed within the transaction.
    Delete,
    /// Ether for a contract of the population, which writes one of its slots; all of them alike popular.
    Visit,
}

impl Kind {
    /// All kinds, in the order of [`Mix::weights`].
    pub const ALL: [Self; 8] = [
        Self::Transfer,
        Self::Erc20,
        Self::Swap,
        Self::Create,
        Self::Wide,
        Self::Sparse,
        Self::Delete,
        Self::Visit,
    ];

    /// The name used in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Transfer => "transfer",
            Self::Erc20 => "erc20",
            Self::Swap => "swap",
            Self::Create => "create",
            Self::Wide => "wide",
            Self::Sparse => "sparse",
            Self::Delete => "delete",
            Self::Visit => "visit",
        }
    }
}

/// How often each kind of transaction occurs, as weights relative to their sum.
///
/// The text form is `transfer=40,erc20=30,swap=12`: kinds not named have weight zero.
///
/// ```
/// # use arbor_generator::{Kind, Mix};
/// let mix: Mix = "transfer=3,swap=1".parse()?;
/// assert_eq!(mix.weight(Kind::Swap), 1);
/// assert_eq!(mix.to_string(), "transfer=3,swap=1");
/// # Ok::<(), arbor_generator::SettingsError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Mix {
    /// One weight per kind, in the order of [`Kind::ALL`].
    pub weights: [u32; 8],
}

impl Default for Mix {
    /// Something like what mainnet blocks hold, with storage-heavy kinds more frequent.
    fn default() -> Self {
        Self {
            weights: [35, 28, 14, 2, 8, 8, 5, 0],
        }
    }
}

impl Mix {
    /// The weight of one kind.
    pub fn weight(&self, kind: Kind) -> u32 {
        self.weights[kind as usize]
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Kind::ALL.iter().filter(|kind| self.weight(**kind) > 0);
        for (index, kind) in named.enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{}={}", kind.name(), self.weight(*kind))?;
        }
        Ok(())
    }
}

impl FromStr for Mix {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let wrong = |reason: String| SettingsError {
            field: "mix",
            reason,
        };
        let mut weights = [0; 8];
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            let (name, weight) = part
                .split_once('=')
                .ok_or_else(|| wrong(format!("'{part}' is not of the form kind=weight")))?;
            let kind = Kind::ALL
                .iter()
                .find(|kind| kind.name() == name.trim())
                .ok_or_else(|| {
                    let names: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
                    wrong(format!(
                        "no kind is called '{}'; there are {}",
                        name.trim(),
                        names.join(", ")
                    ))
                })?;
            weights[*kind as usize] = weight.trim().parse().map_err(|_| {
                wrong(format!(
                    "'{}' is not a weight (0 to 4294967295)",
                    weight.trim()
                ))
            })?;
        }
        Ok(Self { weights })
    }
}

impl From<Mix> for String {
    fn from(mix: Mix) -> Self {
        mix.to_string()
    }
}

impl TryFrom<String> for Mix {
    type Error = SettingsError;

    fn try_from(text: String) -> Result<Self, SettingsError> {
        text.parse()
    }
}

/// What a chain to be generated is to look like. The same settings give the same bytes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratorSettings {
    /// Everything random comes from this number.
    pub seed: u64,
    /// Chain id of the genesis and of every transaction; 1 to 2^53.
    pub chain_id: u64,
    /// Blocks after the genesis block, at least 1. A chain can be continued to a larger number later.
    pub blocks: u64,
    /// Accounts with ether and tokens in the genesis, which send the transactions; 2 to 10,000,000.
    pub accounts: u64,
    /// Contracts with two slots each that the genesis counts instead of listing, for a large state; 0 to 2^32 - 1.
    #[serde(default)]
    pub population: u64,
    /// Slots of the population's first contract, so that it is a large one that every second visit goes to; 0 if it has as many as the others; up to
    /// 20,000,000.
    #[serde(default, skip_serializing_if = "is_none")]
    pub contract: u64,
    /// How many of the population, the first ones, are visited; 1 to 2^32 - 1.
    #[serde(default = "some_visited", skip_serializing_if = "is_some_visited")]
    pub visited: u64,
    /// The part of the visits that write the value that the slot has, and so read only; 0 to 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub visits_that_read: f64,
    /// Transactions in a block, 0 to 10,000. A block has fewer when its gas does not suffice, or when
    /// the base fee has risen so high that demand falls.
    pub transactions_per_block: u64,
    /// Gas limit of every block, 1,000,000 to 1,000,000,000.
    pub gas_limit: u64,
    /// How often each kind of transaction occurs; not all zero.
    pub mix: Mix,
    /// Exponent of Zipf's law for the popularity of accounts and contracts; 0 (all alike) to 4.
    pub zipf: f64,
    /// The part of plain and token transfers that go to an address never used before; 0 to 1.
    pub new_account_rate: f64,
    /// Whether the finished chain is compressed to `chain.rlp.gz`.
    pub gzip: bool,
}

/// So few that the visits are the same however large the population is.
const VISITED: u64 = 10_000;

fn some_visited() -> u64 {
    VISITED
}

// What is usual is not written, so that folders that older versions made can be continued.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_some_visited(visited: &u64) -> bool {
    *visited == VISITED
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_none(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(part: &f64) -> bool {
    *part == 0.0
}

/// A named set of settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preset {
    /// 12 blocks of 20 transactions, for tests.
    Tiny,
    /// 200 blocks of 50 transactions: seconds to make, enough to look at.
    Demo,
    /// 500,000 blocks of 4 transactions: as long as the replay that was published of Verkle beside the
    /// Merkle-Patricia trie, with more in each block; some 20 minutes to make.
    Replay500k,
}

impl Preset {
    /// All presets.
    pub const ALL: [Self; 3] = [Self::Tiny, Self::Demo, Self::Replay500k];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Demo => "demo",
            Self::Replay500k => "replay-500k",
        }
    }

    /// Its settings.
    pub fn settings(self) -> GeneratorSettings {
        let (blocks, accounts, transactions_per_block, gas_limit) = match self {
            Self::Tiny => (12, 40, 20, 3_000_000),
            Self::Demo => (200, 1_000, 50, 5_000_000),
            Self::Replay500k => (500_000, 20_000, 4, 6_000_000),
        };
        GeneratorSettings {
            seed: 1,
            chain_id: arbor_chain::genesis::GENERATED_CHAIN_ID,
            blocks,
            accounts,
            population: 0,
            contract: 0,
            visited: VISITED,
            visits_that_read: 0.0,
            transactions_per_block,
            gas_limit,
            mix: Mix::default(),
            zipf: 0.9,
            new_account_rate: 0.1,
            gzip: false,
        }
    }
}

impl FromStr for Preset {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        Self::ALL
            .into_iter()
            .find(|preset| preset.name() == text)
            .ok_or_else(|| {
                let names: Vec<_> = Self::ALL.iter().map(|preset| preset.name()).collect();
                let reason = format!(
                    "no preset is called '{text}'; there are {}",
                    names.join(", ")
                );
                SettingsError {
                    field: "preset",
                    reason,
                }
            })
    }
}

/// A setting that makes no sense.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("setting {field}: {reason}")]
pub struct SettingsError {
    /// The name of the field.
    pub field: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

impl GeneratorSettings {
    /// Checks every field's range.
    ///
    /// # Errors
    /// Names the first field that is out of its range.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let range = |field, value: u64, low: u64, high: u64| {
            let reason = || format!("{value} is not within {low} to {high}");
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(SettingsError {
                    field,
                    reason: reason(),
                })
            }
        };
        let real = |field, value: f64, high: f64| {
            let reason = || format!("{value} is not within 0 to {high}");
            if (0.0..=high).contains(&value) {
                Ok(())
            } else {
                Err(SettingsError {
                    field,
                    reason: reason(),
                })
            }
        };
        range("chain_id", self.chain_id, 1, 1 << 53)?;
        range("blocks", self.blocks, 1, u64::from(u32::MAX))?;
        range("accounts", self.accounts, 2, 10_000_000)?;
        range("population", self.population, 0, u64::from(u32::MAX))?;
        range("contract", self.contract, 0, Population::MOST_SLOTS)?;
        if self.contract > 0 && self.population == 0 {
            return Err(SettingsError {
                field: "contract",
                reason: "there is no population that it is of".to_owned(),
            });
        }
        range("visited", self.visited, 1, u64::from(u32::MAX))?;
        real("visits_that_read", self.visits_that_read, 1.0)?;
        range(
            "transactions_per_block",
            self.transactions_per_block,
            0,
            10_000,
        )?;
        range("gas_limit", self.gas_limit, 1_000_000, 1_000_000_000)?;
        real("zipf", self.zipf, 4.0)?;
        real("new_account_rate", self.new_account_rate, 1.0)?;
        let mix = |reason: &str| {
            let reason = reason.to_owned();
            Err(SettingsError {
                field: "mix",
                reason,
            })
        };
        if self.mix.weights.iter().all(|weight| *weight == 0) {
            return mix("all weights are zero");
        }
        if self.mix.weight(Kind::Visit) > 0 && self.population == 0 {
            return mix("there is no population to visit");
        }
        Ok(())
    }

    /// Names the first field in which continuing under `self` a chain made under `earlier` would change
    /// blocks already written; `None` if none.
    pub(super) fn conflict_with(&self, earlier: &Self) -> Option<&'static str> {
        let same = [
            ("seed", self.seed == earlier.seed),
            ("chain_id", self.chain_id == earlier.chain_id),
            ("accounts", self.accounts == earlier.accounts),
            ("population", self.population == earlier.population),
            ("contract", self.contract == earlier.contract),
            ("visited", self.visited == earlier.visited),
            (
                "visits_that_read",
                self.visits_that_read == earlier.visits_that_read,
            ),
            (
                "transactions_per_block",
                self.transactions_per_block == earlier.transactions_per_block,
            ),
            ("gas_limit", self.gas_limit == earlier.gas_limit),
            ("mix", self.mix == earlier.mix),
            ("zipf", self.zipf == earlier.zipf),
            (
                "new_account_rate",
                self.new_account_rate == earlier.new_account_rate,
            ),
        ];
        same.into_iter()
            .find(|(_, same)| !same)
            .map(|(field, _)| field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid_and_found_by_name() {
        for preset in Preset::ALL {
            assert_eq!(preset.settings().validate(), Ok(()));
            assert_eq!(preset.name().parse(), Ok(preset));
        }
        assert_eq!(
            "huge".parse::<Preset>().map_err(|error| error.field),
            Err("preset")
        );
    }

    #[test]
    fn every_bad_setting_is_named() {
        type Change = fn(&mut GeneratorSettings);
        let cases: [(&str, Change); 15] = [
            ("chain_id", |s| s.chain_id = 0),
            ("blocks", |s| s.blocks = 0),
            ("accounts", |s| s.accounts = 1),
            ("accounts", |s| s.accounts = 10_000_001),
            ("transactions_per_block", |s| {
                s.transactions_per_block = 10_001;
            }),
            ("gas_limit", |s| s.gas_limit = 999_999),
            ("zipf", |s| s.zipf = -0.1),
            ("zipf", |s| s.zipf = f64::NAN),
            ("new_account_rate", |s| s.new_account_rate = 1.5),
            ("new_account_rate", |s| s.new_account_rate = f64::INFINITY),
            ("population", |s| s.population = 1 << 32),
            ("contract", |s| s.contract = 1),
            ("contract", |s| {
                s.population = 1;
                s.contract = 20_000_001;
            }),
            ("mix", |s| s.mix.weights[7] = 1),
            ("mix", |s| s.mix.weights = [0; 8]),
        ];
        for (field, change) in cases {
            let mut settings = Preset::Tiny.settings();
            change(&mut settings);
            assert_eq!(settings.validate().map_err(|error| error.field), Err(field));
        }
    }

    #[test]
    fn a_mix_is_read_and_written() {
        let mix: Mix = "erc20=5, swap=2".parse().expect("valid");
        assert_eq!(mix.weights, [0, 5, 2, 0, 0, 0, 0, 0]);
        assert_eq!(mix.to_string(), "erc20=5,swap=2");
        for text in ["swap", "swap=x", "swap=-1", "swaps=1"] {
            assert_eq!(
                text.parse::<Mix>().map_err(|error| error.field),
                Err("mix"),
                "{text}"
            );
        }
    }

    #[test]
    fn only_more_blocks_or_compression_can_continue_a_chain() {
        let settings = Preset::Tiny.settings();
        let more = GeneratorSettings {
            blocks: 99,
            gzip: true,
            ..settings.clone()
        };
        assert_eq!(more.conflict_with(&settings), None);
        let other = GeneratorSettings {
            zipf: 0.5,
            ..settings.clone()
        };
        assert_eq!(other.conflict_with(&settings), Some("zipf"));
    }
}

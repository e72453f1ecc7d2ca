//! The `config` object of a genesis file: fork schedule and parameters.

use super::parameters::{BlobEntry, Config, DaoFork};
use super::raw_config::RawConfig;
use super::{Activation, Fork, GenesisError};

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

/// Fields without a meaning for executing blocks: what `networkId` and the engines say concerns peers and sealing.
const WITHOUT_EFFECT: [&str; 5] = [
    "networkId",
    "ethash",
    "terminalTotalDifficultyPassed",
    "mergeForkBlock",
    "proofOfWork",
];

/// Names of other clients that change rules which this program does not have. A chain with one of them may be judged
/// wrongly, so a replay warns of each.
const UNSUPPORTED: [&str; 14] = [
    "verkleTime",
    "enableVerkleAtGenesis",
    "ubtTime",
    "enableUBTAtGenesis",
    "isQuorum",
    "optimism",
    "contractSizeLimit",
    "evmStackSize",
    "maxCodeSize",
    "zeroBaseFee",
    "fixedBaseFee",
    "ibft2",
    "qbft",
    "parlia",
];

impl RawConfig<'_> {
    /// Turns the fields into a configuration; the second value lists what had no meaning here.
    pub(crate) fn read(mut self) -> Result<(Config, Vec<String>), GenesisError> {
        let chain_id = self.number("chainId")?;
        let mut config = Config {
            chain_id: chain_id.unwrap_or(1),
            terminal_total_difficulty: self.wide("terminalTotalDifficulty")?,
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
        config.merge_netsplit = self.number("mergeNetsplitBlock")?;
        config.dao = self.dao()?;
        config.blobs = self.blob_schedule(&mut warnings)?;
        config.deposit_contract = self.address("depositContractAddress")?;
        super::classic::read(&mut self, &mut config)?;
        if let Some(clique) = self.fields.take("clique") {
            let clique = clique.text();
            warnings.push(format!("config: clique {clique} (proof of authority): seals are not checked, and blocks pay rewards as under proof of work"));
        }
        for field in WITHOUT_EFFECT {
            self.fields.take(field);
        }
        for field in UNSUPPORTED {
            if let Some(value) = self.fields.take(field) {
                let (path, value) = (value.path(), value.text());
                warnings.push(format!(
                    "{path} = {value} changes rules and is not supported: blocks that depend on it are judged without it"
                ));
            }
        }
        let unknown = self.fields.left();
        warnings.extend(unknown.map(|name| format!("{name} is not known and has no effect")));
        Ok((config, warnings))
    }

    fn dao(&mut self) -> Result<Option<DaoFork>, GenesisError> {
        let support = match self.fields.take("daoForkSupport") {
            None => false,
            Some(value) => match value.text() {
                "true" => true,
                "false" => false,
                _ => return Err(value.wrong("true or false")),
            },
        };
        Ok(self
            .number("daoForkBlock")?
            .map(|block| DaoFork { block, support }))
    }

    fn blob_schedule(
        &mut self,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<(Fork, BlobEntry)>, GenesisError> {
        let Some(entries) = self.fields.take("blobSchedule") else {
            return Ok(Vec::new());
        };
        let mut entries = entries.fields()?;
        let mut schedule = Vec::new();
        for (_, name, fork) in TIME_FORKS {
            let Some(entry) = entries.take(name) else {
                continue;
            };
            let mut parts = entry.fields()?;
            let mut part = |name: &str| match parts.take(name) {
                Some(part) => part.narrow(),
                None => Err(entry.wrong(&format!("a number {name} in it"))),
            };
            let (target, max) = (part("target")?, part("max")?);
            let fraction = u128::from(part("baseFeeUpdateFraction")?);
            if fraction == 0 {
                return Err(entry.wrong("a baseFeeUpdateFraction above 0"));
            }
            schedule.push((
                fork,
                BlobEntry {
                    target,
                    max,
                    fraction,
                },
            ));
            let left = parts.left();
            warnings.extend(left.map(|name| format!("{name} is not known and has no effect")));
        }
        let unknown = entries.left();
        warnings
            .extend(unknown.map(|name| format!("{name} is not a known fork and has no effect")));
        Ok(schedule)
    }
}

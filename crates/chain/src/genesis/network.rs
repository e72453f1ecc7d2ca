//! The public networks: names, ids, genesis hashes and fork schedules.

use std::io::Read;

use alloy_primitives::{Address, B256, U256, address, b256};
use flate2::read::GzDecoder;

use super::parameters::{BlobEntry, Config, DaoFork};
use super::spec::ChainSpec;
use super::{Activation, Fork};

/// A public network whose rules are built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    /// Ethereum mainnet.
    Mainnet,
    /// Sepolia test network.
    Sepolia,
    /// Holesky test network.
    Holesky,
    /// Hoodi test network.
    Hoodi,
}

/// Deposit contract of mainnet, also at genesis of hoodi (EIP-6110).
const DEPOSIT_CONTRACT: Address = address!("00000000219ab540356cbb839cbe05303d7705fa");

impl Network {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Mainnet, Self::Sepolia, Self::Holesky, Self::Hoodi];

    /// Lower-case name, as geth's flags and era1 files spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mainnet => "mainnet",
            Self::Sepolia => "sepolia",
            Self::Holesky => "holesky",
            Self::Hoodi => "hoodi",
        }
    }

    /// The network of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|network| network.name() == name)
    }

    /// The network that starts at that block.
    pub fn from_genesis_hash(hash: B256) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|network| network.genesis_hash() == hash)
    }

    /// Chain id (EIP-155).
    pub const fn chain_id(self) -> u64 {
        match self {
            Self::Mainnet => 1,
            Self::Sepolia => 11_155_111,
            Self::Holesky => 17_000,
            Self::Hoodi => 560_048,
        }
    }

    /// Hash of block 0.
    pub const fn genesis_hash(self) -> B256 {
        match self {
            Self::Mainnet => {
                b256!("d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3")
            }
            Self::Sepolia => {
                b256!("25a5cc106eea7138acab33231d7160d69cb777ee0c2c553fcddf5138993e6dd9")
            }
            Self::Holesky => {
                b256!("b5f7f912443c940f21fd611f12828d75b534364ed9e95ca4e307729a4661bde4")
            }
            Self::Hoodi => {
                b256!("bbe312868b376a3001692a646dd2d7d1e4406380dfd86b98aa8a34d1557c971b")
            }
        }
    }

    /// The text of its genesis file, without the rules, which [`spec`](Self::spec) has: facts of go-ethereum's
    /// `core/genesis.go` and `core/genesis_alloc.go`, packed by `scripts/pack-genesis.py`.
    ///
    /// # Panics
    /// Never: the tests unpack all of them.
    pub fn genesis_text(self) -> String {
        let packed: &[u8] = match self {
            Self::Mainnet => include_bytes!("presets/mainnet.json.gz"),
            Self::Sepolia => include_bytes!("presets/sepolia.json.gz"),
            Self::Holesky => include_bytes!("presets/holesky.json.gz"),
            Self::Hoodi => include_bytes!("presets/hoodi.json.gz"),
        };
        let mut text = String::new();
        let read = GzDecoder::new(packed).read_to_string(&mut text);
        read.expect("invariant: packed text is whole (tested)");
        text
    }

    /// Total difficulty from which on proof of stake decides (EIP-3675).
    const fn terminal_total_difficulty(self) -> u128 {
        match self {
            Self::Mainnet => 58_750_000_000_000_000_000_000,
            Self::Sepolia => 17_000_000_000_000_000,
            Self::Holesky | Self::Hoodi => 0,
        }
    }

    /// Number of the first proof-of-stake block.
    pub(super) const fn merge_block(self) -> u64 {
        match self {
            Self::Mainnet => 15_537_394,
            Self::Sepolia => 1_450_409,
            Self::Holesky | Self::Hoodi => 1,
        }
    }

    /// The fork schedule, from the networks' published configurations.
    pub fn spec(self) -> ChainSpec {
        let mut config = Config {
            chain_id: self.chain_id(),
            ..Config::default()
        };
        config.terminal_total_difficulty = Some(U256::from(self.terminal_total_difficulty()));
        config.forks = self.block_forks();
        config.forks.extend(
            self.time_forks()
                .map(|(fork, time)| (fork, Activation::Time(time))),
        );
        config.eip155 = config.forks.iter().find_map(|(fork, at)| match at {
            Activation::Block(block) if *fork == Fork::SpuriousDragon => Some(*block),
            _ => None,
        });
        config.merge_netsplit = (self == Self::Sepolia).then_some(1_735_371);
        if self == Self::Mainnet {
            config.dao = Some(DaoFork {
                block: 1_920_000,
                support: true,
            });
        }
        config.deposit_contract = Some(match self {
            Self::Mainnet | Self::Hoodi => DEPOSIT_CONTRACT,
            Self::Sepolia => address!("7f02c3e3c98b133055b8b348b2ac625669ed295d"),
            Self::Holesky => address!("4242424242424242424242424242424242424242"),
        });
        config.blobs = vec![
            (
                Fork::Cancun,
                BlobEntry {
                    target: 3,
                    max: 6,
                    fraction: 3_338_477,
                },
            ),
            (
                Fork::Prague,
                BlobEntry {
                    target: 6,
                    max: 9,
                    fraction: 5_007_716,
                },
            ),
            (
                Fork::Osaka,
                BlobEntry {
                    target: 6,
                    max: 9,
                    fraction: 5_007_716,
                },
            ),
            (
                Fork::Bpo1,
                BlobEntry {
                    target: 10,
                    max: 15,
                    fraction: 8_346_193,
                },
            ),
            (
                Fork::Bpo2,
                BlobEntry {
                    target: 14,
                    max: 21,
                    fraction: 11_684_671,
                },
            ),
        ];
        let mut spec = ChainSpec::new(config)
            .expect("invariant: the built-in schedules are in order (tested)");
        spec.merge_block = Some(self.merge_block());
        spec
    }

    fn block_forks(self) -> Vec<(Fork, Activation)> {
        let mainnet = [
            (Fork::Homestead, 1_150_000),
            (Fork::TangerineWhistle, 2_463_000),
            (Fork::SpuriousDragon, 2_675_000),
            (Fork::Byzantium, 4_370_000),
            (Fork::Constantinople, 7_280_000),
            (Fork::Petersburg, 7_280_000),
            (Fork::Istanbul, 9_069_000),
            (Fork::MuirGlacier, 9_200_000),
            (Fork::Berlin, 12_244_000),
            (Fork::London, 12_965_000),
            (Fork::ArrowGlacier, 13_773_000),
            (Fork::GrayGlacier, 15_050_000),
        ];
        let block = |number| if self == Self::Mainnet { number } else { 0 };
        // The test networks have the rules of London from the start; only Sepolia's file lists a glacier.
        let kept = mainnet.into_iter().filter(|(fork, _)| match fork {
            Fork::MuirGlacier => matches!(self, Self::Mainnet | Self::Sepolia),
            Fork::ArrowGlacier | Fork::GrayGlacier => self == Self::Mainnet,
            _ => true,
        });
        kept.map(|(fork, number)| (fork, Activation::Block(block(number))))
            .collect()
    }

    fn time_forks(self) -> impl Iterator<Item = (Fork, u64)> {
        let forks = [
            Fork::Shanghai,
            Fork::Cancun,
            Fork::Prague,
            Fork::Osaka,
            Fork::Bpo1,
            Fork::Bpo2,
            Fork::Amsterdam,
        ];
        let times: &'static [u64] = match self {
            Self::Mainnet => &[
                1_681_338_455,
                1_710_338_135,
                1_746_612_311,
                1_764_798_551,
                1_765_290_071,
                1_767_747_671,
            ],
            Self::Sepolia => &[
                1_677_557_088,
                1_706_655_072,
                1_741_159_776,
                1_760_427_360,
                1_761_017_184,
                1_761_607_008,
                1_791_294_816,
            ],
            Self::Holesky => &[
                1_696_000_704,
                1_707_305_664,
                1_740_434_112,
                1_759_308_480,
                1_759_800_000,
                1_760_389_824,
            ],
            Self::Hoodi => &[
                0,
                0,
                1_742_999_832,
                1_761_677_592,
                1_762_365_720,
                1_762_955_544,
            ],
        };
        forks.into_iter().zip(times.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use alloy_hardforks::{EthereumHardfork, ForkCondition};

    use super::*;

    /// The name that alloy-hardforks has for a fork.
    fn their_name(fork: Fork) -> String {
        match fork {
            Fork::TangerineWhistle => "Tangerine".to_owned(),
            fork => format!("{fork:?}"),
        }
    }

    #[test]
    fn schedules_are_those_of_alloy_hardforks() {
        let all: [(Network, Vec<(EthereumHardfork, ForkCondition)>); 4] = [
            (Network::Mainnet, EthereumHardfork::mainnet().to_vec()),
            (Network::Sepolia, EthereumHardfork::sepolia().to_vec()),
            (Network::Holesky, EthereumHardfork::holesky().to_vec()),
            (Network::Hoodi, EthereumHardfork::hoodi().to_vec()),
        ];
        for (network, theirs) in all {
            let condition = |fork: Fork| {
                let name = their_name(fork);
                let found = theirs.iter().find(|(fork, _)| format!("{fork:?}") == name);
                found.map(|(_, condition)| *condition)
            };
            let mut compared = 0;
            for (fork, activation) in network.block_forks() {
                let Activation::Block(block) = activation else {
                    panic!("{network:?} {fork:?}: {activation:?}");
                };
                if let Some(condition) = condition(fork) {
                    assert_eq!(
                        condition,
                        ForkCondition::Block(block),
                        "{network:?} {fork:?}"
                    );
                    compared += 1;
                }
            }
            let times: Vec<(Fork, u64)> = network.time_forks().collect();
            for (fork, time) in &times {
                if let Some(condition) = condition(*fork) {
                    let wanted = ForkCondition::Timestamp(*time);
                    assert_eq!(condition, wanted, "{network:?} {fork:?}");
                    compared += 1;
                }
            }
            assert!(compared >= 12, "{network:?}: {compared} compared");
            for (fork, condition) in &theirs {
                let is_ours = times
                    .iter()
                    .any(|(ours, _)| their_name(*ours) == format!("{fork:?}"));
                assert!(
                    is_ours || !condition.is_timestamp(),
                    "{network:?} lacks {fork:?}"
                );
            }
        }
    }
}

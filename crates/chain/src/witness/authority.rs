//! By whose specification a block is judged: never by one that its witness chose, if the chain is known.

use alloy_consensus::Header;
use alloy_primitives::B256;
use alloy_rlp::Decodable;
use serde_json::Value;

use super::{MptWitness, WitnessProblem};
use crate::genesis::{ChainSpec, Genesis, Network, generated_spec};

/// Whose specification it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// A public network's.
    Network(Network),
    /// That of the chains that `arbor generate` makes.
    Generator,
    /// That of a genesis that the caller gave.
    Genesis,
    /// The witness's own, because the chain is not known. An attacker may have chosen it.
    Witness,
}

/// A specification to judge a block by.
#[derive(Clone, Debug)]
pub struct JudgedBy {
    /// The specification.
    pub spec: ChainSpec,
    /// Whose it is.
    pub authority: Authority,
    /// What the witness's configuration says without effect.
    pub warnings: Vec<String>,
}

impl MptWitness {
    /// Finds the specification to judge the block by: that of `genesis`, else that of the known network with the
    /// witness's chain id, else the configuration in the witness. A configuration in the witness must be the same in
    /// every field.
    ///
    /// # Errors
    /// A witness of another chain than `genesis`, one whose configuration differs, and one of an unknown chain without a
    /// configuration.
    pub fn judged_by(&self, genesis: Option<&Genesis>) -> Result<JudgedBy, WitnessProblem> {
        let generated = generated_spec();
        let mut networks = Network::ALL.into_iter();
        let network = networks.find(|network| network.chain_id() == self.chain_id);
        let known = match (genesis, network) {
            (Some(genesis), _) => Some((self.spec_of(genesis)?, authority_of(genesis))),
            (None, Some(network)) => Some((network.spec(), Authority::Network(network))),
            (None, None) => None,
        };
        let own = self.own_spec(known.as_ref().map(|(spec, _)| spec))?;
        let (own, warnings) = own.unzip();
        let (spec, authority) = match (known, &own) {
            (Some(known), _) => known,
            (None, Some(own)) if *own == generated => (generated, Authority::Generator),
            (None, Some(own)) => (own.clone(), Authority::Witness),
            (None, None) => return Err(WitnessProblem::UnknownChain(self.chain_id)),
        };
        let difference = own.and_then(|own| spec.differences(&own).into_iter().next());
        if let Some(difference) = difference {
            return Err(match authority {
                Authority::Network(network) if genesis.is_none() => WitnessProblem::OtherRules {
                    network: network.name(),
                    difference,
                },
                _ => WitnessProblem::NotOfGenesis(difference),
            });
        }
        let first = match authority {
            Authority::Network(network) => Some(network.genesis_hash()),
            _ => genesis.map(|genesis| genesis.hash),
        };
        if let Some(expected) = first {
            self.check_first(expected)?;
        }
        Ok(JudgedBy {
            spec,
            authority,
            warnings: warnings.unwrap_or_default(),
        })
    }

    /// The specification of [`judged_by`](Self::judged_by) without a genesis.
    ///
    /// # Errors
    /// The errors of `judged_by`.
    pub fn spec(&self) -> Result<ChainSpec, WitnessProblem> {
        Ok(self.judged_by(None)?.spec)
    }

    /// The configuration in the witness, and what it says without effect.
    fn own_spec(
        &self,
        known: Option<&ChainSpec>,
    ) -> Result<Option<(ChainSpec, Vec<String>)>, WitnessProblem> {
        let Some(config) = &self.config else {
            return Ok(None);
        };
        let (spec, warnings) = ChainSpec::from_json(&text_of(config, known))?;
        if spec.chain_id() != self.chain_id {
            return Err(WitnessProblem::ChainId {
                expected: self.chain_id,
                actual: spec.chain_id(),
            });
        }
        Ok(Some((spec, warnings)))
    }

    fn spec_of(&self, genesis: &Genesis) -> Result<ChainSpec, WitnessProblem> {
        match genesis.spec.chain_id() == self.chain_id {
            true => Ok(genesis.spec.clone()),
            false => Err(WitnessProblem::OtherChain {
                expected: genesis.spec.chain_id(),
                actual: self.chain_id,
            }),
        }
    }

    /// Checks that an ancestor numbered 0 is the chain's genesis. Hashes that lead to it are checked elsewhere.
    fn check_first(&self, expected: B256) -> Result<(), WitnessProblem> {
        let oldest = self.ancestor_headers_rlp.last();
        let Some(Ok(header)) = oldest.map(|rlp| Header::decode(&mut &rlp[..])) else {
            return Ok(());
        };
        if header.number == 0 {
            super::same("the genesis's hash", expected, header.hash_slow())?;
        }
        Ok(())
    }
}

/// The text of a configuration. A JSON value rounds a total difficulty of more than 64 bits: one that rounds like the
/// known chain's is taken for it. In a string it is exact.
fn text_of(config: &Value, known: Option<&ChainSpec>) -> String {
    const TOTAL: &str = "terminalTotalDifficulty";
    let exact = match config.get(TOTAL) {
        Some(Value::String(digits)) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
            Some(digits.clone())
        }
        Some(Value::Number(rounded)) if rounded.is_f64() => known
            .and_then(ChainSpec::terminal_total_difficulty)
            .map(|total| total.to_string())
            .filter(|total| total.parse().ok() == rounded.as_f64()),
        _ => None,
    };
    let (Some(exact), Some(fields)) = (exact, config.as_object()) else {
        return config.to_string();
    };
    let others = fields.iter().filter(|(name, _)| *name != TOTAL);
    let others = others.map(|(name, value)| format!(",{}:{value}", Value::from(name.as_str())));
    format!("{{\"{TOTAL}\":{exact}{}}}", others.collect::<String>())
}

/// Whose specification a genesis has: a public network's only if nothing differs.
fn authority_of(genesis: &Genesis) -> Authority {
    let same = |network: &Network| network.spec().differences(&genesis.spec).is_empty();
    let network = genesis.network().filter(same);
    network.map_or(Authority::Genesis, Authority::Network)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::Bytes;
    use serde_json::json;

    use super::*;
    use crate::executor::{BlockError, Rules, check_header};

    /// Mainnet's configuration as geth writes it.
    fn mainnet() -> Value {
        json!({
            "chainId": 1, "homesteadBlock": 1_150_000, "daoForkBlock": 1_920_000, "daoForkSupport": true,
            "eip150Block": 2_463_000, "eip155Block": 2_675_000, "eip158Block": 2_675_000,
            "byzantiumBlock": 4_370_000, "constantinopleBlock": 7_280_000, "petersburgBlock": 7_280_000,
            "istanbulBlock": 9_069_000, "muirGlacierBlock": 9_200_000, "berlinBlock": 12_244_000,
            "londonBlock": 12_965_000, "arrowGlacierBlock": 13_773_000, "grayGlacierBlock": 15_050_000,
            "terminalTotalDifficulty": 58_750_000_000_000_000_000_000.0, "shanghaiTime": 1_681_338_455,
            "cancunTime": 1_710_338_135, "pragueTime": 1_746_612_311, "osakaTime": 1_764_798_551,
            "bpo1Time": 1_765_290_071, "bpo2Time": 1_767_747_671, "ethash": {},
            "depositContractAddress": "0x00000000219ab540356cbb839cbe05303d7705fa",
            "blobSchedule": {
                "cancun": {"target": 3, "max": 6, "baseFeeUpdateFraction": 3_338_477},
                "prague": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5_007_716},
                "osaka": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5_007_716},
                "bpo1": {"target": 10, "max": 15, "baseFeeUpdateFraction": 8_346_193},
                "bpo2": {"target": 14, "max": 21, "baseFeeUpdateFraction": 11_684_671},
            },
        })
    }

    fn witness(config: Option<Value>) -> MptWitness {
        MptWitness {
            chain_id: 1,
            number: 98,
            hash: B256::ZERO,
            pre_state_root: B256::ZERO,
            post_state_root: B256::ZERO,
            receipts_root: B256::ZERO,
            tree: None,
            block_rlp: Bytes::new(),
            ancestor_headers_rlp: Vec::new(),
            state_nodes: Vec::new(),
            codes: Vec::new(),
            config,
            rules: None,
        }
    }

    /// Only the starts of forks were compared, and the rest of the witness's configuration was taken.
    #[test]
    fn every_field_of_a_known_network_is_compared() {
        let judged = witness(Some(mainnet())).judged_by(None).expect("mainnet");
        assert_eq!(judged.authority, Authority::Network(Network::Mainnet));
        assert_eq!(judged.spec, Network::Mainnet.spec());
        for (field, value, named) in [
            (
                "ecip1017Block",
                json!(0),
                "the block reward is that of ecip1017Block 0",
            ),
            (
                "ecip1010PauseBlock",
                json!(0),
                "the difficulty bomb is that of ecip1010PauseBlock 0",
            ),
            (
                "disposalBlock",
                json!(1),
                "disposalBlock 1 instead of Ethereum's",
            ),
            (
                "daoForkSupport",
                json!(false),
                "daoForkBlock is 1920000 (daoForkSupport false)",
            ),
            ("daoForkBlock", Value::Null, "daoForkBlock is not set"),
            (
                "eip155Block",
                json!(0),
                "eip155Block is 0 instead of 2675000",
            ),
            (
                "eip160Block",
                json!(0),
                "eip160Block is 0 instead of not set",
            ),
            (
                "depositContractAddress",
                Value::Null,
                "depositContractAddress is not set",
            ),
            ("blobSchedule", Value::Null, "blobSchedule is ["),
            (
                "terminalTotalDifficulty",
                json!("1"),
                "terminalTotalDifficulty is 1 instead of 58750000000000000000000",
            ),
            (
                "amsterdamTime",
                json!(u32::MAX),
                "Amsterdam starts at time 4294967295 instead of never",
            ),
            ("bpo2Time", Value::Null, "Bpo2 starts never"),
            ("eip2315FBlock", json!(0), ""),
        ] {
            let mut config = mainnet();
            config[field] = value;
            match witness(Some(config)).judged_by(None) {
                Err(error) => assert!(error.to_string().contains(named), "{error}"),
                // A name without a meaning changes nothing: the rules are mainnet's.
                Ok(judged) => assert!(named.is_empty() && !judged.warnings.is_empty(), "{field}"),
            }
        }
    }

    /// A proof-of-stake block numbered 98 held on mainnet, as did one of proof of work after the merge.
    #[test]
    fn numbers_and_not_difficulties_say_where_mainnet_merged() {
        let spec = witness(None).spec().expect("mainnet");
        let check = |number, difficulty: u64| {
            let difficulty = alloy_primitives::U256::from(difficulty);
            let parent = Header {
                number: number - 1,
                difficulty,
                gas_limit: 30_000_000,
                base_fee_per_gas: (number > 12_965_000).then_some(7),
                ..Header::default()
            };
            let (difficulty, parent_hash) = (parent.difficulty, parent.hash_slow());
            let header = Header {
                number,
                parent_hash,
                difficulty,
                timestamp: 1,
                ..parent.clone()
            };
            let rules = Rules::at(&spec, &header, &parent, None);
            check_header(&rules, &header, &parent, parent_hash)
        };
        for (number, difficulty) in [(98, 0), (15_537_393, 0), (15_537_394, 1 << 40)] {
            let refused = check(number, difficulty);
            assert!(
                matches!(refused, Err(BlockError::Difficulty { .. })),
                "{number}: {refused:?}"
            );
        }
    }

    /// The chain of parents ended in a block 0 of whatever content.
    #[test]
    fn a_known_chain_begins_with_its_genesis() {
        let mut witness = witness(None);
        witness.ancestor_headers_rlp = vec![alloy_rlp::encode(Header::default()).into()];
        let error = witness.judged_by(None).expect_err("another genesis");
        assert!(
            error.to_string().starts_with("the genesis's hash is 0x"),
            "{error}"
        );
    }
}

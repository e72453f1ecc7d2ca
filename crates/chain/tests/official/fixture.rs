//! A fixture as its JSON has it.

use std::collections::BTreeMap;
use std::fmt;

use alloy_consensus::Header;
use alloy_primitives::{Address, B64, B256, Bloom, Bytes, U256};
use arbor_chain::genesis::GenesisAccount;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, de};

/// A small chain and what becomes of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fixture {
    pub(crate) network: String,
    genesis_block_header: GenesisHeader,
    pub(crate) pre: BTreeMap<Address, Account>,
    pub(crate) blocks: Vec<Block>,
    /// The hash of the last block of the chain that wins.
    #[serde(rename = "lastblockhash")]
    pub(crate) last_block_hash: B256,
    /// The whole state after that block, or its root.
    pub(crate) post_state: Option<BTreeMap<Address, Account>>,
    pub(crate) post_state_hash: Option<B256>,
    /// What execution-spec-tests say about the network besides its name.
    #[serde(default)]
    pub(crate) config: Config,
}

/// Parameters of a network.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Config {
    /// By the name of the fork that they begin with.
    #[serde(default)]
    pub(crate) blob_schedule: BTreeMap<String, Blobs>,
}

/// The parameters of blobs from a fork on.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Blobs {
    pub(crate) target: U256,
    pub(crate) max: U256,
    pub(crate) base_fee_update_fraction: U256,
}

impl Fixture {
    /// Block 0 with its stated hash.
    pub(crate) fn genesis(&self) -> (Header, B256) {
        let stated = &self.genesis_block_header;
        (stated.header(), stated.hash)
    }

    /// Whether block 0 has the hash of requests that Prague demands (EIP-7685).
    pub(crate) fn has_requests(&self) -> bool {
        self.genesis_block_header.requests_hash.is_some()
    }

    /// The accounts of block 0, ascending.
    pub(crate) fn alloc(&self) -> Vec<GenesisAccount> {
        let accounts = self.pre.iter();
        accounts
            .map(|(address, account)| GenesisAccount {
                address: *address,
                balance: account.balance,
                nonce: account.nonce.to(),
                code: account.code.clone(),
                storage: account
                    .storage()
                    .map(|(slot, value)| (slot.into(), value))
                    .collect(),
            })
            .collect()
    }
}

#[derive(Deserialize)]
pub(crate) struct Account {
    pub(crate) nonce: U256,
    pub(crate) balance: U256,
    pub(crate) code: Bytes,
    storage: BTreeMap<U256, U256>,
}

impl Account {
    /// The slots that are not zero, ascending.
    pub(crate) fn storage(&self) -> impl Iterator<Item = (U256, U256)> {
        let slots = self.storage.iter().map(|(slot, value)| (*slot, *value));
        slots.filter(|(_, value)| !value.is_zero())
    }
}

/// A block to be imported, and what must come of it.
pub(crate) struct Block {
    pub(crate) rlp: Bytes,
    /// Whether the fixture shows its header, as it does of valid blocks alone.
    valid: bool,
    /// Why it is rejected, by the name of a fork, `ALL` or nothing after `expectException`.
    exceptions: BTreeMap<String, String>,
}

/// What must come of a block.
pub(crate) enum Outcome<'a> {
    Valid,
    /// Rejected for this reason, if one is named.
    Invalid(Option<&'a str>),
}

impl Block {
    pub(crate) fn outcome(&self, network: &str) -> Outcome<'_> {
        let named = [network, "", "ALL"].map(|key| self.exceptions.get(key));
        match named.into_iter().flatten().next() {
            Some(exception) => Outcome::Invalid(Some(exception)),
            None if self.valid => Outcome::Valid,
            None => Outcome::Invalid(None),
        }
    }
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Block;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a block with its RLP")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Block, A::Error> {
                let (mut rlp, mut valid, mut exceptions) = (None, false, BTreeMap::new());
                while let Some(name) = map.next_key::<String>()? {
                    if name == "rlp" {
                        rlp = Some(map.next_value()?);
                        continue;
                    }
                    match name.strip_prefix("expectException") {
                        Some(when) => {
                            exceptions.insert(when.to_owned(), map.next_value()?);
                        }
                        None => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                    valid |= name == "blockHeader";
                }
                Ok(Block {
                    rlp: rlp.ok_or_else(|| de::Error::missing_field("rlp"))?,
                    valid,
                    exceptions,
                })
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// The header of block 0 in the fixtures' words.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GenesisHeader {
    hash: B256,
    parent_hash: B256,
    uncle_hash: B256,
    coinbase: Address,
    state_root: B256,
    transactions_trie: B256,
    receipt_trie: B256,
    bloom: Bloom,
    difficulty: U256,
    number: U256,
    gas_limit: U256,
    gas_used: U256,
    timestamp: U256,
    extra_data: Bytes,
    mix_hash: B256,
    nonce: B64,
    base_fee_per_gas: Option<U256>,
    withdrawals_root: Option<B256>,
    blob_gas_used: Option<U256>,
    excess_blob_gas: Option<U256>,
    parent_beacon_block_root: Option<B256>,
    requests_hash: Option<B256>,
}

impl GenesisHeader {
    fn header(&self) -> Header {
        let small = |value: U256| -> u64 { value.to() };
        Header {
            parent_hash: self.parent_hash,
            ommers_hash: self.uncle_hash,
            beneficiary: self.coinbase,
            state_root: self.state_root,
            transactions_root: self.transactions_trie,
            receipts_root: self.receipt_trie,
            logs_bloom: self.bloom,
            difficulty: self.difficulty,
            number: small(self.number),
            gas_limit: small(self.gas_limit),
            gas_used: small(self.gas_used),
            timestamp: small(self.timestamp),
            extra_data: self.extra_data.clone(),
            mix_hash: self.mix_hash,
            nonce: self.nonce,
            base_fee_per_gas: self.base_fee_per_gas.map(small),
            withdrawals_root: self.withdrawals_root,
            blob_gas_used: self.blob_gas_used.map(small),
            excess_blob_gas: self.excess_blob_gas.map(small),
            parent_beacon_block_root: self.parent_beacon_block_root,
            requests_hash: self.requests_hash,
            ..Header::default()
        }
    }
}

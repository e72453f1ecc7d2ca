//! The rules of the chains that `arbor generate` makes.

use std::collections::BTreeMap;

use alloy_eips::eip7840::BlobParams;
use alloy_genesis::ChainConfig;
use alloy_primitives::{Address, U256};

use super::ChainSpec;

/// The chain id of generated chains that are given no other.
pub const GENERATED_CHAIN_ID: u64 = 77_120;

/// The specification of generated chains that are given no other chain id.
pub fn generated_spec() -> ChainSpec {
    let config = generated_config(GENERATED_CHAIN_ID);
    let text = serde_json::to_string(&config).expect("invariant: it is a plain structure");
    let read = ChainSpec::from_json(&text);
    let (spec, _) = read.expect("invariant: it is geth's form, and in order (tested)");
    spec
}

/// The configuration of a generated chain, in geth's form: every fork up to Prague in force from the start.
pub fn generated_config(chain_id: u64) -> ChainConfig {
    ChainConfig {
        chain_id,
        homestead_block: Some(0),
        eip150_block: Some(0),
        eip155_block: Some(0),
        eip158_block: Some(0),
        byzantium_block: Some(0),
        constantinople_block: Some(0),
        petersburg_block: Some(0),
        istanbul_block: Some(0),
        muir_glacier_block: Some(0),
        berlin_block: Some(0),
        london_block: Some(0),
        arrow_glacier_block: Some(0),
        gray_glacier_block: Some(0),
        merge_netsplit_block: Some(0),
        shanghai_time: Some(0),
        cancun_time: Some(0),
        prague_time: Some(0),
        terminal_total_difficulty: Some(U256::ZERO),
        terminal_total_difficulty_passed: true,
        deposit_contract_address: Some(Address::ZERO),
        blob_schedule: BTreeMap::from([
            ("cancun".to_owned(), BlobParams::cancun()),
            ("prague".to_owned(), BlobParams::prague()),
        ]),
        ..Default::default()
    }
}

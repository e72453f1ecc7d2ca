//! The configuration of the fork in force, of the next one and of the last one (EIP-7910).

use std::collections::BTreeMap;

use alloy_consensus::Header;
use alloy_eips::eip2124::ForkHash;
use alloy_eips::eip7840::BlobParams;
use alloy_eips::eip7910::SystemContract;
use alloy_primitives::{Address, B256, Bytes, U64};
use arbor_chain::executor::SpecId;
use arbor_chain::genesis::{Activation, ChainSpec, Genesis};
use serde::Serialize;

use crate::rpc_error::RpcError;

#[derive(Serialize)]
pub(crate) struct Config {
    current: ForkConfig,
    next: Option<ForkConfig>,
    last: Option<ForkConfig>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ForkConfig {
    activation_time: u64,
    blob_schedule: Option<BlobSchedule>,
    chain_id: U64,
    fork_id: Bytes,
    precompiles: BTreeMap<&'static str, Address>,
    system_contracts: BTreeMap<String, Address>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BlobSchedule {
    target: u64,
    max: u64,
    base_fee_update_fraction: u128,
}

/// Precompiled contracts in the order of the forks that brought them, with their addresses' last
/// two bytes and the names of EIP-7910.
const PRECOMPILES: &[(SpecId, u16, &str)] = &[
    (SpecId::FRONTIER, 1, "ECREC"),
    (SpecId::FRONTIER, 2, "SHA256"),
    (SpecId::FRONTIER, 3, "RIPEMD160"),
    (SpecId::FRONTIER, 4, "ID"),
    (SpecId::BYZANTIUM, 5, "MODEXP"),
    (SpecId::BYZANTIUM, 6, "BN254_ADD"),
    (SpecId::BYZANTIUM, 7, "BN254_MUL"),
    (SpecId::BYZANTIUM, 8, "BN254_PAIRING"),
    (SpecId::ISTANBUL, 9, "BLAKE2F"),
    (SpecId::CANCUN, 10, "KZG_POINT_EVALUATION"),
    (SpecId::PRAGUE, 11, "BLS12_G1ADD"),
    (SpecId::PRAGUE, 12, "BLS12_G1MSM"),
    (SpecId::PRAGUE, 13, "BLS12_G2ADD"),
    (SpecId::PRAGUE, 14, "BLS12_G2MSM"),
    (SpecId::PRAGUE, 15, "BLS12_PAIRING_CHECK"),
    (SpecId::PRAGUE, 16, "BLS12_MAP_FP_TO_G1"),
    (SpecId::PRAGUE, 17, "BLS12_MAP_FP2_TO_G2"),
    (SpecId::OSAKA, 0x100, "P256VERIFY"),
];

/// Returns the configuration at the latest block, whose fork goes by time.
///
/// # Errors
/// A latest block from before Shanghai: EIP-7910 has no word for forks by number.
pub(crate) fn fork_config(genesis: &Genesis, latest: &Header) -> Result<Config, RpcError> {
    let spec = &genesis.spec;
    let times = spec.forks().filter_map(|(_, at)| match at {
        Activation::Time(time) => Some(time),
        _ => None,
    });
    let mut times: Vec<u64> = times.collect();
    times.sort_unstable();
    times.dedup();
    let now = latest.timestamp;
    let is_active = |time: &&u64| **time <= now && spec.is_proof_of_stake(latest);
    let Some(current) = times.iter().rev().find(is_active) else {
        return Err(RpcError::server(
            "the latest block is of a fork that begins at a block's number, of which eth_config says nothing (EIP-7910)",
        ));
    };
    let of = |time: u64| fork(genesis, time);
    let last = times.last().filter(|last| *last > current);
    Ok(Config {
        current: of(*current),
        next: times
            .iter()
            .find(|time| *time > current)
            .map(|time| of(*time)),
        last: last.map(|time| of(*time)),
    })
}

fn fork(genesis: &Genesis, time: u64) -> ForkConfig {
    let spec = &genesis.spec;
    let fork = spec.fork_at(u64::MAX, time, true).spec_id();
    let precompiles = PRECOMPILES.iter();
    let precompiles = precompiles.filter(|(since, ..)| fork.is_enabled_in(*since));
    let address = |last: u16| Address::from_word(B256::from(alloy_primitives::U256::from(last)));
    let mut contracts: Vec<(SystemContract, Address)> = Vec::new();
    if fork.is_enabled_in(SpecId::CANCUN) {
        contracts.extend(SystemContract::cancun());
    }
    if fork.is_enabled_in(SpecId::PRAGUE) {
        contracts.extend(SystemContract::prague(spec.deposit_contract()));
    }
    let schedule = |params: BlobParams| BlobSchedule {
        target: params.target_blob_count,
        max: params.max_blob_count,
        base_fee_update_fraction: params.update_fraction,
    };
    ForkConfig {
        activation_time: time,
        blob_schedule: spec.blob_params_at(time).map(schedule),
        chain_id: U64::from(spec.chain_id()),
        fork_id: Bytes::from(fork_hash(genesis.hash, spec, time).0.to_vec()),
        precompiles: precompiles
            .map(|(_, last, name)| (*name, address(*last)))
            .collect(),
        system_contracts: contracts
            .into_iter()
            .map(|(contract, address)| (contract.to_string(), address))
            .collect(),
    }
}

/// Returns the hash of all forks up to a time (EIP-2124, EIP-6122): by numbers first, then by
/// times, each once; none that begins with block 0.
fn fork_hash(genesis: B256, spec: &ChainSpec, until: u64) -> ForkHash {
    let (mut numbers, mut times) = (Vec::new(), Vec::new());
    for (_, at) in spec.forks() {
        match at {
            Activation::Block(number) if number > 0 => numbers.push(number),
            Activation::Time(time) if time > 0 && time <= until => times.push(time),
            _ => {}
        }
    }
    let others = [
        spec.dao_fork().map(|dao| dao.block),
        spec.merge_netsplit_block(),
    ];
    numbers.extend(others.into_iter().flatten().filter(|number| *number > 0));
    numbers.sort_unstable();
    numbers.dedup();
    times.sort_unstable();
    times.dedup();
    let forks = numbers.into_iter().chain(times);
    forks.fold(ForkHash::from(genesis), |hash, fork| hash + fork)
}

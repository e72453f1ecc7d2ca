//! The genesis of a generated chain.

use std::collections::BTreeMap;

use alloy_eips::{eip2935, eip4788, eip7002, eip7251};
use alloy_genesis::{Genesis, GenesisAccount};
use alloy_primitives::{Address, B256, Bytes, U256};

use arbor_chain::genesis::generated_config;

use super::{
    GeneratorSettings,
    contracts::{self, Places, slots},
};

/// Seconds between blocks.
pub(super) const BLOCK_TIME: u64 = 12;
/// Timestamp of the genesis block: 2025-06-01 00:00:00 UTC.
const GENESIS_TIME: u64 = 1_748_736_000;
/// Base fee of the genesis block in wei.
const INITIAL_BASE_FEE: u128 = 1_000_000_000;

/// What every account has at first, in wei: more than any number of transactions can spend.
fn initial_balance() -> U256 {
    U256::from(10u64).pow(U256::from(24))
}

/// What every account has of each token at first.
fn initial_tokens() -> U256 {
    U256::from(10u64).pow(U256::from(27))
}

/// What every pair has of each of its two tokens at first.
fn initial_reserve() -> U256 {
    U256::from(10u64).pow(U256::from(28))
}

/// Builds the genesis: every fork up to Prague active at once, ether and tokens for the accounts,
/// the workload's contracts and the protocol's system contracts.
pub(super) fn genesis(
    settings: &GeneratorSettings,
    accounts: &[Address],
    places: &Places,
) -> Genesis {
    let ether = accounts.iter().map(|address| {
        (
            *address,
            GenesisAccount {
                balance: initial_balance(),
                ..Default::default()
            },
        )
    });
    Genesis {
        config: generated_config(settings.chain_id),
        timestamp: GENESIS_TIME,
        extra_data: Bytes::from_static(b"arbor generate"),
        gas_limit: settings.gas_limit,
        base_fee_per_gas: Some(INITIAL_BASE_FEE),
        alloc: ether
            .chain(system_contracts())
            .chain(workload_contracts(accounts, places))
            .collect(),
        ..Default::default()
    }
}

/// The contracts that blocks call: EIP-4788, EIP-2935, EIP-7002 and EIP-7251.
fn system_contracts() -> [(Address, GenesisAccount); 4] {
    // alloy's constant has two zero bytes after the code that EIP-7251 gives.
    let consolidations = eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_CODE.clone();
    let end = consolidations
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    [
        (
            eip4788::BEACON_ROOTS_ADDRESS,
            eip4788::BEACON_ROOTS_CODE.clone(),
        ),
        (
            eip2935::HISTORY_STORAGE_ADDRESS,
            eip2935::HISTORY_STORAGE_CODE.clone(),
        ),
        (
            eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS,
            eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_CODE.clone(),
        ),
        (
            eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS,
            consolidations.slice(..end),
        ),
    ]
    .map(|(address, code)| (address, contract(code, [])))
}

fn workload_contracts(accounts: &[Address], places: &Places) -> Vec<(Address, GenesisAccount)> {
    let mut contracts = vec![
        (places.wide, contract(contracts::wide_code(), [])),
        (places.factory, contract(contracts::factory_code(), [])),
        (places.deleter, contract(contracts::deleter_code(), [])),
    ];
    for (index, address) in places.pairs.iter().enumerate() {
        let [token0, token1] = places.traded(index);
        let reserve = initial_reserve();
        let storage = [
            (slots::PAIR_TOKEN_0, token0.into_word().into()),
            (slots::PAIR_TOKEN_1, token1.into_word().into()),
            (slots::PAIR_RESERVES, reserve << 128 | reserve),
        ];
        contracts.push((*address, contract(contracts::pair_code(), storage)));
    }
    for (index, address) in places.tokens.iter().enumerate() {
        let traders = places
            .pairs
            .iter()
            .enumerate()
            .filter(|(pair, _)| places.traded(*pair).contains(&places.tokens[index]));
        let holdings: Vec<(Address, U256)> = accounts
            .iter()
            .map(|account| (*account, initial_tokens()))
            .chain(traders.map(|(_, pair)| (*pair, initial_reserve())))
            .collect();
        let supply = holdings.iter().map(|(_, amount)| *amount).sum();
        let balances = holdings
            .into_iter()
            .map(|(owner, amount)| (slots::balance(owner), amount));
        contracts.push((
            *address,
            contract(
                contracts::token_code(),
                balances.chain([(slots::TOKEN_SUPPLY, supply)]),
            ),
        ));
    }
    contracts
}

fn contract(code: Bytes, storage: impl IntoIterator<Item = (U256, U256)>) -> GenesisAccount {
    let storage: BTreeMap<B256, B256> = storage
        .into_iter()
        .map(|(slot, value)| (B256::from(slot), B256::from(value)))
        .collect();
    let storage = if storage.is_empty() {
        None
    } else {
        Some(storage)
    };
    GenesisAccount {
        nonce: Some(1),
        code: Some(code),
        storage,
        ..Default::default()
    }
}

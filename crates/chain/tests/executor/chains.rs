//! Real chains, every block verified.

use std::collections::BTreeMap;

use alloy_consensus::EMPTY_ROOT_HASH;
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use arbor_chain::executor::{MemoryState, OmmerCheck, SpecId};
use arbor_state::StateView;
use serde::Deserialize;

use super::support::{Replay, RootedState, data};

/// Replays a chain up to block `last`, which must be there, and compares every root, those between transactions
/// included.
fn replay(test: &str, name: &str, last: u64) -> Option<MemoryState> {
    let mut replay = Replay::open(data(test, &format!("chains/{name}"))?);
    let mut state = RootedState::new(&replay.genesis);
    assert_eq!(state.root(), replay.genesis.header.state_root, "genesis");
    while let Some(block) = replay
        .next_block()
        .filter(|block| block.block.header.number <= last)
    {
        let header = &block.block.header;
        let asks =
            header.receipts_root != EMPTY_ROOT_HASH && !replay.rules(header).has(SpecId::BYZANTIUM);
        let mut intermediate = asks.then(|| state.clone());
        let roots = intermediate.as_mut().map(|roots| roots as _);
        let output = match replay.execute(&block, &state.flat, roots) {
            Ok(output) => output,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(output.ommers, OmmerCheck::Full);
        assert!(output.receipts_root.is_some());
        state.apply(&output.changes);
        assert_eq!(
            state.root(),
            header.state_root,
            "state root of block {}",
            header.number
        );
        replay.push(&block);
    }
    assert_eq!(replay.parent().0.number, last, "the chain ends early");
    Some(state.flat)
}

#[derive(Deserialize)]
struct HeadState {
    accounts: BTreeMap<String, HeadAccount>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadAccount {
    balance: String,
    nonce: u64,
    code_hash: B256,
    code: Option<Bytes>,
    #[serde(default)]
    storage: BTreeMap<B256, String>,
    address: Option<Address>,
    key: B256,
}

/// Compares with geth's dump of the state after the last block.
fn compare_with_head_state(name: &str, state: &MemoryState) {
    let file = data(name, &format!("chains/{name}/headstate.json")).expect("beside the chain");
    let text = std::fs::read_to_string(file).expect("readable");
    let head: HeadState = serde_json::from_str(&text).expect("dump");
    assert_eq!(state.accounts().count(), head.accounts.len());
    let by_key: BTreeMap<_, _> = state.accounts().map(|(a, _)| (keccak256(a), a)).collect();
    for expected in head.accounts.values() {
        let address = by_key[&expected.key];
        assert!(expected.address.is_none_or(|known| known == address));
        let account = state.account(address).expect("flat").expect("exists");
        assert_eq!(account.balance.to_string(), expected.balance, "{address}");
        assert_eq!(
            (account.nonce, account.code_hash),
            (expected.nonce, expected.code_hash)
        );
        if let Some(code) = &expected.code {
            assert_eq!(&state.code(account.code_hash).expect("code"), code);
        }
        let slots: BTreeMap<_, _> = state
            .slots(address)
            .map(|(s, v)| (B256::from(s), v))
            .collect();
        let expected: BTreeMap<_, _> = expected
            .storage
            .iter()
            .map(|(slot, value)| (*slot, U256::from_str_radix(value, 16).expect("hex")))
            .collect();
        assert_eq!(slots, expected, "storage of {address}");
    }
}

#[test]
fn execution_apis() {
    if let Some(state) = replay("execution_apis", "execution-apis", 54) {
        compare_with_head_state("execution-apis", &state);
    }
}

#[test]
fn geth_ethtest() {
    if let Some(state) = replay("geth_ethtest", "geth-ethtest", 600) {
        compare_with_head_state("geth-ethtest", &state);
    }
}

#[test]
fn hive_sync() {
    replay("hive_sync", "hive-sync", 3000);
}

/// Every fork to Muir Glacier with state tests as transactions.
#[test]
fn condensed_mainnet() {
    replay("condensed_mainnet", "coregeth-foundation-condense-2", 1199);
}

/// The first 16,384 blocks of mainnet: no transactions, 1,972 ommers, real difficulties.
#[test]
fn first_era_of_mainnet() {
    replay("first_era_of_mainnet", "mainnet-0-16383", 16_383);
}

/// The first blocks of a chain with full ones: ERC-20 transfers, swaps, deployments, withdrawals.
#[test]
fn synthetic_swaps() {
    replay("synthetic_swaps", "synthetic-uniswap-2500", 40);
}

#[test]
fn first_blocks_of_sepolia() {
    replay("first_blocks_of_sepolia", "sepolia-0-40959", 40_959);
}

/// The same under the rules of Ethereum Classic, to the end of the chain.
#[test]
fn condensed_classic() {
    replay("condensed_classic", "coregeth-classic-condense", 1467);
}

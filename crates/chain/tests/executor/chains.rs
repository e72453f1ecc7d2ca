//! Real chains, every block verified.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use arbor_chain::executor::{FlatState, OmmerCheck};
use arbor_state::StateView;
use serde::Deserialize;

use super::support::{Replay, RootedState, data};

/// Replays a chain and compares the state root of each of the first `rooted` blocks, and of the last one.
fn replay(test: &str, name: &str, rooted: u64) -> Option<FlatState> {
    let mut replay = Replay::open(data(test, &format!("chains/{name}"))?);
    let mut state = RootedState::new(&replay.genesis);
    assert_eq!(state.root(), replay.genesis.header.state_root, "genesis");
    while let Some(block) = replay.next_block() {
        let header = &block.block.header;
        let number = header.number;
        let mut intermediate = (number <= rooted).then(|| state.clone());
        let roots = intermediate.as_mut().map(|roots| roots as _);
        let output = match replay.execute(&block, &state.flat, roots) {
            Ok(output) => output,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(output.ommers, OmmerCheck::Full);
        state.apply(&output.changes);
        if number <= rooted {
            assert!(output.receipts_root.is_some());
            assert_eq!(
                state.root(),
                header.state_root,
                "state root of block {number}"
            );
        }
        replay.push(&block);
    }
    let (last, _) = replay.parent();
    assert_eq!(
        state.root(),
        last.state_root,
        "state root of the last block, {}",
        last.number
    );
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
fn compare_with_head_state(name: &str, state: &FlatState) {
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
    if let Some(state) = replay("execution_apis", "execution-apis", u64::MAX) {
        compare_with_head_state("execution-apis", &state);
    }
}

#[test]
fn geth_ethtest() {
    if let Some(state) = replay("geth_ethtest", "geth-ethtest", u64::MAX) {
        compare_with_head_state("geth-ethtest", &state);
    }
}

#[test]
fn hive_sync() {
    replay("hive_sync", "hive-sync", 300);
}

/// Every fork to Muir Glacier with state tests as transactions. The naive trie is too slow for all of it: roots
/// are compared past Homestead and the DAO fork, and at the end.
#[test]
fn condensed_mainnet() {
    replay("condensed_mainnet", "coregeth-foundation-condense-2", 75);
}

/// The first 16,384 blocks of mainnet: no transactions, 1,972 ommers, real difficulties.
#[test]
fn first_era_of_mainnet() {
    replay("first_era_of_mainnet", "mainnet-0-16383", 0);
}

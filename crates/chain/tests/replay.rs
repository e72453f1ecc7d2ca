//! What replay does with blocks that do not hold, and with branches.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::ops::ControlFlow;
use std::sync::Arc;

use alloy_primitives::{B256, Bloom};
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::{RecoveredBlock, SignatureRules, prepare};
use arbor_chain::replay::{Replay, ReplayError};
use arbor_chain::source::open_sources;
use arbor_generator::{GeneratorSettings, Preset, generate};
use arbor_state::{Network, State};
use arbor_store::MemoryStore;
use arbor_trees::MPT;
use serde_json::Value;

/// Bytes for accounts and slots used lately.
const NAMES: usize = 100_000;

/// A generated chain of some blocks with transactions, and a database that stands before the last of them.
struct Chain {
    genesis: Genesis,
    blocks: Vec<RecoveredBlock>,
    replay: Replay,
}

fn state(genesis: &Genesis) -> State {
    let network = Network {
        chain_id: genesis.spec.chain_id(),
        genesis_hash: genesis.hash,
    };
    State::open(
        Arc::new(MemoryStore::default()),
        None,
        MPT.tree(),
        network,
        Default::default(),
    )
    .unwrap()
}

fn chain() -> Chain {
    let settings = GeneratorSettings {
        blocks: 12,
        ..Preset::Tiny.settings()
    };
    let folder = tempfile::tempdir().unwrap();
    generate(&settings, folder.path(), |_| ControlFlow::Continue(())).unwrap();
    let genesis = Genesis::from_file(&folder.path().join("genesis.json")).unwrap();
    let mut source = open_sources(&[folder.path().to_owned()]).unwrap();
    source.skip_to(1).unwrap();
    let rules = SignatureRules::new(&genesis.spec);
    let mut blocks = Vec::new();
    while let Some(raw) = source.next_raw().unwrap() {
        blocks.push(prepare(raw, rules).unwrap());
    }
    let mut replay = Replay::new(state(&genesis), &genesis, NAMES).unwrap();
    let (_, before) = blocks.split_last().unwrap();
    for block in before {
        replay.block(block.clone()).unwrap();
    }
    Chain {
        genesis,
        blocks,
        replay,
    }
}

/// Changes the last block, expects it to be rejected and nothing of it to stay, and gives the dump.
fn rejected(chain: &mut Chain, change: impl Fn(&mut RecoveredBlock)) -> (ReplayError, Value) {
    let mut block = chain.blocks.last().unwrap().clone();
    change(&mut block);
    let before = (chain.replay.head(), chain.replay.state().root());
    let error = chain.replay.block(block.clone()).unwrap_err();
    assert_eq!((chain.replay.head(), chain.replay.state().root()), before);
    let dump = error.failure_dump(Some(chain.replay.state())).unwrap();
    assert_eq!(dump["block"], block.block.header.number);
    assert_eq!(dump["hash"], block.hash.to_string());
    assert_eq!(dump["reason"], error.to_string());
    (error, dump)
}

fn length(dump: &Value, part: &str) -> usize {
    dump[part].as_array().map_or(0, Vec::len)
}

/// Only a wrong state root left something to look at; for a wrong receipts root, the commonest sign of a fault in execution, there
/// was nothing.
#[test]
fn every_field_that_execution_gives_is_dumped() {
    let mut chain = chain();
    let good = chain.blocks.last().unwrap().block.header.clone();
    let transactions = chain.blocks.last().unwrap().block.body.transactions.len();
    assert!(transactions > 1);
    type Change = fn(&mut RecoveredBlock);
    let wrong: [(&str, String, Change); 4] = [
        ("stateRoot", good.state_root.to_string(), |b| {
            b.block.header.state_root = B256::ZERO;
        }),
        ("receiptsRoot", good.receipts_root.to_string(), |b| {
            b.block.header.receipts_root = B256::ZERO;
        }),
        ("logsBloom", good.logs_bloom.to_string(), |b| {
            b.block.header.logs_bloom = Bloom::ZERO;
        }),
        ("gasUsed", good.gas_used.to_string(), |b| {
            b.block.header.gas_used -= 1;
        }),
    ];
    for (field, computed, change) in wrong {
        let (_, dump) = rejected(&mut chain, change);
        assert_eq!(dump["field"], field);
        assert_eq!(dump["computed"], computed);
        assert_ne!(dump["header"], dump["computed"]);
        assert_eq!(length(&dump, "receipts"), transactions, "{field}");
        assert!(
            length(&dump, "accounts") > 2 && length(&dump, "nodes") > 2,
            "{field}"
        );
    }
}

#[test]
fn what_came_before_an_invalid_transaction_is_dumped() {
    let mut chain = chain();
    // The last transaction comes from somebody without ether, or with another nonce.
    let (error, dump) = rejected(&mut chain, |block| {
        *block.senders.last_mut().unwrap() = Default::default();
    });
    let transactions = chain.blocks.last().unwrap().block.body.transactions.len();
    assert!(
        error
            .to_string()
            .contains(&format!("transaction {}", transactions - 1))
    );
    assert_eq!(dump["field"], "transactions");
    assert_eq!(dump["header"], Value::Null);
    assert_eq!(length(&dump, "receipts"), transactions - 1);
    assert!(length(&dump, "accounts") > 1 && length(&dump, "nodes") > 1);
}

#[test]
fn a_header_that_does_not_hold_is_dumped_without_execution() {
    let mut chain = chain();
    let (_, dump) = rejected(&mut chain, |block| block.block.header.gas_limit *= 2);
    assert_eq!(dump["field"], "gasLimit");
    assert_eq!(dump["receipts"], Value::Null);
    assert_eq!(dump["nodes"], Value::Null);
}

#[test]
fn replay_goes_back_and_on_again() {
    let mut chain = chain();
    let last = chain.blocks.last().unwrap();
    chain.replay.block(last.clone()).unwrap();
    let end = (chain.replay.head(), chain.replay.state().root());
    chain.replay.rollback(5).unwrap();
    assert_eq!(chain.replay.head(), (5, chain.blocks[4].hash));
    for block in &chain.blocks[5..] {
        chain.replay.block(block.clone()).unwrap();
    }
    assert_eq!((chain.replay.head(), chain.replay.state().root()), end);
    let error = chain.replay.rollback(100).unwrap_err();
    assert!(matches!(error, ReplayError::UnknownBlock(100)), "{error}");
    assert_eq!(chain.replay.head(), end.0);
    // As after opening the database again.
    let state = chain.replay.into_state();
    let again = Replay::new(state, &chain.genesis, NAMES).unwrap();
    assert_eq!(again.head(), end.0);
}

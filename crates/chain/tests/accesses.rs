//! Tests of the accesses of blocks: slots of contracts that a block makes, and a block without witness.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::path::Path;
use std::sync::Arc;

use alloy_consensus::{Header, Signed, TxLegacy};
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256, address, hex, keccak256};
use arbor_chain::executor::{Ancestor, Block, Executor, RecentBlocks, Rules};
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::{RecoveredBlock, SignatureRules, prepare};
use arbor_chain::replay::{Chain, Replay};
use arbor_chain::source::{Position, RawBlock, Transaction};
use arbor_chain::witness::{AccessedBlock, block_accesses};
use arbor_state::{Historical, Network, Settings, State, TreeKind};
use arbor_store::MemoryStore;
use arbor_trees::MPT;
use arbor_trees::eip7864::EIP7864;
use arbor_trees::eip8297::EIP8297;

/// Has a slot, and is destroyed when it is called: SELFDESTRUCT(caller).
const DOOMED: Address = address!("00000000000000000000000000000000000000cc");
/// Passes its calldata as init code to CREATE2 with salt 0.
const FACTORY: Address = address!("00000000000000000000000000000000000000ff");

/// A chain with the rules of Berlin, in which gas may be free.
fn genesis() -> Genesis {
    let genesis = serde_json::json!({
        "config": {
            "chainId": 7, "homesteadBlock": 0, "eip150Block": 0, "eip155Block": 0, "eip158Block": 0,
            "byzantiumBlock": 0, "constantinopleBlock": 0, "petersburgBlock": 0, "istanbulBlock": 0,
            "berlinBlock": 0,
        },
        "difficulty": "0x20000",
        "gasLimit": "0x1000000",
        "alloc": {
            "0x00000000000000000000000000000000000000cc": {
                "balance": "0x0",
                "nonce": "0x1",
                "code": "0x33ff",
                "storage": {
                    "0x0000000000000000000000000000000000000000000000000000000000000001":
                        "0x0000000000000000000000000000000000000000000000000000000000000007",
                },
            },
            "0x00000000000000000000000000000000000000ff": {
                "balance": "0x0",
                "nonce": "0x1",
                "code": "0x36600060003760003660006000f55000",
            },
        },
    });
    Genesis::from_json(&genesis.to_string()).unwrap()
}

/// A call without value. All transactions have the same signature, so each has a sender of its own, whose nonce is 0.
fn call(to: Address, data: &[u8]) -> Transaction {
    let tx = TxLegacy {
        chain_id: None,
        nonce: 0,
        gas_price: 0,
        gas_limit: 1_000_000,
        to: TxKind::Call(to),
        value: U256::ZERO,
        input: Bytes::copy_from_slice(data),
    };
    let signature = Signature::new(U256::ONE, U256::ONE, false);
    Transaction::Legacy(Signed::new_unchecked(tx, signature, B256::ZERO))
}

/// Makes a valid block 1, except for its state root.
fn block(
    genesis: &Genesis,
    then: &Historical<'_>,
    transactions: Vec<Transaction>,
) -> RecoveredBlock {
    let parent = &genesis.header;
    let header = Header {
        parent_hash: genesis.hash,
        number: 1,
        timestamp: parent.timestamp + 13,
        gas_limit: parent.gas_limit,
        ..Header::default()
    };
    let mut block = Block::uncle(header);
    block.body.transactions = transactions;
    let position = Position {
        file: Arc::from(Path::new("made")),
        offset: 0,
        ordinal: 0,
    };
    let rlp = Bytes::from(alloy_rlp::encode(&block));
    let raw = RawBlock::from_export(position, &rlp).unwrap();
    let mut recovered = prepare(raw, SignatureRules::new(&genesis.spec)).unwrap();
    let rules = Rules::at(&genesis.spec, &recovered.block.header, parent, None);
    let mut recent = RecentBlocks::default();
    recent.push(Ancestor {
        hash: genesis.hash,
        header: parent.clone(),
        ommers: Vec::new(),
    });
    let senders = &recovered.senders;
    let output = Executor::new().run(&rules, &recovered.block, senders, then, &recent, None);
    let output = output.unwrap();
    let header = &mut recovered.block.header;
    header.difficulty = rules.difficulty;
    header.transactions_root = recovered.transactions_root;
    header.gas_used = output.gas_used;
    header.receipts_root = output.receipts_root.unwrap();
    header.logs_bloom = output.logs_bloom;
    recovered.hash = header.hash_slow();
    recovered
}

/// The accesses of block 1 with these transactions.
fn accessed(kind: &TreeKind, transactions: Vec<Transaction>) -> AccessedBlock {
    let genesis = genesis();
    let network = Network {
        chain_id: genesis.spec.chain_id(),
        genesis_hash: genesis.hash,
    };
    let tree = (kind.make)(&Settings::default()).unwrap();
    let state = State::open(
        Arc::new(MemoryStore::default()),
        None,
        tree,
        network,
        Default::default(),
    );
    let replay = Replay::new(state.unwrap(), &genesis, 100_000).unwrap();
    let reader = replay.state().reader();
    let head = reader.meta().unwrap().version;
    let then = reader.at(head).unwrap();
    let block = block(&genesis, &then, transactions);
    let found = block_accesses(&then, Chain::of(&genesis), &block, Executor::new());
    found.unwrap()
}

/// Slots of a contract that the block makes are read without asking the state. They had no rows.
#[test]
fn slots_of_a_new_contract_are_accesses() {
    // SLOAD 7, SSTORE 8 := 0, SSTORE 9 := 1; the code is SLOAD 10.
    let init = hex!("60075450600060085560016009556005601a60003960056000f3600a545000");
    let child = FACTORY.create2(B256::ZERO, keccak256(init));
    for kind in [&MPT, &EIP7864] {
        let AccessedBlock {
            accesses, witness, ..
        } = accessed(kind, vec![call(FACTORY, &init), call(child, &[])]);
        assert!(witness.is_some());
        let slots = accesses.accounts[&child].slots.iter();
        let slots: Vec<(u64, bool, bool)> = slots
            .map(|(slot, access)| (slot.to(), access.read, access.changed))
            .collect();
        let expected = [
            (7, true, false),
            (8, true, false),
            (9, true, true),
            (10, true, false),
        ];
        assert_eq!(slots, expected, "{}", kind.name);
    }
}

/// A contract that is destroyed with its storage keeps some trees from making a witness. The accesses need none.
#[test]
fn a_block_without_witness_has_accesses() {
    let of_mpt = accessed(&MPT, vec![call(DOOMED, &[])]);
    assert!(of_mpt.witness.is_some() && of_mpt.without_witness.is_none());
    let destroyed = &of_mpt.accesses.accounts[&DOOMED];
    assert!(destroyed.account.read && destroyed.account.changed);
    assert!(destroyed.slots.is_empty(), "{destroyed:?}");
    for (kind, words) in [
        (&EIP7864, "loses its storage"),
        (&EIP8297, "which another account may have"),
    ] {
        let found = accessed(kind, vec![call(DOOMED, &[])]);
        assert!(found.witness.is_none(), "{}", kind.name);
        let reason = found.without_witness.unwrap();
        assert!(reason.needs_whole_state());
        assert!(reason.to_string().contains(words), "{reason}");
        assert_eq!(found.accesses, of_mpt.accesses, "{}", kind.name);
    }
}

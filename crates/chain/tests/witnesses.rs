//! Real blocks executed over their pre-state witnesses, without any database.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use alloy_eips::eip7928::AccountChanges;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use alloy_rlp::Decodable;
use arbor_chain::executor::{Executor, OmmerCheck};
use arbor_chain::witness::MptWitness;
use arbor_chain::witness::stateless::replay_witness;
use arbor_state::{Account, AccountChange, IntermediateRoots, SlotChange, StateChanges, StateView};
use arbor_verify::mpt::{MissingAccounts, TouchedNames, WitnessState, witness_nodes};

fn files(test: &str) -> Option<Vec<PathBuf>> {
    let folder = arbor_testdata::find(test, "data/witness")?;
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".json.gz"))
        .collect();
    files.sort();
    Some(files)
}

#[test]
fn every_real_block_holds_over_its_witness() {
    let Some(files) = files("every_real_block_holds_over_its_witness") else {
        return;
    };
    // In the whole set of test data, or in the small one.
    assert!(matches!(files.len(), 46 | 4), "{} files", files.len());
    for file in files {
        let witness = MptWitness::from_file(&file).unwrap();
        let reach = witness.reach().unwrap();
        assert!(reach.nodes > 0);
        let spec = witness.spec().unwrap();
        let mut output = replay_witness(&witness, &spec, MissingAccounts::Error, Executor::new());
        if file.to_string_lossy().contains("mainnet-22188088") {
            // A blob transaction's recipient, 0xc83f...3723, is not in this witness: neither its account nor a node that
            // shows its absence. Go-ethereum takes it as absent.
            let message = output.unwrap_err().to_string();
            assert!(
                message.contains("path 22c") && message.contains("lacks node"),
                "{message}"
            );
            output = replay_witness(&witness, &spec, MissingAccounts::Absent, Executor::new());
        }
        let output = output.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        // None of these witnesses has seven ancestors and a block with ommers.
        let ommers = &witness.decode().unwrap().block.block.body.ommers;
        let checked = match ommers.is_empty() {
            true => OmmerCheck::Full,
            false => OmmerCheck::Partial,
        };
        assert_eq!(output.ommers, checked, "{}", file.display());
        assert_eq!(
            output.receipts_root,
            Some(witness.receipts_root),
            "{}",
            file.display()
        );
    }
}

#[test]
fn a_missing_node_is_named_with_its_path() {
    let Some(files) = files("a_missing_node_is_named_with_its_path") else {
        return;
    };
    let file = files
        .iter()
        .find(|file| file.to_string_lossy().contains("mainnet-46147"))
        .unwrap();
    let whole = MptWitness::from_file(file).unwrap();
    let spec = whole.spec().unwrap();
    replay_witness(&whole, &spec, MissingAccounts::Error, Executor::new()).unwrap();
    let mut missed = 0;
    for left_out in 0..whole.state_nodes.len() {
        let mut witness = whole.clone();
        let node = witness.state_nodes.remove(left_out);
        let Err(error) = replay_witness(&witness, &spec, MissingAccounts::Error, Executor::new())
        else {
            continue;
        };
        missed += 1;
        let (message, hash) = (error.to_string(), keccak256(&node).to_string());
        assert!(message.contains(&hash), "{message} does not name {hash}");
        assert!(
            message.contains("path") || message.contains("root node"),
            "{message}"
        );
    }
    assert!(missed > 3, "only {missed} nodes were needed");
}

#[test]
fn a_witness_of_another_block_is_refused() {
    let Some(files) = files("a_witness_of_another_block_is_refused") else {
        return;
    };
    let mut witness = MptWitness::from_file(&files[1]).unwrap();
    let other = MptWitness::from_file(&files[2]).unwrap();
    witness.state_nodes = other.state_nodes;
    assert!(
        witness
            .decode()
            .unwrap_err()
            .to_string()
            .contains("root node")
    );
    witness.pre_state_root = other.pre_state_root;
    assert!(
        witness
            .decode()
            .unwrap_err()
            .to_string()
            .contains("parent's state root")
    );
    witness.block_rlp = other.block_rlp;
    assert!(
        witness
            .decode()
            .unwrap_err()
            .to_string()
            .contains("the block's hash")
    );
}

/// The names and changes of a block access list (EIP-7928), over the state of a witness.
fn touched(
    list: &[AccountChanges],
    state: &WitnessState,
) -> (BTreeMap<Address, BTreeSet<U256>>, StateChanges) {
    let (mut reads, mut changes) = (BTreeMap::new(), StateChanges::default());
    for of in list {
        let old = state.account(of.address).unwrap();
        let mut account = old.unwrap_or(Account {
            nonce: 0,
            balance: U256::ZERO,
            code_hash: KECCAK256_EMPTY,
        });
        if let Some(last) = of.nonce_changes.last() {
            account.nonce = last.new_nonce;
        }
        if let Some(last) = of.balance_changes.last() {
            account.balance = last.post_balance;
        }
        if let Some(last) = of.code_changes.last() {
            account.code_hash = keccak256(&last.new_code);
        }
        let is_empty =
            account.nonce == 0 && account.balance.is_zero() && account.code_hash == KECCAK256_EMPTY;
        let mut change = AccountChange {
            old,
            new: (!is_empty).then_some(account),
            ..AccountChange::default()
        };
        let names: &mut BTreeSet<U256> = reads.entry(of.address).or_default();
        names.extend(&of.storage_reads);
        for slot in &of.storage_changes {
            names.insert(slot.slot);
            let old = state.storage(of.address, slot.slot).unwrap();
            let new = slot.changes.last().unwrap().new_value;
            if old != new {
                change.slots.insert(slot.slot, SlotChange { old, new });
            }
        }
        if change.old != change.new || !change.slots.is_empty() {
            changes.accounts.insert(of.address, change);
        }
    }
    (reads, changes)
}

/// The access list in an SSZ stateless input (EIP-8025): the field before the slot number of the
/// payload, which comes last.
fn access_list(input: &[u8]) -> &[u8] {
    let offset = |bytes: &[u8], at: usize| {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
    };
    let request = &input[offset(input, 0)..offset(input, 4)];
    let payload = &request[offset(request, 0)..offset(request, 4)];
    // Fields of fixed length and offsets take 540 bytes, of which the last 12 are this offset and
    // the slot number.
    &payload[offset(payload, 528)..]
}

/// The nodes of the canonical witness are those that the names of the access list lead through, and
/// the siblings of deleted nodes.
#[test]
fn nodes_of_canonical_witnesses_are_those_of_the_access_list() {
    const TEST: &str = "nodes_of_canonical_witnesses_are_those_of_the_access_list";
    let file = "vectors/eip8025_witness_eest/witnesses.json.gz";
    let Some(file) = arbor_testdata::find(TEST, file) else {
        return;
    };
    let unpacked = flate2::read::GzDecoder::new(std::fs::File::open(file).unwrap());
    let vectors: serde_json::Value = serde_json::from_reader(unpacked).unwrap();
    let bytes = |value: &serde_json::Value| value.as_str().unwrap().parse::<Bytes>().unwrap();
    let (mut valid, mut surplus, mut lacking) = (0, 0, 0);
    for case in vectors["cases"].as_array().unwrap() {
        let nodes = case["witness"]["state"].as_array().unwrap();
        let nodes: BTreeSet<Bytes> = nodes.iter().map(bytes).collect();
        let root: B256 = case["preStateRoot"].as_str().unwrap().parse().unwrap();
        let state = WitnessState::new(root, nodes.iter().cloned(), []);
        let input = bytes(&case["statelessInputBytes"]);
        let list = Vec::<AccountChanges>::decode(&mut access_list(&input)).unwrap();
        if case["valid"] == false {
            let reads = list.iter().all(|of| {
                let slots = of.storage_changes.iter().map(|slot| slot.slot);
                let mut slots = slots.chain(of.storage_reads.iter().copied());
                state.account(of.address).is_ok()
                    && slots.all(|slot| state.storage(of.address, slot).is_ok())
            });
            lacking += usize::from(!reads);
            continue;
        }
        valid += 1;
        let (reads, changes) = touched(&list, &state);
        let after = state.pending_roots().root_after(&changes).unwrap();
        let expected: B256 = case["postStateRoot"].as_str().unwrap().parse().unwrap();
        assert_eq!(after, expected, "{}", case["id"]);
        let names = TouchedNames {
            reads: &reads,
            changes: &changes,
            transactions: &[],
        };
        let needed: BTreeSet<Bytes> = witness_nodes(&state, names).unwrap().into_iter().collect();
        assert!(needed.is_subset(&nodes), "{}", case["id"]);
        if needed != nodes {
            let id = case["id"].as_str().unwrap();
            assert!(id.contains("extra_unused_trie_node"), "{id}");
            surplus += 1;
        }
    }
    assert_eq!((valid, surplus), (154, 1));
    assert!(lacking > 0, "some invalid cases lack a node");
}

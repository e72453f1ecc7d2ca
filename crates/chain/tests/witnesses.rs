//! Real blocks executed over their pre-state witnesses, without any database.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::path::PathBuf;

use alloy_primitives::keccak256;
use arbor_chain::executor::{Executor, OmmerCheck};
use arbor_chain::witness::MptWitness;
use arbor_chain::witness::stateless::replay_witness;
use arbor_verify::mpt::MissingAccounts;

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

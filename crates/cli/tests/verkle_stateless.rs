//! Blocks executed over witnesses of a Verkle tree.

use crate::support::{Folder, roots};
use serde_json::Value;

/// Memory that leaves room for small tables only.
const SMALL: [&str; 2] = ["--memory", "64MiB"];

/// Every block is executed over its witness, whose codes are chunks among the leaves, and leads to the root that the database
/// has. A witness that lacks a leaf, or is of another root, does not hold.
#[test]
fn blocks_are_executed_over_their_witnesses() {
    let folder = Folder::with_chain();
    let words = ["replay", "--db", "db", "chain", "--tree", "verkle"];
    folder.run(&[&words[..], &SMALL].concat()).ok();
    let head = folder.status("db")["block"].as_u64().expect("a number");
    let known = roots(&folder, "db");
    let root_of = |block: u64| known[block as usize].rsplit(' ').next().expect("a root");
    let words = [
        "witness",
        "--db",
        "db",
        "--block",
        "1",
        "--to",
        "latest",
        "--guarded",
        "--out",
        "w",
        "chain",
    ];
    folder.run(&[&words[..], &SMALL].concat()).ok();
    let files: Vec<String> = (1..=head).map(|block| format!("w/{block}.json")).collect();
    let files = files.iter().flat_map(|file| ["--witness", file.as_str()]);
    let words: Vec<&str> = ["replay", "--json"].into_iter().chain(files).collect();
    let judged = folder.run(&words).ok().stdout();
    assert_eq!(judged.lines().count() as u64, head);
    let mut changed = 0;
    for (block, line) in (1..).zip(judged.lines()) {
        let judged: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(judged["rootBefore"], root_of(block - 1));
        assert_eq!(judged["stateRoot"], root_of(block));
        changed += usize::from(root_of(block - 1) != root_of(block));
    }
    assert!(changed > 5);
    let text = std::fs::read_to_string(folder.path(&format!("w/{head}.json"))).expect("read");
    let witness: Value = serde_json::from_str(&text).expect("JSON");
    let refused = |witness: &Value, words: &[&str]| {
        std::fs::write(folder.path("bad.json"), witness.to_string()).expect("written");
        let run = folder.run(&["replay", "--witness", "bad.json"]);
        run.fails_with(&[&["bad.json"], words].concat());
    };
    let mut alone = witness.clone();
    alone.as_object_mut().expect("fields").remove("execution");
    refused(&alone, &["no block to execute", "verify-witness"]);
    let mut elsewhere = witness.clone();
    elsewhere["executionWitness"]["parentStateRoot"] = root_of(0).into();
    refused(&elsewhere, &["its proof is false at root", root_of(0)]);
    let mut other = witness.clone();
    other["header"]["stateRoot"] = root_of(0).into();
    refused(&other, &["state root: the witness says", root_of(0)]);
    let mut no_block = witness.clone();
    no_block["execution"]["blockRlp"] = "0xc0".into();
    refused(&no_block, &["blockRlp"]);
    // A true witness of another account than those that the block touches.
    let address = format!("0x{}", "99".repeat(20));
    let at = (head - 1).to_string();
    let words = ["prove", "--db", "db", &address, "--at", &at];
    let proof = folder.run(&[&words[..], &SMALL].concat()).ok().json();
    let mut lacking = witness.clone();
    lacking["executionWitness"]["stateDiff"] = proof["stateDiff"].clone();
    lacking["executionWitness"]["verkleProof"] = proof["verkleProof"].clone();
    refused(
        &lacking,
        &["witness: account of 0x", "does not have the leaf"],
    );
}

//! Databases whose tree is that of EIP-7864: replays, proofs, witnesses.

use crate::support::{Folder, an_account_of, roots};
use serde_json::Value;

/// Every block is executed over its witness, which leads to the root that the database has. One that
/// is cut, changed or of another root does not hold.
#[test]
fn blocks_are_executed_over_their_witnesses() {
    let folder = Folder::with_chain();
    let replay = [
        "replay", "--db", "db", "chain", "--tree", "eip7864", "--hash", "sha256",
    ];
    folder.run(&replay).ok();
    let head = folder.status("db")["block"].as_u64().expect("a number");
    let known = roots(&folder, "db");
    let root_of = |block: u64| {
        let line = &known[block as usize];
        line.rsplit(' ').next().expect("a root").to_owned()
    };
    let mut changed = 0;
    for block in 1..=head {
        let number = block.to_string();
        let words = [
            "witness", "--db", "db", "--block", &number, "--out", "w.json", "chain",
        ];
        folder.run(&words).ok();
        let judged = folder.run(&["replay", "--witness", "w.json", "--json"]);
        let judged = judged.ok().json();
        assert_eq!(judged["rootBefore"], root_of(block - 1).as_str());
        assert_eq!(judged["stateRoot"], root_of(block).as_str());
        folder.run(&["verify-witness", "w.json"]).ok();
        let text = std::fs::read_to_string(folder.path("w.json")).expect("read");
        let witness: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(witness["tree"]["name"], "eip7864");
        changed += usize::from(witness["preStateRoot"] != witness["postStateRoot"]);
        if block < head {
            continue;
        }
        let refused = |witness: &Value| {
            std::fs::write(folder.path("bad.json"), witness.to_string()).expect("written");
            for command in [&["replay", "--witness"][..], &["verify-witness"]] {
                let run = folder.run(&[command, &["bad.json"]].concat());
                run.fails_with(&["witness: "]);
            }
        };
        let mut none = witness.clone();
        none["stateNodes"] = Value::Array(Vec::new());
        refused(&none);
        let node = witness["stateNodes"][0].as_str().expect("a node");
        let (begin, end) = node.split_at(node.len() - 2);
        let last = if end == "00" { "01" } else { "00" };
        let mut other = witness.clone();
        other["stateNodes"][0] = format!("{begin}{last}").into();
        refused(&other);
        let mut elsewhere = witness.clone();
        elsewhere["preStateRoot"] = root_of(0).into();
        refused(&elsewhere);
    }
    assert!(changed > 5);
}

/// Both revisions and every hash function have roots of their own, over the same accounts. Accounts and slots are proven,
/// present and absent.
#[test]
fn revisions_and_hash_functions_are_trees_of_their_own() {
    let folder = Folder::with_chain();
    let absent = format!("0x{}", "ab".repeat(20));
    let mut seen = Vec::new();
    for (tree, hash) in [
        ("eip7864", "blake3"),
        ("eip7864", "sha256"),
        ("eip7864", "keccak256"),
        ("eip7864-a", "blake3"),
    ] {
        let db = format!("{tree}-{hash}");
        let words = ["replay", "--db", &db, "--tree", tree, "--hash", hash];
        folder
            .run(&[&words[..], &["--check-state", "7", "chain"]].concat())
            .ok();
        folder.run(&["verify", "--db", &db]).ok();
        let status = folder.status(&db);
        assert_eq!(
            (&status["tree"], &status["hash"]),
            (&"eip7864".into(), &hash.into())
        );
        let root = status["stateRoot"].as_str().expect("a root").to_owned();
        assert!(!seen.contains(&root), "{db}");
        let (address, slot) = an_account_of(&folder, &db);
        for names in [&[&*address, &*slot, "0x77"][..], &[&*absent, "0"]] {
            let words = [&["prove", "--db", &db, "--out", "proof.json"], names].concat();
            folder.run(&words).ok();
            // A root does not show which of the two drafts it is of, and a file may say so falsely.
            folder
                .run(&["verify-proof", "proof.json", "--root", &root])
                .fails_with(&[&*format!("--tree {tree}"), "falsely"]);
            let words = ["verify-proof", "proof.json", "--tree", tree, "--root"];
            let check = |root: &str| folder.run(&[&words[..], &[root]].concat());
            check(&root).ok();
            for other in &seen {
                check(other).fails_with(&["proof"]);
            }
        }
        seen.push(root);
    }
    let words = [
        "replay", "--db", "new", "--tree", "eip7864", "--verify", "last", "chain",
    ];
    folder
        .run(&words)
        .fails_with(&["--verify last", "eip7864", "--verify every", "mpt, eip8297"]);
}

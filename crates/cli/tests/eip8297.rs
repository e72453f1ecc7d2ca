//! Databases whose tree is that of EIP-8297: replays, history, proofs, witnesses.

use crate::support::{Folder, Run, roots};
use serde_json::Value;

fn replay(folder: &Folder, db: &str, more: &[&str]) -> Run {
    folder.run(&[&["replay", "--db", db, "chain"], more].concat())
}

const TREE: [&str; 2] = ["--tree", "eip8297"];

#[test]
fn it_keeps_the_state_that_merkle_patricia_keeps() {
    let folder = Folder::with_chain();
    replay(&folder, "mpt", &[]).ok();
    replay(
        &folder,
        "db",
        &[&TREE[..], &["--check-state", "1"]].concat(),
    )
    .ok();
    let dump = |db: &str| {
        let text = folder.run(&["dump", "--db", db]).ok().stdout();
        let mut lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let without_order = |lines: Vec<String>| -> Vec<Value> {
        let lines = lines.iter();
        lines
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    };
    let (expected, found) = (without_order(dump("mpt")), without_order(dump("db")));
    assert_eq!(expected.len(), found.len());
    for account in &expected {
        assert!(found.contains(account), "{account}");
    }
    let status = folder.status("db");
    assert_eq!(
        (&status["tree"], &status["hash"]),
        (&"eip8297".into(), &"blake3".into())
    );
    let header_root = folder.status("mpt")["stateRoot"].clone();
    let verified = folder.run(&["verify", "--db", "db"]).ok().stdout();
    assert!(
        verified.contains(header_root.as_str().expect("a root")),
        "{verified}"
    );
}

/// The root follows from the state: blocks whose changes are added up, other records, one thread,
/// and a database that went back come to the same ones. Another hash function does not.
#[test]
fn its_roots_follow_from_the_state() {
    let folder = Folder::with_chain();
    replay(&folder, "db", &TREE).ok();
    let whole = roots(&folder, "db");
    let head = folder.status("db")["block"].as_u64().expect("a number");
    let root = folder.status("db")["stateRoot"].clone();
    let same = |db: &str, more: &[&str]| {
        replay(&folder, db, &[&TREE[..], more].concat()).ok();
        folder.run(&["verify", "--db", db]).ok();
        assert_eq!(folder.status(db)["stateRoot"], root, "{more:?}");
    };
    same("last", &["--verify", "last", "--retain", "none"]);
    same("alone", &["--threads", "1", "--tree-settings", "levels=8"]);
    same("inner", &["--tree-settings", "levels=1,inner-hashes"]);
    let mut seen = vec![root.clone()];
    for hash in ["sha256", "keccak256"] {
        replay(&folder, hash, &[&TREE[..], &["--hash", hash]].concat()).ok();
        folder.run(&["verify", "--db", hash]).ok();
        let status = folder.status(hash);
        assert_eq!(status["hash"], hash);
        let root = status["stateRoot"].clone();
        assert!(!seen.contains(&root), "{hash}");
        let (address, slot) = crate::support::an_account_of(&folder, hash);
        let words = [
            "prove",
            "--db",
            hash,
            &address,
            &slot,
            "--out",
            "proof.json",
        ];
        folder.run(&words).ok();
        let text = root.as_str().expect("a root");
        folder
            .run(&["verify-proof", "proof.json", "--root", text])
            .ok();
        seen.push(root);
    }
    replay(&folder, "md5", &[&TREE[..], &["--hash", "md5"]].concat()).fails_with(&["md5"]);
    // A database keeps the function that it was made with.
    replay(
        &folder,
        "sha256",
        &[&TREE[..], &["--hash", "blake3"]].concat(),
    )
    .fails_with(&["sha256", "blake3"]);
    let back = (head - 6).to_string();
    folder.run(&["rollback", "--db", "db", "--to", &back]).ok();
    folder.run(&["verify", "--db", "db"]).ok();
    replay(&folder, "db", &[]).ok();
    assert_eq!(roots(&folder, "db"), whole);
    folder.run(&["prune", "--db", "db", "--retain", "2"]).ok();
    folder.run(&["verify", "--db", "db"]).ok();
    replay(
        &folder,
        "wrong",
        &[&TREE[..], &["--tree-settings", "levels=9"]].concat(),
    )
    .fails_with(&["levels"]);
}

/// Every block is executed over its witness, which has what the block needs and leads to the root
/// that the database has. One with a node or the root changed does not hold.
#[test]
fn blocks_are_executed_over_their_witnesses() {
    let folder = Folder::with_chain();
    replay(&folder, "db", &TREE).ok();
    let head = folder.status("db")["block"].as_u64().expect("a number");
    let mut changed = 0;
    for block in 1..=head {
        let number = block.to_string();
        let words = [
            "witness", "--db", "db", "--block", &number, "--out", "w.json", "chain",
        ];
        folder.run(&words).ok();
        folder.run(&["replay", "--witness", "w.json"]).ok();
        folder.run(&["verify-witness", "w.json"]).ok();
        let witness = std::fs::read_to_string(folder.path("w.json")).expect("read");
        let mut witness: Value = serde_json::from_str(&witness).expect("JSON");
        assert_eq!(witness["tree"]["name"], "eip8297");
        changed += usize::from(witness["preStateRoot"] != witness["postStateRoot"]);
        if block == head {
            let nodes = witness["stateNodes"].as_array_mut().expect("nodes");
            nodes.pop();
            std::fs::write(folder.path("short.json"), witness.to_string()).expect("written");
            folder
                .run(&["replay", "--witness", "short.json"])
                .fails_with(&["witness"]);
            witness["tree"]["hash"] = "sha256".into();
            std::fs::write(folder.path("hash.json"), witness.to_string()).expect("written");
            folder
                .run(&["replay", "--witness", "hash.json"])
                .fails_with(&["witness"]);
            witness["tree"]["name"] = "oak".into();
            std::fs::write(folder.path("oak.json"), witness.to_string()).expect("written");
            folder
                .run(&["replay", "--witness", "oak.json"])
                .fails_with(&["\"oak\""]);
        }
    }
    assert!(changed > 5);
    let words = [
        "bench",
        "database",
        "--db",
        "db",
        "chain",
        "--witnesses",
        "4",
    ];
    folder.run(&words).ok();
}

#[test]
fn accounts_and_slots_are_proven() {
    let folder = Folder::with_chain();
    replay(&folder, "db", &TREE).ok();
    let root = folder.status("db")["stateRoot"].clone();
    let root = root.as_str().expect("a root").to_owned();
    let dump = folder.run(&["dump", "--db", "db"]).ok().stdout();
    let line = dump.lines().find(|line| line.contains("\"storage\":{\"0x"));
    let account: Value = serde_json::from_str(line.expect("a contract")).expect("JSON");
    let address = account["address"].as_str().expect("an address").to_owned();
    let absent = format!("0x{}", "ab".repeat(20));
    for (of, slots) in [(&address, &["0", "1", "77"][..]), (&absent, &["0"])] {
        for more in [&[][..], &["--together"]] {
            let words = [&["prove", "--db", "db", of], slots, more].concat();
            let proof = folder.run(&words).ok().stdout();
            std::fs::write(folder.path("proof.json"), proof).expect("written");
            let check = |root: &str| folder.run(&["verify-proof", "proof.json", "--root", root]);
            check(&root).ok();
            check(&format!("0x{}", "11".repeat(32))).fails_with(&["proof"]);
        }
    }
    // As a node answers, without the name of a form.
    let words = ["prove", "--db", "db", &address];
    let proof = folder.run(&words).ok().stdout();
    let mut proof: Value = serde_json::from_str(&proof).expect("JSON");
    proof.as_object_mut().expect("fields").remove("form");
    assert_eq!(proof["proofFormat"], "eip8297");
    std::fs::write(
        folder.path("answer.json"),
        serde_json::json!({"result": proof}).to_string(),
    )
    .expect("written");
    folder
        .run(&["verify-proof", "answer.json", "--root", &root])
        .ok();
}

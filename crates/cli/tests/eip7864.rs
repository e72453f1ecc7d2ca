//! Blocks executed over witnesses of EIP-7864.

mod support;

use serde_json::Value;
use support::{Folder, roots};

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
        assert_eq!(judged.ok().json()["stateRoot"], root_of(block).as_str());
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

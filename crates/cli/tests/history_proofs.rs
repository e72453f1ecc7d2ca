//! `arbor history-proofs` and `replay --history-proofs`: proofs of older states by look-ups.

use serde_json::Value;

use crate::support::Folder;

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Some accounts of the database.
fn accounts(folder: &Folder) -> Vec<String> {
    let dump = folder.run(&words("dump --db plain"));
    let text = dump.ok().stdout();
    let accounts = text.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        Some(line["address"].as_str()?.to_owned())
    });
    accounts.step_by(7).take(2).collect()
}

/// The proofs of some accounts, one of which is absent, at some blocks.
fn proofs(folder: &Folder, db: &str, accounts: &[String]) -> Vec<Value> {
    let absent = "0x00000000000000000000000000000000000abcde".to_owned();
    let mut proofs = Vec::new();
    for block in ["0", "16", "48"] {
        for account in accounts.iter().chain([&absent]) {
            let prove = ["prove", "--db", db, "--at", block, account, "0x0", "0x1"];
            proofs.push(folder.run(&prove).ok().json());
        }
    }
    proofs
}

/// What a command says as JSON.
fn json(folder: &Folder, line: &str) -> Value {
    folder.run(&words(line)).ok().json()
}

/// The first and the last block of which nodes are kept.
fn kept_blocks(folder: &Folder, db: &str) -> Option<[u64; 2]> {
    let status = folder.status(db);
    let kept = status["oldNodes"].as_object()?;
    Some(["oldest", "newest"].map(|which| kept[which].as_u64().expect("a block")))
}

/// Under every tree a database that keeps nodes gives the proofs that one without gives: kept from the beginning, made afterwards, and after
/// a rollback.
#[test]
fn old_proofs_are_those_that_are_rebuilt() {
    let folder = Folder::new();
    folder
        .run(&words("generate --preset tiny --blocks 50 --out chain"))
        .ok();
    let rows = arbor_trees::standard();
    for tree in rows.rows().map(|row| row.name) {
        let replay = |db: &str, flags: &str| {
            let line = format!("replay --db {db} --tree {tree} --retain all {flags} chain");
            folder.run(&words(&line)).ok();
        };
        replay("plain", "");
        replay("kept", "--history-proofs");
        let accounts = accounts(&folder);
        let wanted = proofs(&folder, "plain", &accounts);
        assert_eq!(proofs(&folder, "kept", &accounts), wanted, "{tree}");
        assert_eq!(kept_blocks(&folder, "plain"), None);
        assert_eq!(kept_blocks(&folder, "kept"), Some([0, 50]));

        let made = folder.run(&words("history-proofs --db plain --json"));
        assert_eq!(
            made.ok().json()["blocks"],
            serde_json::json!([0, 50]),
            "{tree}"
        );
        assert_eq!(proofs(&folder, "plain", &accounts), wanted, "{tree}");
        assert_eq!(kept_blocks(&folder, "plain"), Some([0, 50]));
        folder.run(&words("rollback --db kept --to 33")).ok();
        assert_eq!(kept_blocks(&folder, "kept"), Some([0, 33]));
        replay("kept", "");
        assert_eq!(proofs(&folder, "kept", &accounts), wanted, "{tree}");
        for db in ["plain", "kept"] {
            folder.run(&["verify", "--db", db]).ok();
        }

        folder.run(&words("prune --db kept --retain 20")).ok();
        assert_eq!(kept_blocks(&folder, "kept"), Some([30, 50]));
        folder.run(&["verify", "--db", "kept"]).ok();
        let dropped = folder.run(&words("history-proofs --db plain --drop --json"));
        assert_eq!(dropped.ok().json()["blocks"], Value::Null, "{tree}");
        assert_eq!(proofs(&folder, "plain", &accounts), wanted, "{tree}");
        folder.run(&["verify", "--db", "plain"]).ok();
        for db in ["plain", "kept"] {
            std::fs::remove_dir_all(folder.path(db)).expect("removed");
        }
    }
}

/// `status` tells what is kept and about how large it is, and `inspect` counts it.
#[test]
fn kept_nodes_are_shown_and_counted() {
    let folder = Folder::new();
    let chain = "generate --preset tiny --blocks 50 --out chain";
    folder.run(&words(chain)).ok();
    let replay = "replay --db db --retain all --to 40 chain";
    folder.run(&words(replay)).ok();
    let text = || folder.run(&words("status --db db")).ok().stdout();
    assert!(!text().contains("old nodes"), "{}", text());
    let replay = "replay --db db --retain all --history-proofs chain";
    folder.run(&words(replay)).ok();
    assert_eq!(kept_blocks(&folder, "db"), Some([40, 50]));
    let shown = text();
    assert!(
        shown.contains("\nold nodes   blocks 40 to 50, about "),
        "{shown}"
    );
    let made = json(&folder, "history-proofs --db db --json");
    assert_eq!(made["blocks"], serde_json::json!([0, 50]));
    // Of few blocks each is looked at.
    let bytes = folder.status("db")["oldNodes"]["bytes"].as_u64();
    let inspected = json(&folder, "inspect --db db --json");
    let tables = inspected["tables"].as_array().expect("tables");
    let old_nodes = tables.iter().find(|table| table["table"] == "old nodes");
    let old_nodes = old_nodes.expect("old nodes");
    let counted = ["keyBytes", "valueBytes"].map(|of| old_nodes[of].as_u64().expect("bytes"));
    assert_eq!(bytes, Some(counted.iter().sum()));
    let checked = json(&folder, "verify --db db --json");
    assert_eq!(checked["oldNodeRecords"], old_nodes["records"]);
    folder.run(&words("history-proofs --db db --drop")).ok();
    assert_eq!(kept_blocks(&folder, "db"), None);
}

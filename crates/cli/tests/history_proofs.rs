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

        let made = folder.run(&words("history-proofs --db plain --json"));
        assert_eq!(
            made.ok().json()["blocks"],
            serde_json::json!([0, 50]),
            "{tree}"
        );
        assert_eq!(proofs(&folder, "plain", &accounts), wanted, "{tree}");
        folder.run(&words("rollback --db kept --to 33")).ok();
        replay("kept", "");
        assert_eq!(proofs(&folder, "kept", &accounts), wanted, "{tree}");
        for db in ["plain", "kept"] {
            folder.run(&["verify", "--db", db]).ok();
        }

        folder.run(&words("prune --db kept --retain 20")).ok();
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

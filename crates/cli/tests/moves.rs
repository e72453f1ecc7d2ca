//! `arbor replay --convert-to`: a chain that changes its tree while blocks go on.

use crate::support::{Folder, an_account_of};
use serde_json::Value;

const TO: [&str; 6] = ["--convert-to", "eip8297", "--at", "8", "--stride", "3"];

fn dump(folder: &Folder, db: &str) -> Vec<String> {
    let text = folder.run(&["dump", "--db", db]).ok().stdout();
    let mut lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
    lines.sort();
    lines
}

fn replay<'a>(folder: &Folder, db: &'a str, more: &[&'a str]) -> crate::support::Run {
    folder.run(&[&["replay", "--db", db, "chain"], more].concat())
}

fn block(folder: &Folder, db: &str) -> u64 {
    folder.status(db)["block"].as_u64().expect("a number")
}

/// Amid the move everything is read, proven and verified as without it.
#[test]
fn everything_is_read_amid_a_move() {
    let folder = Folder::with_chain();
    replay(&folder, "db", &["--to", "5", "--retain", "all"]).ok();
    replay(
        &folder,
        "db",
        &[&TO[..], &["--to", "12", "--check-state", "1"]].concat(),
    )
    .ok();
    replay(&folder, "plain", &["--to", "12"]).ok();
    let moving = folder.status("db")["moving"].clone();
    assert_eq!(
        (
            &moving["to"],
            &moving["at"],
            &moving["stride"],
            &moving["units"]
        ),
        (&"eip8297".into(), &8.into(), &3.into(), &15.into())
    );
    assert_eq!(moving["lastBlock"], Value::Null);
    assert!(moving["expectedLastBlock"].as_u64() > Some(12), "{moving}");
    let words = folder.run(&["status", "--db", "db"]).ok().stdout();
    assert!(
        words.contains("moves to    eip8297 from block 8 on"),
        "{words}"
    );
    assert_eq!(dump(&folder, "db"), dump(&folder, "plain"));
    let verified = folder.run(&["verify", "--db", "db"]).ok().stdout();
    let header = folder.status("plain")["stateRoot"].clone();
    assert!(
        verified.contains(header.as_str().expect("a root")),
        "{verified}"
    );
    let oracle = ["oracle", "db"];
    folder
        .run(&oracle)
        .fails_with(&["name the tree with --tree"]);
    let listed = folder.run(&[&oracle[..], &["--tree", "mpt"]].concat());
    let listed = listed.ok().stdout();
    assert!(
        listed.contains(header.as_str().expect("a root")),
        "{listed}"
    );
    let (address, slot) = an_account_of(&folder, "plain");
    let get = |db: &str| {
        folder
            .run(&["get", "--db", db, &address, &slot])
            .ok()
            .stdout()
    };
    assert_eq!(get("db"), get("plain"));
    for at in ["7", "8", "12"] {
        folder
            .run(&[
                "prove", "--db", "db", "--at", at, "--out", "proof", &address, &slot,
            ])
            .ok();
        let root = folder.run(&["roots", "--db", "db"]).ok().stdout();
        let root = root
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{at} ")));
        let root = root
            .unwrap_or_else(|| panic!("no root of block {at}"))
            .to_owned();
        let shown = folder.run(&["verify-proof", "proof", "--root", &root]);
        let shown = shown.ok().stdout();
        assert!(shown.contains(&address), "{shown}");
        let is_said = ["(mpt)", "(eip8297)"]
            .iter()
            .any(|tree| shown.contains(tree));
        assert_eq!(is_said, at != "7", "{shown}");
        folder
            .run(&[
                "verify-proof",
                "proof",
                "--root",
                &format!("0x{}", "12".repeat(32)),
            ])
            .fails_with(&[]);
    }
}

/// A block before the move has a witness of the tree before, a block after it one of the tree
/// after; a block amid has one of both, also if it is the first or the last.
#[test]
fn every_block_of_a_move_has_a_witness() {
    let folder = Folder::with_chain();
    for (to, stored) in [("eip8297", 100_000), ("verkle", 100_000), ("eip8297", 3)] {
        let db = format!("{to}-{stored}");
        let stride = stored.to_string();
        let flags = ["--convert-to", to, "--at", "8", "--stride", &stride];
        let kept = ["--to", "12", "--retain", "all"];
        replay(&folder, &db, &[&flags[..], &kept].concat()).ok();
        let shown = |block: &str| {
            let out = format!("{db}-{block}");
            let words = ["witness", "--db", &db, "--block", block, "--out", &out];
            folder.run(&[&words[..], &["chain"]].concat()).ok();
            let shown = folder.run(&["verify-witness", &out, "--json"]);
            shown.ok().json()
        };
        let root = |block: &str| {
            let roots = folder.run(&["roots", "--db", &db]).ok().stdout();
            let begin = format!("{block} ");
            let root = roots.lines().find_map(|line| line.strip_prefix(&begin));
            Value::from(root.unwrap_or_else(|| panic!("no root of block {block}")))
        };
        assert_eq!(shown("7")["stateRoot"], root("6"));
        let first = shown("8");
        assert_eq!(first["rootBefore"], root("7"));
        assert!(first["rootAfter"].is_null() && first["accounts"].as_u64() > Some(0));
        let next = shown("9");
        let before = next.get("rootBefore").or(next.get("stateRoot"));
        assert_eq!(before, Some(&root("8")));
        let is_open = next.get("rootAfter") == Some(&Value::Null);
        assert_eq!(is_open, stored == 3, "{next}");
    }
}

/// Between all families of trees each block amid the move is executed over its witness.
#[test]
fn blocks_amid_a_move_are_executed_over_their_witnesses() {
    let folder = Folder::with_chain();
    let trees = ["mpt", "verkle", "ar16mt", "eip8297", "eip7864"];
    for source in trees {
        for target in trees.into_iter().filter(|target| *target != source) {
            let db = format!("{source}-{target}");
            let flags = ["--tree", source, "--convert-to", target, "--at", "8"];
            let kept = ["--stride", "20", "--to", "12", "--retain", "all"];
            replay(&folder, &db, &[&flags[..], &kept].concat()).ok();
            let status = folder.status(&db);
            let last = status["moving"]["lastBlock"].as_u64().unwrap_or(12).min(12);
            let (out, last) = (format!("{db}-witnesses"), last.to_string());
            let words = ["witness", "--db", &db, "--block", "8", "--to", &last];
            folder
                .run(&[&words[..], &["--out", &out, "chain"]].concat())
                .ok();
            let files: Vec<String> = std::fs::read_dir(folder.path(&out))
                .expect("a folder")
                .map(|file| file.expect("a file").path().display().to_string())
                .collect();
            let files: Vec<&str> = files.iter().map(String::as_str).collect();
            folder.run(&[&["verify-witness"], &files[..]].concat()).ok();
            let judge = ["replay", "--accept-partial", "--json", "--witness"];
            let judged = folder.run(&[&judge[..], &files].concat()).ok().stdout();
            assert_eq!(judged.lines().count(), files.len());
            for line in judged.lines() {
                let block: Value = serde_json::from_str(line).expect("JSON");
                assert_eq!(block["verdict"], "partial", "{db}: {line}");
                let why = "the root after it does not follow from the witness";
                assert!(line.contains(why) && block["stateRoot"].is_null(), "{line}");
            }
        }
    }
}

/// Nothing in the witness of a block amid a move can be changed or left out.
#[test]
fn a_changed_witness_of_a_block_amid_a_move_is_refused() {
    let folder = Folder::with_chain();
    let kept = ["--to", "12", "--retain", "all"];
    replay(&folder, "db", &[&TO[..], &kept].concat()).ok();
    let words = ["witness", "--db", "db", "--block", "10", "--out", "honest"];
    folder.run(&[&words[..], &["chain"]].concat()).ok();
    let text = std::fs::read_to_string(folder.path("honest")).expect("a file");
    let honest: Value = serde_json::from_str(&text).expect("JSON");
    let judge = ["replay", "--accept-partial", "--witness"];
    folder.run(&[&judge[..], &["honest"]].concat()).ok();
    folder
        .run(&["replay", "--witness", "honest"])
        .fails_with(&["verdicts are partial"]);
    // One digit becomes another one.
    let flip = |value: &mut Value, at: usize| {
        let text = value.as_str().expect("text");
        let place = if at < text.len() { at } else { text.len() / 2 };
        let digit = if text.as_bytes()[place] == b'1' {
            "2"
        } else {
            "1"
        };
        let mut changed = text.to_owned();
        changed.replace_range(place..=place, digit);
        *value = Value::from(changed);
    };
    let refused = |change: &dyn Fn(&mut Value), words: &[&str]| {
        let mut file = honest.clone();
        change(&mut file);
        assert_ne!(file, honest);
        std::fs::write(folder.path("changed"), file.to_string()).expect("written");
        folder
            .run(&[&judge[..], &["changed"]].concat())
            .fails_with(words);
    };
    refused(&|file| flip(&mut file["parentStateRoot"], 9), &["make"]);
    refused(&|file| flip(&mut file["hash"], 9), &["the block's hash"]);
    refused(
        &|file| flip(&mut file["execution"]["ancestorHeadersRlp"][0], 80),
        &["an ancestor's hash"],
    );
    for place in [100, 700, 1_100, usize::MAX] {
        refused(&|file| flip(&mut file["execution"]["blockRlp"], place), &[]);
    }
    for tree in ["source", "target"] {
        refused(
            &|file| flip(&mut file["stateProof"][tree]["root"], 9),
            &["make"],
        );
    }
    let accounts = &honest["stateProof"]["source"]["proof"]["accounts"];
    for account in 0..accounts.as_array().expect("accounts").len() {
        refused(
            &|file| {
                let proof = &mut file["stateProof"]["source"]["proof"];
                flip(&mut proof["accounts"][account]["accountProof"][0], 40);
            },
            &["the proof"],
        );
    }
    let names = honest["stateProof"]["names"].as_array().expect("names");
    for number in 0..names.len() {
        let address = names[number]["address"].as_str().expect("an address");
        refused(
            &|file| {
                let names = &mut file["stateProof"]["names"];
                names.as_array_mut().expect("names").remove(number);
            },
            &["says nothing of account", address],
        );
    }
    for number in 0..honest["codes"].as_array().expect("codes").len() {
        refused(&|file| flip(&mut file["codes"][number], 40), &["code"]);
    }
    refused(
        &|file| {
            let entry = serde_json::json!({"address": names[0]["address"]});
            file["stateProof"]["gone"] = serde_json::json!([[entry]]);
        },
        &["make"],
    );
    refused(&|file| file["more"] = Value::Null, &["more"]);
    refused(
        &|file| file["execution"]["tree"]["name"] = "mpt".into(),
        &[],
    );
}

/// The chain ends in the middle of it, goes on later, and arrives; nothing is left of the tree before, and the root is that of an offline conversion.
#[test]
fn a_move_goes_on_later_and_arrives() {
    let folder = Folder::with_chain();
    replay(&folder, "plain", &[]).ok();
    let last = block(&folder, "plain");
    replay(
        &folder,
        "db",
        &[&TO[..], &["--to", "10", "--retain", "2"]].concat(),
    )
    .ok();
    replay(&folder, "db", &["--retain", "2"]).ok();
    assert_eq!(block(&folder, "db"), last);
    assert_eq!(dump(&folder, "db"), dump(&folder, "plain"));
    let status = folder.status("db");
    if status["moving"] == Value::Null {
        assert_eq!(status["tree"], "eip8297");
    }
    folder.run(&["verify", "--db", "db"]).ok();
    // At once.
    let at_once = [
        "--convert-to",
        "eip8297",
        "--at",
        "4",
        "--stride",
        "100000",
        "--retain",
        "1",
    ];
    replay(&folder, "quick", &at_once).ok();
    let status = folder.status("quick");
    assert_eq!(
        (&status["tree"], &status["moving"]),
        (&"eip8297".into(), &Value::Null)
    );
    folder
        .run(&[
            "convert", "--from", "plain", "--to", "offline", "--tree", "eip8297",
        ])
        .ok();
    assert_eq!(status["stateRoot"], folder.status("offline")["stateRoot"]);
    folder.run(&["verify", "--db", "quick"]).ok();
    assert_eq!(dump(&folder, "quick"), dump(&folder, "plain"));
    let inspected = folder
        .run(&["inspect", "--db", "quick", "--json"])
        .ok()
        .json();
    let tables = inspected["tables"].as_array().expect("tables");
    assert!(
        tables
            .iter()
            .all(|table| table["table"] != "accounts since"),
        "{inspected}"
    );
}

/// A database that moves, one that has moved and keeps the tree before, and one that has arrived are copied and converted like any other.
#[test]
fn databases_of_moves_are_copied_and_converted() {
    let folder = Folder::with_chain();
    replay(&folder, "plain", &[]).ok();
    let root = folder.status("plain")["stateRoot"].clone();
    for (db, stride, retain) in [
        ("amid", "3", "all"),
        ("over", "100000", "all"),
        ("arrived", "100000", "1"),
    ] {
        let flags = [
            "--convert-to",
            "eip8297",
            "--at",
            "4",
            "--stride",
            stride,
            "--retain",
            retain,
        ];
        replay(&folder, db, &flags).ok();
        let copied = format!("{db}-copy");
        folder.run(&["backup", "--db", db, "--to", &copied]).ok();
        assert_eq!(
            folder.status(&copied)["stateRoot"],
            folder.status(db)["stateRoot"]
        );
        assert_eq!(dump(&folder, &copied), dump(&folder, "plain"));
        if db == "over" {
            let status = folder.status(db);
            assert_eq!(status["moving"]["targetRoot"], status["stateRoot"]);
        }
        let converted = format!("{db}-converted");
        folder
            .run(&["convert", "--from", db, "--to", &converted, "--tree", "mpt"])
            .ok();
        assert_eq!(folder.status(&converted)["stateRoot"], root, "{db}");
    }
    folder
        .run(&["snapshot", "--db", "amid", "--out", "snapshot"])
        .fails_with(&["moves to another tree"]);
}

/// Back across the beginning and forth again: the same roots.
#[test]
fn a_rollback_crosses_the_beginning() {
    let folder = Folder::with_chain();
    replay(
        &folder,
        "db",
        &[&TO[..], &["--to", "12", "--retain", "all"]].concat(),
    )
    .ok();
    let roots = folder.run(&["roots", "--db", "db"]).ok().stdout();
    for to in ["10", "8", "7", "3"] {
        folder.run(&["rollback", "--db", "db", "--to", to]).ok();
        folder.run(&["verify", "--db", "db"]).ok();
        replay(&folder, "db", &["--to", "12"]).ok();
        assert_eq!(
            folder.run(&["roots", "--db", "db"]).ok().stdout(),
            roots,
            "{to}"
        );
    }
    replay(&folder, "plain", &["--to", "12"]).ok();
    assert_eq!(dump(&folder, "db"), dump(&folder, "plain"));
}

#[test]
fn a_move_is_given_up() {
    let folder = Folder::with_chain();
    replay(
        &folder,
        "db",
        &[&TO[..], &["--to", "12", "--retain", "all"]].concat(),
    )
    .ok();
    let told = folder
        .run(&["replay", "--db", "db", "--convert-abort"])
        .ok()
        .stdout();
    assert!(told.contains("the move to eip8297 is given up"), "{told}");
    let status = folder.status("db");
    assert_eq!(
        (&status["tree"], &status["block"]),
        (&"merkle-patricia".into(), &7.into())
    );
    assert_eq!(status["moving"], Value::Null);
    replay(&folder, "db", &[]).ok();
    replay(&folder, "plain", &[]).ok();
    assert_eq!(
        folder.status("db")["stateRoot"],
        folder.status("plain")["stateRoot"]
    );
    folder
        .run(&["replay", "--db", "db", "--convert-abort"])
        .fails_with(&["moves to no other tree"]);
}

#[test]
fn wrong_moves_are_refused() {
    let folder = Folder::with_chain();
    replay(&folder, "db", &["--to", "8"]).ok();
    let asked = |more: &[&str], words: &[&str]| {
        replay(&folder, "db", more).fails_with(words);
        assert_eq!(block(&folder, "db"), 8, "{more:?}");
    };
    asked(&TO, &["--at 8", "the latest block is 8"]);
    asked(
        &["--convert-to", "mpt", "--at", "10", "--stride", "3"],
        &["--convert-to mpt", "has that tree already"],
    );
    asked(&["--convert-to", "verkle"], &["--at", "--stride"]);
    asked(&["--at", "9"], &["--convert-to"]);
    let none = ["replay", "chain", "--tree", "none"];
    folder
        .run(&[&none[..], &TO].concat())
        .fails_with(&["--convert-to is of no use with --tree none"]);
    asked(
        &[
            "--convert-to",
            "verkle",
            "--convert-hash",
            "blake3",
            "--at",
            "9",
            "--stride",
            "2",
        ],
        &["--convert-to verkle", "blake3"],
    );
    replay(
        &folder,
        "db",
        &[
            "--convert-to",
            "verkle",
            "--at",
            "9",
            "--stride",
            "2",
            "--to",
            "9",
        ],
    )
    .ok();
    replay(
        &folder,
        "db",
        &["--convert-to", "eip7864", "--at", "11", "--stride", "2"],
    )
    .fails_with(&["already moves to verkle from block 9 on, 2 accounts and slots a block"]);
}

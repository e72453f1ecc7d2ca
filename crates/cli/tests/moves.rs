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

/// A block before the move has a witness of the tree before, a block after it one of the tree after; a block amid has none.
#[test]
fn blocks_before_and_after_a_move_have_witnesses() {
    let folder = Folder::with_chain();
    for (to, stored) in [("eip8297", 100_000), ("verkle", 100_000), ("eip8297", 3)] {
        let db = format!("{to}-{stored}");
        let stride = stored.to_string();
        let flags = ["--convert-to", to, "--at", "8", "--stride", &stride];
        let kept = ["--to", "12", "--retain", "all"];
        replay(&folder, &db, &[&flags[..], &kept].concat()).ok();
        let witness = |block: &str, out: &str| {
            let words = ["witness", "--db", &db, "--block", block, "--out", out];
            folder.run(&[&words[..], &["chain"]].concat())
        };
        let (before, after) = (format!("{db}-before"), format!("{db}-after"));
        witness("7", &before).ok();
        folder.run(&["verify-witness", &before]).ok();
        witness("8", "amid").fails_with(&["block 8", "mpt to", to]);
        match stored {
            3 => {
                witness("10", "amid").fails_with(&["block 10", "blocks before the move"]);
            }
            _ => {
                witness("9", &after).ok();
                let root = folder.run(&["roots", "--db", &db]).ok().stdout();
                let root = root.lines().find_map(|line| line.strip_prefix("8 "));
                let root = root.expect("a root of block 8").to_owned();
                let shown = folder.run(&["verify-witness", &after, "--json"]);
                assert!(shown.ok().stdout().contains(&root), "{root}");
            }
        }
    }
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

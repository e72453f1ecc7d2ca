//! Conversions of whole databases on disk, and the replay of the rest of the chain over what they made.

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use support::{Folder, Run, shared};

/// The names of all trees.
fn trees() -> Vec<&'static str> {
    let rows = arbor_trees::standard();
    rows.rows().map(|row| row.name).collect()
}

/// The accounts of a dump by address.
fn accounts(folder: &Folder, db: &str) -> BTreeMap<String, Value> {
    let text = folder.run(&["dump", "--db", db]).ok().stdout();
    let lines = text.lines().skip(1).map(|line| {
        let account: Value = serde_json::from_str(line).expect("a JSON line");
        let address = account["address"].as_str().expect("an address");
        (address.to_owned(), account)
    });
    lines.collect()
}

/// With small tables, which are made quickly.
fn convert(folder: &Folder, from: &str, to: &str, more: &[&str]) -> Run {
    let words = ["convert", "--memory", "64MiB", "--from", from, "--to", to];
    folder.run(&[&words[..], more].concat())
}

fn replay(folder: &Folder, db: &str, chain: &str, more: &[&str]) -> Run {
    let words = ["replay", "--memory", "64MiB", "--db", db, chain];
    folder.run(&[&words[..], more].concat())
}

fn remove(folder: &Folder, dbs: &[&str]) {
    for db in dbs {
        std::fs::remove_dir_all(folder.path(db)).expect("removed");
    }
}

/// Converts the state in the middle of a chain from every tree to every tree and back, and replays the rest of the chain over
/// each.
fn there_and_back(folder: &Folder, chain: &str, middle: u64) {
    replay(folder, "whole", chain, &[]).ok();
    let (head, at_end) = (folder.status("whole"), accounts(folder, "whole"));
    let to = middle.to_string();
    for from in trees() {
        replay(folder, "from", chain, &["--tree", from, "--to", &to]).ok();
        let in_the_middle = accounts(folder, "from");
        for tree in trees() {
            let what = format!("{from} to {tree}");
            convert(folder, "from", "there", &["--tree", tree]).ok();
            convert(folder, "there", "back", &["--tree", from]).ok();
            for db in ["there", "back"] {
                assert_eq!(accounts(folder, db), in_the_middle, "{what}: {db}");
                assert!(!folder.path(db).join("convert").exists(), "{what}: {db}");
            }
            let check = ["--check-state", "1"];
            replay(folder, "there", chain, &check).ok();
            assert_eq!(folder.status("there")["block"], head["block"], "{what}");
            assert_eq!(accounts(folder, "there"), at_end, "{what}");
            folder
                .run(&["verify", "--memory", "64MiB", "--db", "there"])
                .ok();
            remove(folder, &["there", "back"]);
        }
        remove(folder, &["from"]);
    }
}

#[test]
fn every_tree_goes_on_from_every_other_one() {
    let folder = Folder::with_chain();
    there_and_back(&folder, "chain", 6);
}

#[test]
fn a_real_chain_goes_on_under_every_tree() {
    let test = "a_real_chain_goes_on_under_every_tree";
    let Some(chain) = shared("data/chains/geth-ethtest", test) else {
        return;
    };
    there_and_back(&Folder::new(), chain.to_str().expect("a path"), 350);
}

/// The root of AR16MT depends on the order in which leaves were written; a conversion numbers them by address, then slot,
/// whatever the source.
#[test]
fn the_source_does_not_show_in_the_target() {
    let folder = Folder::with_chain();
    let mut made: BTreeMap<&str, Value> = BTreeMap::new();
    for from in trees() {
        replay(&folder, "from", "chain", &["--tree", from]).ok();
        for tree in trees() {
            convert(&folder, "from", "to", &["--tree", tree]).ok();
            let root = folder.status("to")["stateRoot"].clone();
            assert_eq!(made.entry(tree).or_insert_with(|| root.clone()), &root);
            remove(&folder, &["to"]);
        }
        remove(&folder, &["from"]);
    }
}

#[test]
fn dumps_are_converted_from_files_and_pipes() {
    let folder = Folder::with_chain();
    replay(&folder, "db", "chain", &["--to", "6"]).ok();
    let dump = folder.run(&["dump", "--db", "db"]).ok().stdout();
    std::fs::write(folder.path("dump"), &dump).expect("written");
    let packed = std::process::Command::new("gzip")
        .args(["-k", "dump"])
        .current_dir(folder.0.path())
        .status();
    assert!(packed.expect("gzip runs").success());
    let wanted = accounts(&folder, "db");
    for tree in trees() {
        let chain = ["--tree", tree, "--ancestors", "chain", "--at", "6"];
        for from in ["dump", "dump.gz", "-"] {
            let words = ["convert", "--memory", "64MiB", "--from", from, "--to", "to"];
            let words = [&words[..], &chain].concat();
            folder.run_with_input(&words, &dump).ok();
            assert_eq!(accounts(&folder, "to"), wanted, "{tree} from {from}");
            replay(&folder, "to", "chain", &["--check-state", "1"]).ok();
            remove(&folder, &["to"]);
        }
        // Without its chain it can be read and proven, and says what a replay lacks.
        convert(&folder, "dump", "to", &["--tree", tree]).ok();
        assert_eq!(accounts(&folder, "to"), wanted);
        let address = wanted.keys().next().expect("an account");
        folder
            .run(&["prove", "--db", "to", "--memory", "64MiB", address])
            .ok();
        folder
            .run(&["verify", "--db", "to", "--memory", "64MiB"])
            .ok();
        replay(&folder, "to", "chain", &["--tree", tree]).fails_with(&["--ancestors"]);
        remove(&folder, &["to"]);
        let genesis = [
            "--tree",
            tree,
            "--genesis",
            "chain/genesis.json",
            "--at",
            "6",
        ];
        convert(&folder, "dump", "to", &genesis).ok();
        replay(&folder, "to", "chain", &["--tree", tree]).fails_with(&["--ancestors"]);
        remove(&folder, &["to"]);
    }
    let tree = trees()[0];
    let other = ["--tree", tree, "--ancestors", "chain", "--at", "5"];
    convert(&folder, "dump", "to", &other).fails_with(&["the dump has state root", "--at"]);
    assert!(!folder.path("to").exists());
}

/// A false dump was refused at the end, and a replay went on over what it had made, with exit code 0.
#[test]
fn nothing_goes_on_over_a_target_that_is_not_its_source() {
    let folder = Folder::with_chain();
    replay(&folder, "db", "chain", &["--to", "6"]).ok();
    let dump = folder.run(&["dump", "--db", "db"]).ok().stdout();
    let balance = "\"balance\":\"1";
    assert!(dump.contains(balance));
    let false_dump = dump.replacen(balance, "\"balance\":\"2", 1);
    std::fs::write(folder.path("dump"), false_dump).expect("written");
    for tree in trees() {
        let chain = ["--tree", tree, "--ancestors", "chain", "--at", "6"];
        convert(&folder, "dump", "to", &chain).fails_with(&["root"]);
        let told = ["conversion into to is not finished", "delete the folder"];
        replay(&folder, "to", "chain", &["--tree", tree]).fails_with(&told);
        folder
            .run(&["rollback", "--db", "to", "--to", "6"])
            .fails_with(&told);
        remove(&folder, &["to"]);
    }
}

#[test]
fn a_genesis_is_converted() {
    let folder = Folder::with_chain();
    for tree in trees() {
        convert(&folder, "chain/genesis.json", "to", &["--tree", tree]).ok();
        replay(&folder, "to", "chain", &["--check-state", "1"]).ok();
        replay(&folder, "made", "chain", &["--tree", tree]).ok();
        let roots = ["to", "made"].map(|db| folder.status(db)["stateRoot"].clone());
        assert_eq!(accounts(&folder, "to"), accounts(&folder, "made"));
        // AR16MT numbers the leaves of a genesis in the same order.
        assert_eq!(roots[0], roots[1], "{tree}");
        remove(&folder, &["to", "made"]);
    }
}

#[test]
fn an_older_block_is_converted_and_the_source_is_left_alone() {
    let folder = Folder::with_chain();
    let trees = trees();
    replay(&folder, "db", "chain", &["--tree", trees[0]]).ok();
    replay(&folder, "older", "chain", &["--to", "4"]).ok();
    let before = files(&folder.path("db"));
    for tree in trees {
        convert(&folder, "db", "to", &["--tree", tree, "--at", "4"]).ok();
        assert_eq!(folder.status("to")["block"], 4);
        assert_eq!(accounts(&folder, "to"), accounts(&folder, "older"));
        replay(&folder, "to", "chain", &["--check-state", "1"]).ok();
        assert_eq!(accounts(&folder, "to"), accounts(&folder, "db"));
        remove(&folder, &["to"]);
    }
    assert_eq!(files(&folder.path("db")), before);
}

/// All files of a folder and their bytes.
fn files(folder: &Path) -> BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("listed") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => {
                let bytes = std::fs::read(&path).expect("read");
                found.insert(path, bytes);
            }
        }
    }
    found
}

#[test]
fn what_cannot_be_converted_is_refused_before_anything_is_written() {
    let folder = Folder::with_chain();
    replay(&folder, "db", "chain", &[]).ok();
    let tree = trees()[1];
    let refused = |from: &str, to: &str, more: &[&str], why: &[&str]| {
        let words = [&["--tree", tree][..], more].concat();
        convert(&folder, from, to, &words).fails_with(why);
    };
    refused("db", "db", &[], &["db has a database already"]);
    refused("nothing", "to", &[], &["nothing"]);
    refused("chain/chain.rlp", "to", &[], &["no dump"]);
    refused(
        "db",
        "to",
        &["--ancestors", "chain"],
        &["--ancestors is of no use with a database"],
    );
    refused(
        "chain/genesis.json",
        "to",
        &["--at", "3"],
        &["--at 3 is of no use"],
    );
    refused(
        "db",
        "to",
        &["--at", "1000"],
        &["block 1000 is not in the database"],
    );
    assert!(!folder.path("to").exists());
}

//! What a user may name that is no file as it should be, and what reads it all the same.
#![cfg(unix)]

mod support;

use std::fs::{self, File};
use std::process::Command;

use support::{Folder, Run};

/// Puts a FIFO that nobody writes in the place of a file.
fn make_fifo(folder: &Folder, name: &str) {
    let path = folder.path(name);
    if path.exists() {
        fs::remove_file(&path).expect("removed");
    }
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo runs").success());
}

/// A command that is ended if it waits.
fn run(folder: &Folder, line: &str) -> Run {
    let mut command = Command::new("timeout");
    let command = command.args(["60", env!("CARGO_BIN_EXE_arbor")]);
    let command = command.args(line.split(' ')).current_dir(folder.0.path());
    Run(command.output().expect("timeout runs"))
}

/// Each of these waited for ever, or ended in words about bytes.
#[test]
fn what_is_no_regular_file_is_refused_by_name() {
    let folder = Folder::with_chain();
    run(&folder, "replay --db db chain").ok();
    make_fifo(&folder, "fifo");
    for (line, name) in [
        ("replay --db new --genesis chain/genesis.json fifo", "fifo"),
        (
            "replay --db new --genesis chain/genesis.json /dev/null",
            "/dev/null",
        ),
        ("recover --db new fifo", "fifo"),
    ] {
        run(&folder, line).fails_with(&[name, "no regular file"]);
    }
    for (name, line) in [
        ("rules", "replay --db db chain"),
        ("genesis.json", "verify --db db"),
        ("HEAD", "status --db db"),
    ] {
        make_fifo(&folder, &format!("db/{name}"));
        run(&folder, line).fails_with(&[name, "no regular file"]);
        if name == "rules" {
            fs::remove_file(folder.path("db/rules")).expect("removed");
        }
    }
    // What can be written anew is.
    run(&folder, "repair --db db").ok();
    run(&folder, "replay --db db chain").ok();
    run(&folder, "verify --db db").ok();
    // A genesis is read once, which a pipe allows.
    let line = "cat chain/genesis.json | timeout 60 $ARBOR replay --db new --genesis /dev/stdin chain/chain.rlp";
    let mut command = Command::new("sh");
    let command = command.args(["-c", line]).current_dir(folder.0.path());
    let command = command.env("ARBOR", env!("CARGO_BIN_EXE_arbor"));
    Run(command.output().expect("sh runs")).ok();
}

/// They were read into memory whole, as much as there was.
#[test]
fn files_of_absurd_length_are_not_read_whole() {
    let folder = Folder::with_chain();
    run(&folder, "replay --db db chain").ok();
    for (name, line) in [
        ("db/HEAD", "status --db db"),
        ("chain/genesis.json", "replay --db new chain"),
    ] {
        let file = File::options().write(true).open(folder.path(name));
        // A terabyte, which takes no room on the disk.
        file.expect("there").set_len(1 << 40).expect("sparse");
        run(&folder, line).fails_with(&[name, "it has more than"]);
    }
}

/// A database that remembers no block so far back called it "nothing to do" without another word.
#[test]
fn a_chain_that_ends_below_all_that_is_remembered_is_not_said_to_be_the_same() {
    let folder = Folder::new();
    for (name, blocks, txs) in [
        ("long", "450", "1"),
        ("fork", "5", "2"),
        ("late", "280", "2"),
    ] {
        let words = [
            "generate", "--preset", "tiny", "--blocks", blocks, "--txs", txs, "--out", name,
        ];
        folder.run(&words).ok();
    }
    run(&folder, "replay --db db long").ok();
    let unknown = "whether both are of one chain is not known";
    let short = run(&folder, "replay --db db fork");
    let told = short.ok().stderr();
    assert!(
        told.contains("ends at block 5") && told.contains(unknown),
        "{told}"
    );
    run(&folder, "replay --db db late").fails_with(&["block 280", "not of one chain"]);
    let same = run(&folder, "replay --db db long").ok().stderr();
    assert!(!same.contains(unknown), "{same}");
}

/// The first of each was taken and had no effect.
#[test]
fn flags_without_effect_are_refused() {
    let folder = Folder::with_chain();
    for flag in [
        "--write-back 5MiB",
        "--retain 5",
        "--durable",
        "--compact",
        "--verify last",
    ] {
        let line = format!("replay --tree none {flag} chain");
        run(&folder, &line).fails_with(&[flag.split(" 5").next().unwrap(), "--tree none"]);
    }
    run(&folder, "replay --db db --assume-absent chain")
        .fails_with(&["--assume-absent", "--witness"]);
    assert!(!folder.path("db").exists());
}

/// What had been asked for was forgotten without a word, as long as there was no block.
#[test]
fn other_rules_for_a_database_without_blocks_are_told() {
    let folder = Folder::with_chain();
    run(&folder, "replay --db db --evm384 v7 --to 0 chain").ok();
    let same = run(&folder, "replay --db db --evm384 v7 --to 0 chain");
    assert!(!same.ok().stderr().contains("asked for before"));
    for (flags, told) in [
        ("--evm384 setmod --to 0 ", "replaying with --evm384 setmod "),
        ("", "replaying without --gas and --evm384; "),
    ] {
        let other = run(&folder, &format!("replay --db db {flags}chain"));
        let stderr = other.ok().stderr();
        assert!(
            stderr.contains(told) && stderr.contains("what was asked for before, with --evm384"),
            "{stderr}"
        );
    }
    let rules = fs::read_to_string(folder.path("db/rules"));
    assert_eq!(rules.expect("remembered"), "\n");
}

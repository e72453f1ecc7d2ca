//! Chains over a large state, and the databases that comparisons load it into: refusals, damage, and several processes at once.

use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Folder, Run, copy};

/// The words that make a small state in `state`, with further ones.
const STATE: [&str; 5] = ["generate", "--out", "state", "--state", "accounts=500"];
const SMALL: [&str; 6] = ["--blocks", "3", "--txs", "10", "--accounts", "40"];

fn generate(folder: &Folder) -> Run {
    folder.run(&[&STATE[..], &SMALL].concat())
}

/// The words of a comparison over `state` into a folder.
fn compare(out: &str) -> Vec<&str> {
    let words = "compare --trees mpt,eip8297 --state state --workload read --no-survey --repeat 1 --threads 1 --out";
    let words: Vec<&str> = words.split(' ').collect();
    [&words[..], &[out]].concat()
}

#[test]
fn one_comparison_at_a_time_loads_a_state() {
    let folder = Folder::new();
    generate(&folder).ok();
    // A load of another process is under way.
    fs::create_dir_all(folder.path("state/databases/mpt.unfinished")).expect("made");
    let under_way = folder.path("state/databases/mpt.unfinished/half");
    fs::write(&under_way, "a half").expect("written");
    let lock = File::create(folder.path("state/databases/LOCK")).expect("made");
    lock.lock().expect("locked");
    folder.run(&compare("a")).fails_with(&[
        "another arbor compare loads a state into state/databases",
        "give the same command again",
    ]);
    assert!(under_way.exists(), "the other's load is left alone");
    // It was killed: its load is begun again.
    drop(lock);
    let loaded = folder.run(&compare("a")).ok().stderr();
    assert_eq!(loaded.matches("loading the state").count(), 2, "{loaded}");
    assert!(!folder.path("state/databases/mpt.unfinished").exists());
    // With all databases there, nobody's lock matters.
    let lock = File::open(folder.path("state/databases/LOCK")).expect("there");
    lock.lock().expect("locked");
    folder.run(&compare("b")).ok();
}

/// The second removed the folder that the first was loading into.
#[test]
fn of_two_comparisons_at_once_neither_spoils_the_other() {
    let folder = Folder::new();
    generate(&folder).ok();
    let start = |out: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_arbor"));
        command.args(compare(out)).current_dir(folder.0.path());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().expect("the binary runs")
    };
    let first = start("a");
    let begin = Instant::now();
    while !folder.path("state/databases/mpt.unfinished").exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "no load");
        std::thread::sleep(Duration::from_millis(1));
    }
    let second = start("b");
    let [first, second] = [first, second].map(|child| Run(child.wait_with_output().expect("ends")));
    first.ok();
    match second.0.status.success() {
        true => assert!(!second.stderr().contains("loading the state")),
        false => drop(second.fails_with(&["another arbor compare loads a state"])),
    }
    folder.run(&compare("b")).ok();
    for tree in ["mpt", "eip8297"] {
        let db = format!("state/databases/{tree}");
        folder.run(&["verify", "--db", &db]).ok();
    }
}

#[test]
fn a_chain_that_is_not_whole_is_not_compared() {
    let folder = Folder::new();
    generate(&folder).ok();
    let chain = folder.path("state/read/chain.rlp");
    let whole = fs::read(&chain).expect("a chain");
    // As an interrupted run leaves it, with a last block that is cut short.
    fs::write(&chain, &whole[..whole.len() - 100]).expect("written");
    folder.run(&compare("a")).fails_with(&[
        "--state state",
        "state/read/chain.rlp",
        "the file ends inside a block",
        "the `arbor generate --state` that made state/read makes it whole",
    ]);
    generate(&folder).ok();
    assert_eq!(fs::read(&chain).expect("a chain"), whole);
    let longer = [&STATE[..], &["--blocks", "5"], &SMALL[2..]].concat();
    folder.run(&longer).ok();
    let longest = fs::read(&chain).expect("a chain");
    fs::write(&chain, &whole).expect("written");
    folder.run(&compare("a")).fails_with(&[
        "--state state",
        "the chain has 3 of its 5 blocks",
        "arbor generate --state",
    ]);
    // The state that the other chains have left is gone: it is made again.
    folder.run(&longer).ok();
    assert_eq!(fs::read(&chain).expect("a chain"), longest);
    folder.run(&compare("a")).ok();
}

#[test]
fn chains_over_a_state_are_of_that_state_alone() {
    let folder = Folder::new();
    generate(&folder).ok();
    copy(&folder.path("state"), &folder.path("whole"));
    let genesis = folder.path("state/read/genesis.json");
    let text = fs::read(&genesis).expect("a genesis");
    // A damaged genesis is written again.
    for damaged in [&text[..text.len() / 2], b""] {
        fs::write(&genesis, damaged).expect("written");
        folder
            .run(&compare("a"))
            .fails_with(&["state/read/genesis.json", "makes it whole"]);
        generate(&folder).ok();
        assert_eq!(fs::read(&genesis).expect("a genesis"), text);
    }
    // A chain over another state does not get among these, though its own folder is gone.
    fs::remove_dir_all(folder.path("state/read")).expect("removed");
    let other = [&STATE[..4], &["accounts=600"], &SMALL].concat();
    folder.run(&other).fails_with(&[
        "state/write",
        "over a state of another size",
        "the same --state, or use another folder",
    ]);
    let other = [&STATE[..4], &["accounts=500,contract=9"], &SMALL].concat();
    folder
        .run(&other)
        .fails_with(&["over a state of another size"]);
    assert!(!folder.path("state/read").exists());
    generate(&folder).ok();
    for file in ["read/genesis.json", "read/chain.rlp", "erc20/chain.rlp"] {
        let [now, before] = ["state", "whole"].map(|state| fs::read(folder.path(state).join(file)));
        assert!(now.expect("read") == before.expect("read"), "{file}");
    }
}

/// The slots of a large contract are there under each tree, whose check compares them with the state root of the genesis.
#[test]
fn a_state_has_one_large_contract() {
    let folder = Folder::new();
    let words = [&STATE[..4], &["accounts=500,contract=3K"], &SMALL].concat();
    let made = folder.run(&words).ok().stdout();
    assert!(made.contains("one of them with 3000"), "{made}");
    let words = compare("a")
        .join(" ")
        .replace("mpt,eip8297", "mpt,eip8297,eip7864,verkle,ar16mt");
    let words = words.replace("workload read", "workload write");
    folder.run(&words.split(' ').collect::<Vec<_>>()).ok();
    let slots = |tree: &str| {
        let db = format!("state/databases/{tree}");
        let checked = folder.run(&["verify", "--db", &db, "--json"]).ok().stdout();
        let checked: Value = serde_json::from_str(&checked).expect("JSON");
        checked["slots"].as_u64().expect("a number")
    };
    let all = slots("mpt");
    assert!(all >= 2 * 499 + 3_000, "{all}");
    assert_eq!(slots("eip8297"), all);
    assert_eq!(slots("verkle"), all);
}

#[test]
fn hostile_words_are_refused_and_leave_nothing() {
    let folder = Folder::new();
    for (size, said) in [
        ("accounts=0", "not a number from 1 to"),
        ("accounts=-1", "not a number from 1 to"),
        ("accounts=4KK", "not a number from 1 to"),
        ("accounts=K", "not a number from 1 to"),
        ("accounts=99999999999999999999", "not a number from 1 to"),
        ("accounts=18446744073709551615G", "not a number from 1 to"),
        ("accounts=4295M", "not a number from 1 to"),
        ("accounts=1,accounts=2", "accounts=N is there twice"),
        (
            "accounts=1,contract=2,contract=2",
            "contract=N is there twice",
        ),
        ("contract=5", "accounts=N is missing"),
        ("accounts=1,contract=0", "not a number from 1 to"),
        (
            "accounts=1,contract=21M",
            "contract=21000000 is above 20000000",
        ),
        ("", "'' is not accounts=N, slots=2 or contract=N"),
        (
            "accounts=4G",
            "give fewer accounts or slots, or a folder on another disk",
        ),
    ] {
        let words = ["generate", "--out", "state", "--state", size];
        folder.run(&words).fails_with(&["--state", said]);
    }
    let one = [&STATE[..4], &["accounts=1K"], &["--accounts", "1"]].concat();
    folder
        .run(&one)
        .fails_with(&["--accounts: 1 is not within 2 to"]);
    let many = [&STATE[..4], &["accounts=1K"], &["--txs", "10001"]].concat();
    folder.run(&many).fails_with(&["--txs: 10001"]);
    assert!(!folder.path("state/read").exists());
    fs::write(folder.path("file"), "").expect("written");
    let file = [&["generate", "--out", "file"], &STATE[3..], &SMALL].concat();
    folder
        .run(&file)
        .fails_with(&["file: there is a file of that name", "use another name"]);
    // The smallest of all.
    let least = [&STATE[..4], &["accounts=1"], &SMALL].concat();
    folder.run(&least).ok();
    folder.run(&compare("least")).ok();
    let unknown = compare("a").join(" ").replace("read", "reads");
    let unknown: Vec<&str> = unknown.split(' ').collect();
    folder
        .run(&unknown)
        .fails_with(&["there is no workload 'reads', only read, write, mixed, erc20"]);
    fs::remove_dir_all(folder.path("state/databases")).expect("removed");
    fs::write(folder.path("state/databases"), "").expect("written");
    folder.run(&compare("a")).fails_with(&["state/databases"]);
}

/// Kills and full disks amid the making of the state had left one that every further call refused.
#[test]
fn a_state_whose_making_was_killed_is_made_again() {
    let folder = Folder::new();
    let large = |out| ["generate", "--out", out, "--state", "accounts=200K"];
    let words = [&large("killed")[..], &SMALL].concat();
    let mut command = Command::new(env!("CARGO_BIN_EXE_arbor"));
    command.args(&words).current_dir(folder.0.path());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary runs");
    let begin = Instant::now();
    // The store is there, and the state is not yet.
    while !folder.path("killed/read/.state/store/version").exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "no state");
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(300));
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(!folder.path("killed/write").exists(), "it was still at it");
    folder.run(&words).ok();
    folder
        .run(&[&large("undisturbed")[..], &SMALL].concat())
        .ok();
    for file in ["read/genesis.json", "read/chain.rlp", "erc20/chain.rlp"] {
        let [now, before] =
            ["killed", "undisturbed"].map(|out| fs::read(folder.path(out).join(file)));
        assert!(now.expect("read") == before.expect("read"), "{file}");
    }
}

#[test]
fn a_database_of_another_state_is_not_begun_with() {
    let folder = Folder::new();
    generate(&folder).ok();
    folder.run(&compare("a")).ok();
    let mpt = folder.path("state/databases/mpt");
    let remedy = "state/databases/mpt is not the database of this state: remove it";
    // The chains were made again over another state.
    copy(&folder.path("state"), &folder.path("kept"));
    for load in ["read", "write", "mixed", "erc20"] {
        fs::remove_dir_all(folder.path("state").join(load)).expect("removed");
    }
    let other = [&STATE[..4], &["accounts=600"], &SMALL].concat();
    folder.run(&other).ok();
    folder.run(&compare("b")).fails_with(&[remedy]);
    fs::remove_dir_all(folder.path("state")).expect("removed");
    copy(&folder.path("kept"), &folder.path("state"));
    // Of a damaged one not only the copy is named.
    let tables = fs::read_dir(mpt.join("fjall/keyspaces/1/tables")).expect("listed");
    let table = tables.flatten().next().expect("a table").path();
    fs::write(table, "short").expect("written");
    folder.run(&compare("c")).fails_with(&[
        "is damaged",
        "its database was a copy of state/databases/mpt",
    ]);
    fs::remove_dir_all(&mpt).expect("removed");
    fs::write(&mpt, "").expect("written");
    folder.run(&compare("d")).fails_with(&[remedy]);
    fs::remove_file(&mpt).expect("removed");
    folder.run(&compare("d")).ok();
}

#[cfg(unix)]
#[test]
fn one_process_at_a_time_makes_chains_in_a_folder() {
    let folder = Folder::new();
    generate(&folder).ok();
    let chain = fs::read(folder.path("state/read/chain.rlp")).expect("a chain");
    for (locked, words) in [
        ("state", [&STATE[..], &SMALL].concat()),
        ("state/read", [&STATE[..], &SMALL].concat()),
        (
            "plain",
            vec!["generate", "--preset", "tiny", "--out", "plain"],
        ),
    ] {
        fs::create_dir_all(folder.path(locked)).expect("made");
        let lock = File::open(folder.path(locked)).expect("a folder");
        lock.lock().expect("locked");
        let said = format!("{locked}: another process makes a chain there: wait until it ends");
        folder.run(&words).fails_with(&[&said]);
        drop(lock);
        folder.run(&words).ok();
    }
    assert_eq!(
        fs::read(folder.path("state/read/chain.rlp")).expect("a chain"),
        chain
    );
}

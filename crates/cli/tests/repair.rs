//! `arbor repair`: a lost, damaged or older HEAD, and what must not become one.

use crate::support::{Folder, copy, flip};
use arbor_store::{Reader, Store, Table, Write};
use arbor_store_fjall::FjallStore;

#[test]
fn a_lost_or_damaged_head_is_written_anew() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let before = folder.status("db");
    let head = folder.path("db/HEAD");
    let whole = std::fs::read(&head).expect("HEAD");
    let repair = ["repair", "--db", "db"];
    let nothing = folder.run(&repair).ok().stdout();
    assert!(nothing.contains("HEAD is whole: block 12"), "{nothing}");

    std::fs::remove_file(&head).expect("removed");
    folder
        .run(&["status", "--db", "db"])
        .fails_with(&["has a fjall store, but no HEAD file", "arbor repair"]);
    folder.run(&["replay", "--db", "db", "chain"]).fails_with(&[
        "HEAD",
        "there is none",
        "arbor repair --db db",
    ]);
    let wrote = folder.run(&repair).ok().stdout();
    assert!(wrote.contains("is not known any more"), "{wrote}");
    assert_eq!(std::fs::read(&head).expect("HEAD"), whole);
    flip(&head, whole.len() / 2);
    folder.run(&["verify", "--db", "db"]).fails_with(&["HEAD"]);
    folder.run(&repair).ok();
    for field in ["block", "blockHash", "stateRoot", "genesis"] {
        assert_eq!(folder.status("db")[field], before[field]);
    }
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    folder.run(&["verify", "--db", "db"]).ok();
    folder
        .run(&["repair", "--db", "elsewhere"])
        .fails_with(&["elsewhere", "no store"]);
    assert!(!folder.path("elsewhere").exists());
}

#[test]
fn repair_takes_an_older_store_only_if_told_to() {
    let folder = Folder::with_chain();
    let replay = |to| folder.run(&["replay", "--db", "db", "--to", to, "chain"]);
    replay("5").ok();
    copy(&folder.path("db/fjall"), &folder.path("backup"));
    replay("8").ok();
    std::fs::remove_dir_all(folder.path("db/fjall")).expect("removed");
    std::fs::rename(folder.path("backup"), folder.path("db/fjall")).expect("put back");
    let why = ["older", "--accept-store"];
    folder.run(&["repair", "--db", "db"]).fails_with(&why);
    folder.run(&["repair", "--db", "db", "--accept-store"]).ok();
    assert_eq!(folder.status("db")["block"], 5);
    // A HEAD that lags behind, as a crash may leave it, follows the store.
    let head = std::fs::read(folder.path("db/HEAD")).expect("HEAD");
    replay("8").ok();
    std::fs::write(folder.path("db/HEAD"), head).expect("put back");
    let follows = folder.run(&["repair", "--db", "db"]).ok().stdout();
    assert!(follows.contains("up to its store: block 8"), "{follows}");
    assert_eq!(folder.status("db")["block"], 8);
    folder.run(&["verify", "--db", "db"]).ok();
}

#[test]
fn a_head_is_written_anew_for_any_tree_and_whatever_else_is_lost() {
    let folder = Folder::with_chain();
    let words = ["replay", "--db", "db", "--tree", "verkle", "chain"];
    folder.run(&words).ok();
    std::fs::remove_file(folder.path("db/HEAD")).expect("removed");
    std::fs::write(folder.path("db/genesis.json"), "{").expect("damaged");
    let again = ["replay", "--db", "db", "chain"];
    folder.run(&again).fails_with(&["HEAD", "there is none"]);
    folder.run(&["repair", "--db", "db"]).ok();
    folder.run(&again).ok();
    folder.run(&["verify", "--db", "db"]).ok();
}

/// A folder with a database `db`, and `other` of the chain with id 7.
fn two_chains() -> Folder {
    let folder = Folder::with_chain();
    let words = [
        "generate",
        "--preset",
        "tiny",
        "--chain-id",
        "7",
        "--out",
        "seven",
    ];
    folder.run(&words).ok();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    folder.run(&["replay", "--db", "other", "seven"]).ok();
    folder
}

/// The store was compared with the chain in HEAD, although the message was about genesis.json: a foreign HEAD had its user take away a genesis that was right.
#[test]
fn a_head_of_another_chain_is_blamed_and_not_the_genesis() {
    let folder = two_chains();
    std::fs::copy(folder.path("other/HEAD"), folder.path("db/HEAD")).expect("copied");
    let repair = ["repair", "--db", "db"];
    let refused = folder.run(&repair);
    refused.fails_with(&["HEAD file is that of another database", "--accept-store"]);
    let stderr = refused.stderr();
    assert!(!stderr.contains("genesis.json"), "{stderr}");
    folder
        .run(&[&repair[..], &["--accept-store"]].concat())
        .ok();
    folder.run(&["verify", "--db", "db"]).ok();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
}

/// It passed, because HEAD was compared in its place.
#[test]
fn a_genesis_of_another_chain_is_blamed_although_head_is_whole() {
    let folder = two_chains();
    let genesis = folder.path("db/genesis.json");
    std::fs::copy(folder.path("other/genesis.json"), &genesis).expect("copied");
    let repair = ["repair", "--db", "db"];
    folder
        .run(&repair)
        .fails_with(&["its genesis.json is of chain 7", "take that file away"]);
    std::fs::remove_file(&genesis).expect("taken away");
    let whole = folder.run(&repair).ok().stdout();
    assert!(whole.contains("HEAD is whole: block 12"), "{whole}");
}

#[test]
fn repair_writes_no_head_for_a_damaged_state() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    std::fs::remove_file(folder.path("db/HEAD")).expect("removed");
    {
        let store = FjallStore::open(&folder.path("db/fjall"), &Default::default()).expect("open");
        let mut accounts = store.scan(Table(0x80), &[], &[]).expect("scan");
        let (key, value) = accounts.next().expect("an account").expect("read");
        let mut value = value.to_vec();
        *value.last_mut().expect("a byte") ^= 1;
        let write = Write {
            table: Table(0x80),
            key,
            value: Some(value.into()),
        };
        store.write(&[write], true).expect("write");
    }
    folder
        .run(&["repair", "--db", "db"])
        .fails_with(&["damaged", "fault"]);
    assert!(!folder.path("db/HEAD").exists());
}

/// A lost file of the engine's own made it delete every table at the next opening for writing, by `repair` too; a lost journal was blamed on
/// the chain's next block.
#[test]
fn a_lost_file_of_the_store_is_named_by_every_command_and_nothing_is_deleted() {
    let folder = Folder::new();
    let words = [
        "generate", "--preset", "tiny", "--blocks", "40", "--out", "chain",
    ];
    folder.run(&words).ok();
    let replay = ["replay", "--db", "db", "--to", "20", "chain"];
    folder.run(&replay).ok();
    for (lost, names) in [
        ("0.jnl", &["dmg/fjall", "its journal, a file N.jnl"][..]),
        ("keyspaces/0/current", &["keyspaces/0", "current"]),
        ("keyspaces/0", &["keyspaces/0", "this folder"]),
        ("keyspaces/1/current", &["keyspaces/1", "current"]),
    ] {
        copy(&folder.path("db"), &folder.path("dmg"));
        let lost = folder.path("dmg/fjall").join(lost);
        let kept = folder.path("kept");
        std::fs::rename(&lost, &kept).expect("taken away");
        let words = [names, &["is not there"]].concat();
        for command in [
            &["repair", "--db", "dmg"][..],
            &["repair", "--db", "dmg", "--accept-store"],
            &["replay", "--db", "dmg", "--to", "30", "chain"],
            &["rollback", "--db", "dmg", "--to", "15"],
            &["prune", "--db", "dmg", "--retain", "1"],
            &["verify", "--db", "dmg"],
            &["dump", "--db", "dmg"],
        ] {
            folder.run(command).fails_with(&words);
        }
        std::fs::rename(&kept, &lost).expect("put back");
        folder.run(&["verify", "--db", "dmg"]).ok();
        folder.run(&["replay", "--db", "dmg", "chain"]).ok();
        std::fs::remove_dir_all(folder.path("dmg")).expect("removed");
    }
}

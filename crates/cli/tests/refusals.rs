//! What the commands refuse, by which words, and that nothing is changed by it.

use crate::support::{Folder, an_account, flip};
use serde_json::Value;

/// What a node answers instead of a proof is shown.
#[test]
fn a_nodes_error_is_shown() {
    let folder = Folder::new();
    let answer = r#"{"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "missing trie node 1234"}}"#;
    std::fs::write(folder.path("proof.json"), answer).expect("written");
    let root = format!("0x{}", "11".repeat(32));
    folder
        .run(&["verify-proof", "--root", &root, "proof.json"])
        .fails_with(&["proof.json", "missing trie node 1234"]);
    let both = answer.replace("\"id\": 1", "\"result\": {\"accountProof\": []}");
    let outside = r#"{"form": "mpt/1", "result": {"accountProof": []}}"#;
    let other = r#"{"form": "verkle/1", "accountProof": []}"#;
    for (file, why) in [
        (both.as_str(), "both a \"result\" and an \"error\""),
        (outside, "names a form (\"form\") beside \"result\""),
        (other, "has the field \"accountProof\" of the form mpt/1"),
    ] {
        std::fs::write(folder.path("proof.json"), file).expect("written");
        folder
            .run(&["verify-proof", "--root", &root, "proof.json"])
            .fails_with(&["proof.json", why]);
    }
}

/// Input without an end is refused, and the error names the bound.
#[cfg(unix)]
#[test]
fn a_proof_without_an_end_is_refused() {
    let folder = Folder::new();
    std::os::unix::fs::symlink("/dev/zero", folder.path("proof.ssz")).expect("linked");
    let root = format!("0x{}", "11".repeat(32));
    folder
        .run(&["verify-proof", "--root", &root, "proof.ssz"])
        .fails_with(&["proof.ssz", "more than 16777216 bytes"]);
}

/// A replay that was refused had said what history to keep, and the next one forgot the rest.
#[test]
fn what_is_refused_is_not_remembered() {
    let folder = Folder::with_chain();
    folder
        .run(&["replay", "--db", "db", "chain", "--to", "9"])
        .ok();
    let refused = [
        "replay", "--db", "db", "chain", "--tree", "ar16mt", "--retain", "none",
    ];
    folder
        .run(&refused)
        .fails_with(&["its tree is mpt", "ar16mt"]);
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let retained = folder.status("db")["retained"]["oldest"].clone();
    assert_eq!(retained, 0);
    folder
        .run(&["replay", "--db", "db", "chain", "--retain", "none"])
        .ok();
    assert_eq!(
        std::fs::read(folder.path("db/retain")).expect("kept"),
        b"none"
    );
}

/// `--report chain.rlp` took the chain's place, and a folder that was to be made hid that files are to be the database's own.
#[test]
fn what_is_written_is_neither_read_nor_the_databases_own() {
    let folder = Folder::with_chain();
    let chain = std::fs::read(folder.path("chain/chain.rlp")).expect("a chain");
    let read = "is read, and would be overwritten";
    let own = "is the database's own";
    for (flags, why) in [
        (&["--report", "chain/chain.rlp"][..], read),
        (&["--report", "./chain/../chain/genesis.json"], read),
        (&["--failure-dump", "chain/chain.rlp"], read),
        (
            &["--failure-dump", "r", "--report", "./r"],
            "--report and --failure-dump are one file",
        ),
        (&["--failure-dump", "db/HEAD"], own),
        (&["--failure-dump", "db/retain"], own),
        (&["--failure-dump", "db/fjall/x"], own),
        (
            &["--failure-dump", "none/x"],
            "a failure dump could not be written",
        ),
    ] {
        let words = [&["replay", "--db", "db", "chain"][..], flags].concat();
        let run = folder.run(&words);
        match why.starts_with("--report") {
            true => run.fails_with(&["are one file"]),
            false => run.fails_with(&[why]),
        };
        assert!(!folder.path("db").exists(), "{flags:?}");
    }
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let witness = ["witness", "--db", "db", "--block", "3", "chain"];
    folder
        .run(&[&witness[..], &["--out", "chain/chain.rlp"]].concat())
        .fails_with(&[read]);
    assert_eq!(
        std::fs::read(folder.path("chain/chain.rlp")).expect("there"),
        chain
    );
    folder
        .run(&["replay", "--db", "db", "chain", "--report", "/dev/null"])
        .ok();
}

/// It was taken for block 0 under another number, which `arbor verify` then called damaged; and what files say was printed as it is, whatever its length.
#[test]
fn a_genesis_is_block_0_and_is_not_printed_whole() {
    let folder = Folder::with_chain();
    let text = std::fs::read_to_string(folder.path("chain/genesis.json")).expect("a genesis");
    let genesis: Value = serde_json::from_str(&text).expect("JSON");
    let replay = |change: &dyn Fn(&mut Value)| {
        let mut changed = genesis.clone();
        change(&mut changed);
        std::fs::write(folder.path("g.json"), changed.to_string()).expect("written");
        folder.run(&["replay", "--db", "db", "chain", "--genesis", "g.json"])
    };
    replay(&|genesis| genesis["number"] = "0x5".into())
        .fails_with(&["its number is 5, and a genesis is block 0"]);
    let long = replay(&|genesis| genesis["config"]["chainId"] = "7".repeat(100_000).into());
    assert!(long.stderr().len() < 5_000);
    let escapes = replay(&|genesis| genesis["alloc"]["\u{1b}[31mred"] = Value::Null);
    assert!(!escapes.stderr().contains('\u{1b}'));
    for run in [long, escapes] {
        run.fails_with(&["g.json"]);
    }
}

/// An empty word was slot 0.
#[test]
fn a_slot_is_a_number() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let (account, _) = an_account(&folder);
    for slot in [
        "",
        "0x",
        "0b11",
        "0o17",
        "+1",
        "-",
        &format!("0x1{}", "0".repeat(64)),
    ] {
        folder
            .run(&["get", "--db", "db", &account, "--", slot])
            .fails_with(&["is no slot"]);
    }
    let get = |slot: &str| {
        folder
            .run(&["get", "--db", "db", &account, slot])
            .ok()
            .stdout()
    };
    assert_eq!(get("17"), get("0x11"));
}

/// `replay --witness` said that another block holds than the one it had executed.
#[test]
fn a_witness_with_another_number_is_refused() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let words = ["witness", "--db", "db", "--block", "3", "chain"];
    let witness = folder.run(&words).ok().stdout();
    let other = witness.replace("\"number\":3,", "\"number\":4,");
    assert_ne!(witness, other);
    std::fs::write(folder.path("w.json"), other).expect("written");
    for words in [["replay", "--witness"].as_slice(), &["verify-witness"]] {
        folder
            .run(&[words, &["w.json"]].concat())
            .fails_with(&["the block's number is 3, expected 4"]);
    }
}

/// A chain that forked off below the head and ends there was "nothing to do", exit code 0.
#[test]
fn a_shorter_fork_is_not_taken_for_the_same_chain() {
    let folder = Folder::with_chain();
    let fork = ["--txs", "3", "--blocks", "5", "--out", "fork"];
    folder
        .run(&[&["generate", "--preset", "tiny"], &fork[..]].concat())
        .ok();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    folder
        .run(&["replay", "--db", "db", "fork"])
        .fails_with(&["block 5", "not of one chain"]);
}

#[test]
fn a_damaged_chain_is_refused_and_the_database_keeps_the_good_blocks() {
    let folder = Folder::with_chain();
    let chain = folder.path("chain/chain.rlp");
    let whole = std::fs::read(&chain).expect("chain");
    std::fs::write(&chain, &whole[..whole.len() - 10]).expect("write");
    folder
        .run(&["replay", "--db", "db", "chain"])
        .fails_with(&["chain.rlp", "offset"]);
    let stood_at = folder.status("db")["block"].as_u64().expect("block");
    assert!(stood_at > 0);
    folder.run(&["verify", "--db", "db"]).ok();

    // Flips in a later block, wherever they hit, are found; the blocks before it stay.
    for place in [whole.len() - 40, whole.len() - 400, whole.len() - 900] {
        std::fs::write(&chain, &whole).expect("write");
        flip(&chain, place);
        let db = format!("db{place}");
        folder
            .run(&["replay", "--db", &db, "chain"])
            .fails_with(&[]);
        assert!(folder.status(&db)["block"].as_u64().expect("block") >= stood_at - 1);
    }
    std::fs::write(&chain, &whole).expect("write");
    folder.run(&["replay", "--db", "db", "chain"]).ok();
}

#[test]
fn what_does_not_belong_together_is_refused_by_name() {
    let folder = Folder::with_chain();
    folder
        .run(&[
            "generate", "--preset", "tiny", "--seed", "99", "--out", "other",
        ])
        .ok();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    folder
        .run(&["replay", "--db", "db", "other"])
        .fails_with(&["genesis"]);
    let other = folder.path("other/genesis.json");
    folder
        .run(&[
            "replay",
            "--db",
            "new",
            "--genesis",
            other.to_str().expect("path"),
            "chain/chain.rlp",
        ])
        .fails_with(&["genesis"]);
    folder
        .run(&[
            "replay",
            "--db",
            "new",
            "--genesis",
            "nowhere",
            "chain/chain.rlp",
        ])
        .fails_with(&["nowhere"]);
    folder
        .run(&["replay", "--db", "new", "chain/chain.rlp", "missing.rlp"])
        .fails_with(&["missing.rlp"]);
    folder
        .run(&["status", "--db", "nothing"])
        .fails_with(&["nothing", "not a database"]);
    std::fs::write(folder.path("broken.json"), "{ \"config\": ").expect("write");
    folder
        .run(&[
            "replay",
            "--db",
            "new",
            "--genesis",
            "broken.json",
            "chain/chain.rlp",
        ])
        .fails_with(&["broken.json"]);
    std::fs::write(folder.path("file"), "").expect("write");
    folder
        .run(&["replay", "--db", "file", "chain"])
        .fails_with(&["file"]);
}

/// Each of these was accepted, or said only at the end, or with another name than the one on the command line.
#[test]
fn bad_flags_are_refused_at_once_by_name() {
    let folder = Folder::with_chain();
    folder
        .run(&[
            "replay",
            "--db",
            "db",
            "--report",
            "missing/r.json",
            "chain",
        ])
        .fails_with(&["report", "missing/r.json"]);
    assert!(!folder.path("db").exists(), "the replay began");
    folder
        .run(&["replay", "--db", "db", "--memory", "1", "chain"])
        .fails_with(&["--memory", "at least 16.0 MiB"]);
    folder
        .run(&["replay", "--db", "db", "--store", "memory", "chain"])
        .fails_with(&["--store memory", "db"]);
    folder
        .run(&[
            "generate", "--preset", "tiny", "--txs", "99999", "--out", "other",
        ])
        .fails_with(&["--txs", "0 to 10000"]);
    folder
        .run(&[
            "generate", "--preset", "tiny", "--txs", "1", "--out", "chain",
        ])
        .fails_with(&["--txs", "another folder"]);
}

/// `generate` looked at the last block only, and said that all was done.
#[test]
fn a_damaged_chain_is_not_called_complete() {
    let folder = Folder::with_chain();
    let words = ["generate", "--preset", "tiny", "--out", "chain"];
    folder.run(&words).ok();
    let file = folder.path("chain/chain.rlp");
    let whole = std::fs::read(&file).expect("chain");
    for part in 1..12 {
        std::fs::write(&file, &whole).expect("write");
        flip(&file, whole.len() * part / 12);
        folder.run(&words).fails_with(&["chain.rlp"]);
    }
    std::fs::write(&file, &whole).expect("write");
    folder.run(&words).ok();
}

/// `""` and `"0x"` were taken for zero.
#[test]
fn a_proof_with_a_number_left_out_is_malformed() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let root = folder.status("db")["stateRoot"]
        .as_str()
        .expect("root")
        .to_owned();
    let absent = "0x00000000000000000000000000000000000000ff";
    let proof = folder
        .run(&["prove", "--db", "db", absent, "1"])
        .ok()
        .json();
    for (number, right) in [
        ("0x0", true),
        ("0x00", true),
        ("0x", false),
        ("", false),
        ("0", false),
        ("0xg", false),
    ] {
        for pointer in ["/balance", "/storageProof/0/value"] {
            let mut changed = proof.clone();
            *changed.pointer_mut(pointer).expect("a field") = number.into();
            std::fs::write(folder.path("p.json"), changed.to_string()).expect("write");
            let run = folder.run(&["verify-proof", "p.json", "--root", &root]);
            if right {
                run.ok()
            } else {
                run.fails_with(&["p.json"])
            };
        }
    }
}

//! What commands say: what was done, what was not, and why.

use std::fs;

use crate::support::{self, Folder, flip};
use serde_json::json;

/// `--to 500` of a shorter chain ended without a word, and `--to` below the head with an untrue one.
#[test]
fn it_is_said_where_to_was_not_reached_or_passed_before() {
    let folder = Folder::with_chain();
    let said = |words: &[&str]| {
        folder
            .run(&[&["replay", "chain"], words].concat())
            .ok()
            .stdout()
    };
    let out = said(&["--db", "db", "--to", "0"]);
    assert!(
        out.starts_with("nothing to do: the head is block 0, and --to is 0\n"),
        "{out}"
    );
    let out = said(&["--db", "db", "--to", "5"]);
    assert!(out.starts_with("replayed blocks 1 to 5: "), "{out}");
    assert!(!out.contains("--to"), "{out}");
    let out = said(&["--db", "db", "--to", "3"]);
    assert!(
        out.starts_with("nothing to do: the head is block 5, and --to is 3\n"),
        "{out}"
    );
    let short = "the chain ends before block 500, which --to names\n";
    let out = said(&["--db", "db", "--to", "500"]);
    assert!(out.ends_with(short), "{out}");
    let out = said(&["--db", "db", "--to", "500"]);
    assert!(
        out.starts_with("nothing to do: the database has every block of the chain"),
        "{out}"
    );
    assert!(out.ends_with(short), "{out}");
    let out = said(&["--tree", "none", "--to", "500"]);
    assert!(out.ends_with(short), "{out}");
    let out = said(&["--db", "db"]);
    assert!(!out.contains("--to"), "{out}");
}

/// The storage engine logs the errors that it returns, without the file's name.
#[test]
fn a_damaged_block_is_reported_once_with_its_file() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let tree = "db/fjall/keyspaces/0";
    flip(&folder.path(tree).join("tables/0"), 1000);
    let words =
        format!("error: opening the database db for reading: the database at {tree} is damaged: ");
    let words = [&*words, "a block of its file tables/0 has the checksum "];
    for command in ["verify", "dump"] {
        let run = folder.run(&[command, "--db", "db"]);
        run.fails_with(&words);
        let stderr = run.stderr();
        assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
    }
}

/// A genesis that was lost was said to be no database, one that was cut was called damaged, with the way to mend it.
#[test]
fn a_lost_genesis_is_named_and_written_anew() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    fs::remove_file(folder.path("db/genesis.json")).expect("removed");
    let words = ["db/genesis.json is missing", "--genesis FILE CHAIN"];
    let witness = ["witness", "--db", "db", "--block", "3", "chain"];
    folder.run(&witness).fails_with(&words);
    // What a database is it knows itself: all that executes no blocks goes on.
    let account: serde_json::Value = {
        let dump = folder.run(&["dump", "--db", "db"]).ok().stdout();
        let line = dump.lines().nth(1).expect("an account").to_owned();
        serde_json::from_str(&line).expect("JSON")
    };
    let address = account["address"].as_str().expect("an address");
    let root = folder.status("db")["stateRoot"].clone();
    let root = root.as_str().expect("a root");
    folder.run(&["get", "--db", "db", address]).ok();
    folder
        .run(&["prove", "--db", "db", address, "--out", "p.json"])
        .ok();
    folder.run(&["verify-proof", "p.json", "--root", root]).ok();
    folder.run(&["verify", "--db", "db"]).ok();
    folder.run(&["roots", "--db", "db"]).ok();
    let head = folder.status("db")["block"].as_u64().expect("a number");
    let back = (head - 1).to_string();
    folder.run(&["rollback", "--db", "db", "--to", &back]).ok();
    folder.run(&["prune", "--db", "db", "--retain", "2"]).ok();
    let words = ["--genesis", "chain/genesis.json", "chain/chain.rlp"];
    folder
        .run(&[&["replay", "--db", "db"], &words[..]].concat())
        .ok();
    folder.run(&["verify", "--db", "db"]).ok();
    folder
        .run(&["verify", "--db", "chain"])
        .fails_with(&["chain"]);
    fs::create_dir(folder.path("empty")).expect("made");
    folder
        .run(&["verify", "--db", "empty"])
        .fails_with(&["empty is not a database"]);
    folder
        .run(&["verify", "--db", "elsewhere"])
        .fails_with(&["there is no database at elsewhere"]);
}

/// "there is no HEAD file in it" was said of a folder that could not be looked into.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_may_not_be_read_is_not_called_empty() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    /// The user that owns nothing.
    const NOBODY: u32 = 65534;
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let allow = |name: &str, mode| {
        let path = folder.path(name);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("allowed");
    };
    // Nobody may not reach the build's folder.
    let arbor = folder.path("arbor");
    fs::copy(env!("CARGO_BIN_EXE_arbor"), &arbor).expect("copied");
    allow("", 0o755);
    allow("db", 0);
    let root = fs::metadata("/proc/self").expect("a process").uid() == 0;
    for word in ["status", "verify"] {
        let mut command = std::process::Command::new(&arbor);
        command
            .args([word, "--db", "db"])
            .current_dir(folder.0.path());
        if root {
            command.uid(NOBODY).gid(NOBODY);
        }
        let run = support::Run(command.output().expect("the binary runs"));
        run.fails_with(&["looking for db/", "ermission denied"]);
        assert!(!run.stderr().contains("not a database"), "{}", run.stderr());
    }
    allow("db", 0o755);
}

#[test]
fn status_says_which_blocks_can_be_read() {
    let folder = Folder::with_chain();
    folder
        .run(&["replay", "--db", "db", "--to", "5", "chain"])
        .ok();
    let status = folder.status("db");
    assert_eq!(status["retained"], json!({ "oldest": 0, "newest": 5 }));
    assert_eq!(status["retain"], json!(null));
    let text = folder.run(&["status", "--db", "db"]).ok().stdout();
    assert!(text.ends_with("\nretained    blocks 0 to 5\n"), "{text}");

    folder
        .run(&["replay", "--db", "db", "--retain", "3", "chain"])
        .ok();
    let status = folder.status("db");
    let block = status["block"].as_u64().expect("a block");
    assert_eq!(
        status["retained"],
        json!({ "oldest": block - 3, "newest": block })
    );
    assert_eq!(status["retain"], "3");
    let text = folder.run(&["status", "--db", "db"]).ok().stdout();
    let line = format!(
        "\nretained    blocks {} to {block}; blocks to come by --retain 3\n",
        block - 3
    );
    assert!(text.ends_with(&line), "{text}");
    // What status says can be read, and no more.
    let at = |block: u64| folder.run(&["dump", "--db", "db", "--at", &block.to_string()]);
    at(block - 3).ok();
    at(block - 4).fails_with(&["not retained"]);

    folder
        .run(&["prune", "--db", "db", "--retain", "none"])
        .ok();
    let text = folder.run(&["status", "--db", "db"]).ok().stdout();
    assert!(
        text.contains(&format!("\nretained    block {block} alone")),
        "{text}"
    );
}

#[test]
fn reports_say_which_history_is_kept() {
    let folder = Folder::with_chain();
    for (asked, kept) in [("", "128"), ("--retain 3", "3"), ("", "3")] {
        let words = format!("replay --db db chain --report r.json {asked}");
        folder
            .run(&words.split_whitespace().collect::<Vec<_>>())
            .ok();
        let report = fs::read(folder.path("r.json")).expect("written");
        let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
        assert_eq!(report["settings"]["retain"], kept, "{asked}");
    }
}

/// With 16 MiB a flush came every third block, and its merges took more memory than 32 MiB did.
#[test]
fn a_small_budget_is_not_divided_into_nothing() {
    let folder = Folder::with_chain();
    let words = "replay --store memory chain --report r.json --memory 16MiB";
    let words: Vec<&str> = words.split(' ').collect();
    folder.run(&words).ok();
    let report = fs::read(folder.path("r.json")).expect("written");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["settings"]["write_back_bytes"], 4 << 20);
    folder
        .run(&["replay", "--store", "memory", "chain", "--memory", "1TiB"])
        .ok();
}

/// The trees before the one that has no witnesses were measured first, for hours on a long chain.
#[test]
fn trees_without_witnesses_are_refused_before_blocks_are_read() {
    let folder = Folder::new();
    for (trees, words) in [
        (
            "mpt,none",
            [
                "'none'",
                "values: mpt, verkle, verkle-2023, eip8297, eip7864, eip7864-a]",
            ],
        ),
        (
            "mpt,ar16mt",
            [
                "'ar16mt'",
                "values: mpt, verkle, verkle-2023, eip8297, eip7864, eip7864-a]",
            ],
        ),
        ("mpt,verkle,mpt", ["--trees", "mpt twice"]),
    ] {
        folder
            .run(&["bench", "witnesses", "no-chain", "--trees", trees])
            .fails_with(&words);
    }
}

/// A second demo in a folder told of 0 transactions and of a chain that ends before the head.
#[test]
fn a_second_demo_says_that_the_first_one_is_kept() {
    let folder = Folder::new();
    // Makes what an earlier demo leaves, but for the comparison, which takes most of its time.
    folder
        .run(&["generate", "--preset", "demo", "--out", "d/chain"])
        .ok();
    folder.run(&["replay", "--db", "d/db", "d/chain"]).ok();
    let second = folder.run(&["demo", "--out", "d"]).ok().stdout();
    assert!(
        second.starts_with("d has the chain of an earlier demo"),
        "{second}"
    );
    assert!(!second.contains("0 transactions"), "{second}");
    let done = "nothing to do: the database has every block of the chain; its head is block 200";
    assert!(second.contains(done), "{second}");
}

//! The binary as a user runs it, on a generated chain. What it refuses is in `refusals`.

use std::process::Command;

use crate::support::{Folder, Run, an_account};
use serde_json::Value;

/// The second run of a database that has the name of its network, and one of each other network.
#[test]
fn a_folder_does_not_hide_the_network_of_its_name() {
    let folder = Folder::new();
    folder
        .run(&["generate", "--preset", "demo", "--out", "chain"])
        .ok();
    for network in ["mainnet", "sepolia", "holesky", "hoodi"] {
        std::fs::create_dir(folder.path(network)).expect("made");
        // It is found, and the chain is another's.
        folder
            .run(&["replay", "--db", network, "--genesis", network, "chain"])
            .fails_with(&[&format!("this is {network}'s genesis")]);
    }
}

/// With the engine's mark gone, `arbor get` took the database for an interrupted creation and deleted its journal.
#[test]
fn a_lost_mark_does_not_cost_the_data() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let mark = folder.path("db/fjall/version");
    let whole = std::fs::read(&mark).expect("the mark");
    for emptied in [false, true] {
        std::fs::remove_file(&mark).expect("removed");
        if emptied {
            std::fs::write(&mark, "").expect("written");
        }
        folder.run(&["dump", "--db", "db"]).fails_with(&["fjall"]);
        folder
            .run(&["replay", "--db", "db", "chain"])
            .fails_with(&["fjall"]);
        std::fs::write(&mark, &whole).expect("written");
        folder.run(&["verify", "--db", "db"]).ok();
    }
}

/// The first genesis was kept for ever, so that readers went by forks that had been mended since.
#[test]
fn the_latest_genesis_is_kept() {
    let folder = Folder::with_chain();
    folder
        .run(&["replay", "--db", "db", "chain", "--to", "5"])
        .ok();
    let text = std::fs::read_to_string(folder.path("chain/genesis.json")).expect("a genesis");
    let mut genesis: Value = serde_json::from_str(&text).expect("JSON");
    genesis["config"]["osakaTime"] = 99_999_999_999_u64.into();
    let later = genesis.to_string();
    std::fs::write(folder.path("later.json"), &later).expect("written");
    let replay = ["replay", "--db", "db", "chain", "--genesis", "later.json"];
    let told = folder.run(&replay).ok().stderr();
    assert!(told.contains("Osaka"), "{told}");
    let kept = std::fs::read_to_string(folder.path("db/genesis.json")).expect("kept");
    assert_eq!(kept, later);
    folder.run(&["verify", "--db", "db"]).ok();
}

/// The generated chain was made without it, so that its gas is another one from the first transaction on.
#[test]
fn witness_gas_is_charged_when_asked_for() {
    let folder = Folder::with_chain();
    let replay = ["replay", "--tree", "none", "chain"];
    folder.run(&replay).ok();
    let charged = folder.run(&[&replay[..], &["--gas", "eip4762"]].concat());
    charged.fails_with(&["gasUsed"]);
    // No block held, which does not mean that there was none.
    let out = charged.stdout();
    assert!(out.contains("no block was replayed"), "{out}");
}

/// The journal's reserved length was counted: 64 MiB for a database of some hundred kB.
#[test]
fn status_counts_the_disk_that_is_occupied() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let bytes = folder.status("db")["diskBytes"].as_u64().expect("bytes");
    assert!(bytes < 16 << 20, "{bytes}");
}

/// `arbor dump | head` ended with an error, and `arbor completions bash > /dev/full` in a panic.
#[test]
fn a_reader_that_leaves_is_no_error() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    for args in [&["dump", "--db", "db"][..], &["completions", "bash"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_arbor"));
        let command = command.args(args).current_dir(folder.0.path());
        let output = command.stdout(writer).output();
        Run(output.expect("the binary runs")).ok();
    }
}

/// A full disk left an empty genesis.json, which no later replay mended: nothing but `replay` opened the database again.
#[test]
fn a_cut_genesis_is_named_and_mended_by_the_next_replay() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    std::fs::write(folder.path("db/genesis.json"), "{").expect("written");
    let witness = ["witness", "--db", "db", "--block", "3", "chain"];
    folder
        .run(&witness)
        .fails_with(&["db/genesis.json", "damaged"]);
    // Nothing but the execution of blocks needs it.
    folder.run(&["verify", "--db", "db"]).ok();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    folder.run(&witness).ok();
}

#[test]
fn the_report_has_what_was_asked_for() {
    let folder = Folder::with_chain();
    let words = ["replay", "--store", "memory", "--threads", "1", "--report"];
    folder
        .run(&[&words[..], &["r.json", "chain"]].concat())
        .ok();
    let report = std::fs::read(folder.path("r.json")).expect("written");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    let settings = &report["settings"];
    assert_eq!(settings["threads"], 1);
    assert_eq!(settings["chain"], serde_json::json!(["chain"]));
    assert_eq!(
        (&settings["to"], &settings["db"]),
        (&Value::Null, &Value::Null)
    );
    let backend = std::env::var("ARBOR_BACKEND").ok();
    let backend = backend.unwrap_or_else(|| arbor_cpu::Backend::detect().name().to_owned());
    assert_eq!(settings["backend"], backend);
    for rule in ["gas", "evm384", "evm384_schedule"] {
        assert_eq!(settings.get(rule), Some(&Value::Null), "{rule}");
    }
}

/// Reports did not say by which rules blocks were executed.
#[test]
fn the_report_has_the_rules_that_were_followed() {
    let folder = Folder::with_chain();
    let words = ["replay", "--db", "db", "chain", "--report", "r.json"];
    let settings = |more: &[&str]| {
        folder.run(&[&words[..], more].concat()).ok();
        let report = std::fs::read(folder.path("r.json")).expect("written");
        let report: Value = serde_json::from_slice(&report).expect("JSON");
        let settings = &report["settings"];
        ["gas", "evm384", "evm384_schedule"].map(|rule| settings[rule].clone())
    };
    let evm384 = ["--evm384", "setmod", "--evm384-schedule", "b", "--to", "3"];
    let followed = [Value::Null, "setmod".into(), "b".into()];
    assert_eq!(settings(&evm384), followed);
    // Those that the database remembers are in force, too.
    assert_eq!(settings(&[]), followed);
    // No block is executed, so that the chain need not charge that gas.
    let gas = [
        "replay", "--store", "memory", "--gas", "eip4762", "--to", "0",
    ];
    let report = ["--report", "g.json", "chain"];
    folder.run(&[&gas[..], &report].concat()).ok();
    let report = std::fs::read(folder.path("g.json")).expect("written");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["settings"]["gas"], "eip4762");
}

#[test]
fn a_chain_is_replayed_read_proven_and_rolled_back() {
    let folder = Folder::with_chain();
    let summary = folder.run(&["replay", "--db", "db", "chain", "--report", "report.json"]);
    summary.ok();
    let head = folder.status("db");
    let (block, root) = (
        head["block"].as_u64().expect("block"),
        head["stateRoot"].as_str().expect("root"),
    );
    assert!(block > 3);

    let report: Value =
        serde_json::from_slice(&std::fs::read(folder.path("report.json")).expect("report"))
            .expect("JSON");
    assert_eq!(report["results"]["total"]["last_block"], block);

    let (address, slot) = an_account(&folder);
    let proof = folder
        .run(&["prove", "--db", "db", &address, &slot])
        .ok()
        .stdout();
    std::fs::write(folder.path("proof.json"), &proof).expect("write");
    folder
        .run(&["verify-proof", "proof.json", "--root", root])
        .ok();
    let value = folder
        .run(&["get", "--db", "db", &address, &slot])
        .ok()
        .stdout();
    let proven: Value = serde_json::from_str(&proof).expect("JSON");
    let number = |text: &str| {
        text.trim()
            .trim_start_matches("0x")
            .trim_start_matches('0')
            .to_owned()
    };
    assert_eq!(
        number(proven["storageProof"][0]["value"].as_str().expect("value")),
        number(&value)
    );

    // A value that the nodes do not prove.
    let mut tampered = proven.clone();
    tampered["storageProof"][0]["value"] = "0x123456789".into();
    std::fs::write(folder.path("false.json"), tampered.to_string()).expect("write");
    folder
        .run(&["verify-proof", "false.json", "--root", root])
        .fails_with(&["false proof", "slot"]);

    folder.run(&["verify", "--db", "db"]).ok();
    let earlier = (block - 3).to_string();
    let then = folder
        .run(&["dump", "--db", "db", "--at", &earlier])
        .ok()
        .stdout();
    folder
        .run(&["rollback", "--db", "db", "--to", &earlier])
        .ok();
    assert_eq!(folder.run(&["dump", "--db", "db"]).ok().stdout(), then);
    folder.run(&["verify", "--db", "db"]).ok();

    // The rest of the chain is replayed again, to the same root.
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    assert_eq!(folder.status("db")["stateRoot"], root);
    folder.run(&["prune", "--db", "db", "--retain", "1"]).ok();
    folder
        .run(&["get", "--db", "db", &address, "--at", &earlier])
        .fails_with(&[&earlier, "not retained"]);
}

#[test]
fn a_block_is_replayed_from_its_own_witness() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let block = folder.status("db")["block"]
        .as_u64()
        .expect("block")
        .to_string();
    folder
        .run(&[
            "witness",
            "--db",
            "db",
            "--block",
            &block,
            "chain",
            "--out",
            "w.json.gz",
        ])
        .ok();
    folder.run(&["verify-witness", "w.json.gz"]).ok();
    folder.run(&["replay", "--witness", "w.json.gz"]).ok();

    folder
        .run(&[
            "witness", "--db", "db", "--block", &block, "chain", "--out", "w.json",
        ])
        .ok();
    let bytes = std::fs::read(folder.path("w.json")).expect("witness");
    let mut witness: Value = serde_json::from_slice(&bytes).expect("JSON");
    witness["stateNodes"]
        .as_array_mut()
        .expect("nodes")
        .truncate(1);
    std::fs::write(folder.path("short.json"), witness.to_string()).expect("write");
    folder
        .run(&["replay", "--witness", "short.json"])
        .fails_with(&["short.json", "lacks node", "path"]);
    // The first that failed kept the others from being looked at.
    let files = ["short.json", "w.json", "missing.json"];
    let all = folder.run(&[&["replay", "--witness"], &files[..]].concat());
    all.fails_with(&["short.json: ", "missing.json: ", "2 of 3 witnesses"]);
    assert!(all.stdout().contains("w.json: chain"), "{}", all.stdout());
}

#[test]
fn replay_stops_and_resumes_where_asked() {
    let folder = Folder::with_chain();
    folder
        .run(&["replay", "--db", "db", "--to", "2", "chain"])
        .ok();
    assert_eq!(folder.status("db")["block"], 2);
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    folder
        .run(&["replay", "--db", "whole", "--threads", "1", "chain"])
        .ok();
    assert_eq!(
        folder.status("db")["stateRoot"],
        folder.status("whole")["stateRoot"]
    );
    let again = folder.run(&["replay", "--db", "db", "chain"]);
    assert!(
        again.ok().stdout().contains("nothing to do"),
        "{}",
        again.stdout()
    );
}

#[test]
fn execution_alone_needs_no_database_and_a_store_in_memory_none_on_disk() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--tree", "none", "chain"]).ok();
    let whole = folder
        .run(&["replay", "--store", "memory", "chain"])
        .ok()
        .stdout();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let root = folder.status("db")["stateRoot"]
        .as_str()
        .expect("root")
        .to_owned();
    assert!(whole.contains(&root), "{whole}");
    folder.run(&["replay", "chain"]).fails_with(&["--db"]);
    folder
        .run(&["replay", "--tree", "mpt", "chain"])
        .fails_with(&["--db"]);
}

/// One root for many blocks leads to the same end, and what is retained is all there: the versions below have none.
#[test]
fn verifying_the_last_root_ends_like_verifying_every() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "every", "chain"]).ok();
    let every = folder.status("every");
    let head = every["block"].as_u64().expect("a block");
    let last = [
        "replay", "--db", "db", "--verify", "last", "--retain", "3", "chain", "--report", "r.json",
    ];
    folder.run(&last).ok();
    let status = folder.status("db");
    for field in ["block", "blockHash", "stateRoot"] {
        assert_eq!(status[field], every[field], "{field}");
    }
    let report = std::fs::read(folder.path("r.json")).expect("written");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["settings"]["verify"], "last");
    assert_eq!(report["results"]["total"]["blocks"], head);
    folder.run(&["verify", "--db", "db"]).ok();

    // Where every version is kept, every root is computed, and the reason is given.
    for (db, why) in [
        ("durable", &["--durable"][..]),
        ("all", &["--retain", "all"]),
    ] {
        let words = ["replay", "--db", db, "--verify", "last", "chain"];
        let run = folder.run(&[&words[..], why].concat());
        let said = run.ok().stderr();
        assert!(said.contains("--verify last has no effect"), "{said}");
        assert!(said.contains(&why.join(" ")), "{said}");
    }

    let oldest = (head - 3).to_string();
    folder.run(&["dump", "--db", "db", "--at", &oldest]).ok();
    let before = (head - 4).to_string();
    folder
        .run(&["rollback", "--db", "db", "--to", &before])
        .fails_with(&[&before, "not retained"]);
    folder
        .run(&["rollback", "--db", "db", "--to", &oldest])
        .ok();
    folder.run(&last).ok();
    assert_eq!(folder.status("db")["stateRoot"], every["stateRoot"]);
    folder.run(&["verify", "--db", "db"]).ok();
}

#[test]
fn reads_are_checked_and_measured_now_and_in_the_past() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let words = "bench reads --db db --reads 20 --proofs 5 --threads 2 --back 0 5 --report r.json";
    let words: Vec<&str> = words.split(' ').collect();
    let table = folder.run(&words).ok().stdout();
    assert!(table.contains("absent account"), "{table}");
    let report = std::fs::read(folder.path("r.json")).expect("written");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    let results = &report["results"];
    assert_eq!(results["block"], folder.status("db")["block"]);
    let rows = results["rows"].as_array().expect("rows");
    // Accounts, absent accounts, slots and proofs, each cold and hot, of two blocks.
    assert_eq!(rows.len(), 16, "{table}");
    for row in rows {
        let at_least_one = row["reads"].as_u64() > Some(0);
        assert!(
            at_least_one && row["p50_us"].as_f64() <= row["max_us"].as_f64(),
            "{row}"
        );
    }
    assert_eq!(results["rebuilds"][0]["back"], 5);
    let words = ["bench", "reads", "--db", "db", "--back", "400"];
    folder
        .run(&words)
        .fails_with(&["400 blocks behind", "not retained"]);
}

#[test]
fn senders_are_compared_in_batches_of_the_sizes_asked_for() {
    let folder = Folder::new();
    let words = "bench senders --batches 2,64 --budget 1 --json --report r.json";
    let words: Vec<&str> = words.split(' ').collect();
    let printed = folder.run(&words).ok().stdout();
    let printed: Value = serde_json::from_str(&printed).expect("JSON");
    let report = std::fs::read(folder.path("r.json")).expect("written");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(printed, report);
    let results = &report["results"];
    assert_eq!(results["batches"][0]["batch"], 2);
    // Of the batch of 64: smaller ones do not count.
    assert_eq!(
        results["ratio_to_libsecp256k1"],
        results["batches"][1]["ratio"]
    );
    assert!(results["batches"][1]["ratio"].as_f64() > Some(0.0));
}

#[test]
fn history_is_kept_by_commands_that_look() {
    let folder = Folder::with_chain();
    // Asked for once, remembered.
    folder
        .run(&[
            "replay", "--db", "kept", "--retain", "all", "--to", "6", "chain",
        ])
        .ok();
    folder.run(&["replay", "--db", "kept", "chain"]).ok();
    folder.run(&["dump", "--db", "kept", "--at", "0"]).ok();

    folder
        .run(&["replay", "--db", "db", "--retain", "all", "chain"])
        .ok();
    folder.run(&["rollback", "--db", "db", "--to", "9"]).ok();
    folder.run(&["dump", "--db", "db", "--at", "0"]).ok();
    folder.run(&["rollback", "--db", "db", "--to", "0"]).ok();
    folder.run(&["verify", "--db", "db"]).ok();
    folder
        .run(&["replay", "--db", "db", "--retain", "none", "chain"])
        .ok();
    folder
        .run(&["rollback", "--db", "db", "--to", "3"])
        .fails_with(&["block 3", "not retained"]);
}

/// Stopping when asked was reported as success, so that a script took half a chain for a whole one.
#[test]
fn a_replay_that_is_interrupted_says_so_and_goes_on_later() {
    let folder = Folder::new();
    let words = [
        "generate", "--preset", "tiny", "--blocks", "400", "--out", "chain",
    ];
    folder.run(&words).ok();
    let mut command = Command::new(env!("CARGO_BIN_EXE_arbor"));
    let command = command
        .args(["replay", "--db", "db", "chain"])
        .current_dir(folder.0.path());
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the binary runs");
    while !folder.path("db/genesis.json").exists() {
        assert!(child.try_wait().expect("looked").is_none(), "it ended");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let asked = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(asked.expect("kill runs").success());
    let stopped = Run(child.wait_with_output().expect("ends"));
    assert_eq!(stopped.0.status.code(), Some(130), "{}", stopped.stdout());
    assert!(
        stopped.stdout().contains("stopped as asked"),
        "{}",
        stopped.stdout()
    );
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    assert_eq!(folder.status("db")["block"], 400);
}

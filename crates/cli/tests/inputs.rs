//! What a user may name that is no file as it should be, and what reads it all the same.
#![cfg(unix)]

use std::fs::{self, File};
use std::process::Command;

use crate::support::{Folder, Run};

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
        ("genesis.json", "witness --db db --block 3 chain"),
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
    assert_eq!(rules.expect("remembered"), "{\"version\":1}\n");
}

/// Runs a command whose standard input has no end.
fn run_endless(folder: &Folder, line: &str) -> Run {
    let mut command = Command::new("timeout");
    let command = command.args(["60", env!("CARGO_BIN_EXE_arbor")]);
    let command = command.args(line.split(' ')).current_dir(folder.0.path());
    let zeros = File::open("/dev/zero").expect("it is there");
    Run(command.stdin(zeros).output().expect("timeout runs"))
}

/// Programs and reports were read without a bound, all others up to 1 GiB, and a proof in the
/// binary form took 42 times that.
#[test]
fn inputs_without_an_end_are_refused() {
    let folder = Folder::with_chain();
    let root = format!("0x{}", "11".repeat(32));
    let proof = format!("verify-proof --root {root}");
    std::os::unix::fs::symlink("/dev/zero", folder.path("zero.ssz")).expect("linked");
    for (line, word) in [
        ("replay --db new --genesis", "is not text"),
        ("evm384 asm", "is not text"),
        ("evm384 disasm", "is not text"),
        ("evm384 run", "is not text"),
        ("evm384 debug", "is not text"),
        ("verify-witness", "neither JSON nor the binary form"),
        ("replay --witness", "neither JSON nor the binary form"),
        (&proof, "malformed JSON: expected value at line 1"),
        (
            &format!("{proof} --storage-logs"),
            "more than 268435456 bytes, the most that is read of storage logs",
        ),
    ] {
        let chain = if line.ends_with("--genesis") {
            " chain"
        } else {
            ""
        };
        run(&folder, &format!("{line} /dev/zero{chain}")).fails_with(&["/dev/zero", word]);
        if !line.ends_with("--genesis") && line != "evm384 debug" {
            run_endless(&folder, &format!("{line} -")).fails_with(&[word]);
        }
    }
    run(&folder, &format!("{proof} zero.ssz")).fails_with(&[
        "reading zero.ssz: it has more than 16777216 bytes, the most that is read of a proof in the binary form",
    ]);
    run_endless(&folder, "evm384 debug bls-verify").fails_with(&[
        "reading standard input: it has more than 16777216 bytes, the most that is read of the debugger's commands",
    ]);
    assert!(!folder.path("new").exists());
    // Their texts have no zero, and no end either.
    for (endless, line, word) in [
        ("yes ''", "evm384 asm -", "more than 16777216 bytes"),
        ("yes 00", "evm384 run -", "more than 16777216 bytes"),
        ("yes ''", &format!("{proof} -"), "more than 536870912 bytes"),
    ] {
        let line = format!(
            "{endless} | timeout 60 {} {line}",
            env!("CARGO_BIN_EXE_arbor")
        );
        let mut command = Command::new("sh");
        let command = command.args(["-c", &line]).current_dir(folder.0.path());
        Run(command.output().expect("sh runs")).fails_with(&["standard input", word]);
    }
}

/// The same file may be included again and again.
#[test]
fn a_program_is_bounded_with_what_it_includes() {
    let folder = Folder::new();
    fs::write(folder.path("long.easm"), "\n".repeat(1 << 20)).expect("written");
    let program = |times| "include \"long.easm\"\n".repeat(times);
    fs::write(folder.path("fits.easm"), program(15)).expect("written");
    run(&folder, "evm384 asm fits.easm").ok();
    fs::write(folder.path("more.easm"), program(16)).expect("written");
    run(&folder, "evm384 asm more.easm").fails_with(&[
        "more than 16777216 bytes, the most that is read of a program and the files that it includes",
    ]);
}

/// `verify-witness` and `replay --witness` read gzips, and this did not.
#[test]
fn a_proof_may_be_a_gzip() {
    let folder = Folder::with_chain();
    let gzip = |name: &str| {
        let packed = Command::new("gzip").arg(folder.path(name)).status();
        assert!(packed.expect("gzip runs").success());
    };
    for (tree, name) in [("mpt", "proof.json"), ("verkle", "proof.ssz")] {
        run(&folder, &format!("replay --tree {tree} --db {tree} chain")).ok();
        let dump = run(&folder, &format!("dump --db {tree}")).ok().stdout();
        let account = dump.lines().nth(1).expect("an account");
        let account: serde_json::Value = serde_json::from_str(account).expect("JSON");
        let address = account["address"].as_str().expect("an address");
        run(
            &folder,
            &format!("prove --db {tree} {address} --out {name}"),
        )
        .ok();
        let root = folder.status(tree)["stateRoot"]
            .as_str()
            .expect("a root")
            .to_owned();
        let verify = format!("verify-proof --root {root} {name}");
        let plain = run(&folder, &verify).ok().stdout();
        gzip(name);
        let packed = run(&folder, &format!("{verify}.gz")).ok().stdout();
        assert_eq!(packed, plain);
    }
    // 17 MiB of nothing have 17 kB.
    fs::write(folder.path("long.ssz"), vec![0; 17 << 20]).expect("written");
    gzip("long.ssz");
    let root = format!("0x{}", "11".repeat(32));
    run(&folder, &format!("verify-proof --root {root} long.ssz.gz"))
        .fails_with(&["reading long.ssz.gz: it has more than 16777216 bytes"]);
}

/// Its 21 MB took 212 MB, of which the caches had 16: its accounts were one change, whose nodes
/// were computed at once.
#[test]
fn a_large_genesis_takes_little_memory() {
    let folder = Folder::new();
    let line = "generate --preset tiny --accounts 30000 --blocks 1 --txs 2 --out chain";
    run(&folder, line).ok();
    let line = "replay --memory 16MiB --threads 2 --db db --report report.json chain";
    let told = run(&folder, line).ok().stdout();
    assert!(
        told.contains("loaded 3") && told.contains(" accounts in "),
        "{told}"
    );
    let report = fs::read_to_string(folder.path("report.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let peak = report["process"]["peak_rss_bytes"].as_u64();
    assert!(
        peak.expect("Linux counts it") < 140_000_000,
        "{peak:?} bytes"
    );
    run(&folder, "verify --db db").ok();
}

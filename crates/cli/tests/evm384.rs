//! `arbor evm384` as a user runs it.

use std::collections::HashSet;
use std::process::Command;

use crate::support::{self, Folder};
use alloy_primitives::Bytes;
use arbor_evm384::{Backend, End, GasSchedule, Machine, Setup, reference};
use serde_json::Value;

#[test]
fn evm384_runs_prices_assembles_and_disassembles() {
    let folder = Folder::new();
    let check = folder.run(&["evm384", "run", "pairing-check", "--json"]);
    let check = check.ok().json();
    assert_eq!(check["end"], "returned");
    assert!(check["output"].as_str().expect("hex").ends_with("01"));
    // The interpreter and the engine use the same gas.
    let plain = folder.run(&["evm384", "run", "pairing-check", "--json", "--no-engine"]);
    assert_eq!(plain.ok().json(), check);

    let gas = folder.run(&[
        "evm384",
        "gas",
        "pairing",
        "--goal",
        "gas",
        "--schedule",
        "a",
        "--code",
        "pairing.hex",
        "--json",
    ]);
    let gas = gas.ok().json();
    assert!(gas["sampleGas"].as_u64().expect("a number") < 400_000);
    let copies = |routine: &Value| routine["copies"] == 0;
    assert!(
        gas["routines"]
            .as_array()
            .expect("routines")
            .iter()
            .all(copies)
    );

    let text = folder.run(&["evm384", "disasm", "pairing.hex"]);
    std::fs::write(folder.path("pairing.easm"), text.ok().stdout()).expect("written");
    let code = folder.run(&["evm384", "asm", "pairing.easm"]).ok().stdout();
    let written = std::fs::read_to_string(folder.path("pairing.hex")).expect("it was written");
    assert_eq!(code.trim_end(), written);
}

#[test]
fn evm384_says_what_is_wrong() {
    let folder = Folder::new();
    folder
        .run(&["evm384", "run", "pairing", "--interface", "eip-6690"])
        .fails_with(&["no form for eip-6690"]);
    std::fs::write(folder.path("wrong.easm"), "STOP\n  FLY").expect("written");
    folder.run(&["evm384", "asm", "wrong.easm"]).fails_with(&[
        "wrong.easm",
        "line 2, column 3",
        "FLY",
    ]);
    folder
        .run(&["evm384", "run", "wrong.easm"])
        .fails_with(&["wrong.easm", "not hex"]);
    folder
        .run(&["evm384", "run", "parring"])
        .fails_with(&["parring", "pairing-check"]);
    folder
        .run(&["evm384", "run", "pairing", "--interface", "v8"])
        .fails_with(&["v8", "immediate"]);
    folder
        .run(&["evm384", "gas", "nothing"])
        .fails_with(&["nothing", "pairing-check"]);
    // Too little gas is no failure of the command: the call says how it ended.
    let halted = folder.run(&["evm384", "run", "pairing", "--gas", "1000"]);
    assert!(halted.ok().stdout().starts_with("halted"));
}

/// Headers hold every root to what revm alone gave: code without the opcodes is executed as ever.
#[test]
fn a_chain_replays_with_any_interface_switched_on() {
    let folder = Folder::with_chain();
    let roots = |db: &str, more: &[&str]| {
        let arguments = [&["replay", "--db", db, "chain"], more].concat();
        folder.run(&arguments).ok();
        folder.status(db)["stateRoot"].clone()
    };
    let plain = roots("plain", &[]);
    assert!(plain.is_string(), "{plain}");
    for interface in ["v7", "immediate", "setmod", "eip-6690"] {
        assert_eq!(roots(interface, &["--evm384", interface]), plain);
    }
    // What a database was replayed with stays as it is.
    let again = |db: &str, more: &[&str]| {
        let words = ["replay", "--db", db, "--evm384", "immediate", "chain"];
        folder.run(&[&words, more].concat())
    };
    again("v7", &[]).fails_with(&["with --evm384 v7", "not with --evm384 immediate"]);
    again("plain", &[]).fails_with(&["without --gas and --evm384"]);
    again("immediate", &["--evm384-schedule", "a"]).fails_with(&["draft"]);
    again("immediate", &[]).ok();
    let rules = &folder.status("immediate")["rules"];
    assert_eq!(rules[0], "--evm384 immediate --evm384-schedule draft");
    // Words of the command line stood for the record before 2026-11-27.
    let record = std::fs::read(folder.path("v7/rules")).expect("remembered");
    let words = "--evm384 v7 --evm384-schedule draft\n";
    std::fs::write(folder.path("v7/rules"), words).expect("written");
    again("v7", &[]).fails_with(&["v7/rules is damaged", "asked for again"]);
    std::fs::write(folder.path("v7/rules"), record).expect("put back");
    folder.run(&["replay", "--db", "v7", "chain"]).ok();
    // Nothing is remembered of what no block was replayed with, nor said of blocks that were there before.
    let charged = ["replay", "--db", "charged", "--gas", "eip4762", "chain"];
    folder.run(&charged).fails_with(&["gasUsed"]);
    folder.run(&["replay", "--db", "charged", "chain"]).ok();
    std::fs::remove_file(folder.path("plain/rules")).expect("removed");
    folder.run(&["replay", "--db", "plain", "chain"]).ok();
    assert!(!folder.path("plain/rules").exists());
    // A witness notes the rules of its chain, which the command line has to ask for.
    let made = [
        "witness", "--db", "v7", "--block", "3", "--out", "3.json", "chain",
    ];
    folder.run(&made).ok();
    let text = std::fs::read_to_string(folder.path("3.json")).expect("a witness");
    let noted = "\"interface\":\"v7\"";
    assert!(text.contains(noted), "{text}");
    let replay = |more: &[&str]| folder.run(&[&["replay", "--witness", "3.json"], more].concat());
    replay(&[]).fails_with(&["3.json", "give --evm384 v7 --evm384-schedule draft"]);
    let replayed = replay(&["--evm384", "v7"]);
    assert!(replayed.ok().stdout().contains("holds"));
    let unknown = text.replace(noted, "\"interface\":\"v9\"");
    std::fs::write(folder.path("3.json"), unknown).expect("written");
    replay(&[]).fails_with(&["3.json", "v9"]);
    folder
        .run(&["replay", "--db", "other", "--evm384", "v8", "chain"])
        .fails_with(&["v8", "eip-6690"]);
    folder
        .run(&["replay", "--db", "other", "--evm384-schedule", "a", "chain"])
        .fails_with(&["--evm384"]);
}

/// What is printed is read back, as another implementer would, and executed by everything that executes.
#[test]
fn a_chain_without_operations_is_executed_by_both_and_timed() {
    let folder = Folder::with_chain();
    let words = [
        "bench", "engine", "chain", "--to", "12", "--rounds", "2", "--report", "r.json",
    ];
    let line = folder.run(&words).ok().stdout();
    assert!(line.starts_with("12 blocks, "), "{line}");
    let report = std::fs::read(folder.path("r.json")).expect("a report");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    for time in ["revm_s", "engine_s"] {
        assert!(report["results"][time].as_f64().expect("seconds") > 0.0);
    }
    folder
        .run(&["bench", "engine", "chain", "--rounds", "0"])
        .fails_with(&["--rounds"]);
}

#[test]
fn vectors_hold_when_they_are_read_back() {
    let folder = Folder::new();
    let file = folder
        .run(&["evm384", "vectors", "--schedule", "a"])
        .ok()
        .json();
    assert_eq!(file["schedule"]["mul"], 6);
    let cases = file["cases"].as_array().expect("cases");
    let (mut halts, mut results) = (0, 0);
    let mut names = HashSet::new();
    for case in cases {
        let text = |key: &str| case[key].as_str().expect("text");
        let bytes = |key: &str| text(key).parse::<Bytes>().expect("hex");
        let gas = |key: &str| case[key].as_u64().expect("a number");
        let name = (text("interface"), text("name"));
        assert!(names.insert(name), "{name:?} is there twice");
        for (backend, engine) in
            Backend::available().flat_map(|backend| [(backend, false), (backend, true)])
        {
            let setup = Setup {
                interface: text("interface").parse().expect("an interface"),
                schedule: GasSchedule::MODEL_A,
                backend,
                engine,
            };
            let mut machine = Machine::new(setup, bytes("code").to_vec());
            let outcome = machine
                .call(bytes("calldata"), gas("gas"))
                .expect("ordinary");
            let name = text("name");
            assert_eq!(outcome.gas_used, gas("gas_used"), "{name}");
            match (&outcome.end, text("end")) {
                (End::Returned(output), "returned") => {
                    assert_eq!(*output, bytes("output"), "{name}");
                    if let Some(result) = case["result"].as_str() {
                        let result: reference::U384 = result.parse().expect("hex");
                        assert_eq!(output[..48], result.to_le_bytes::<48>(), "{name}");
                        results += 1;
                    }
                }
                (End::Halted(reason), "halted") => {
                    assert_eq!(format!("{reason:?}"), text("halt"), "{name}");
                    halts += 1;
                }
                (end, _) => panic!("{name}: {end:?}"),
            }
        }
    }
    assert!(
        cases.len() > 1000 && halts > 100 && results > 1000,
        "{} {halts} {results}",
        cases.len()
    );
    let one = folder
        .run(&["evm384", "vectors", "--interface", "v7"])
        .ok()
        .json();
    assert!(
        one["cases"]
            .as_array()
            .is_some_and(|some| some.len() < cases.len())
    );
}

#[test]
fn evm384_debugs_by_commands_on_standard_input() {
    let folder = Folder::new();
    let text = "slot m = 0\nslot f = 64 2\npush 7 m MSTORE8 push 5 f MSTORE8\nADDMOD384 f+48 f f m\nSTOP\n";
    std::fs::write(folder.path("sum.easm"), text).expect("written");
    let debug = |contract: &str, commands: &str| {
        let run = folder.run_with_input(&["evm384", "debug", contract], commands);
        run.ok().stdout()
    };
    let answers = debug("sum.easm", "break f[1]\ncontinue\n");
    assert!(answers.contains("f[1] was written at"), "{answers}");
    assert!(answers.contains("(Montgomery 0x3)"), "{answers}");
    let answers = debug("sum.easm", "break at nowhere\nquit\n");
    assert!(
        answers.contains("no line or routine 'nowhere'"),
        "{answers}"
    );
    assert!(answers.ends_with("broken off\n"), "{answers}");
    let answers = debug("pairing", "break at multiply\ncontinue\nop\nprint f[0]\n");
    assert!(answers.contains("multiply: MULMODMONT384"), "{answers}");
    assert!(answers.contains("f[0] = 0x"), "{answers}");
    folder
        .run(&["evm384", "debug", "missing.easm"])
        .fails_with(&["missing.easm", "cannot be read"]);
    let map = folder.run(&["evm384", "asm", "sum.easm", "--map", "sum.json"]);
    map.ok();
    let map = std::fs::read_to_string(folder.path("sum.json")).expect("it was written");
    let map: Value = serde_json::from_str(&map).expect("JSON");
    assert_eq!(map["slots"][1]["name"], "f");
    assert_eq!(map["instructions"][4]["place"]["line"], 4);
}

/// `debug` named a file with code in hex in its help, and took text alone.
#[test]
fn evm384_debugs_code_of_which_there_is_no_text() {
    let folder = Folder::new();
    std::fs::write(folder.path("sum.hex"), "0x6001\n600201\n").expect("written");
    let debug = |contract: &str, commands: &str| {
        folder.run_with_input(&["evm384", "debug", contract], commands)
    };
    let answers = debug("sum.hex", "step 2\nstack\ncontinue\n").ok().stdout();
    assert!(answers.contains("0x0004: ADD"), "{answers}");
    assert!(answers.ends_with("ended, 9 gas\n"), "{answers}");
    // An instruction whose letters are hex digits is text.
    std::fs::write(folder.path("add.easm"), "ADD ADD").expect("written");
    let answers = debug("add.easm", "continue\n").ok().stdout();
    assert!(answers.ends_with("halted: StackUnderflow\n"), "{answers}");
    let help = folder.run(&["evm384", "debug", "--help"]).ok().stdout();
    assert!(!help.contains("`-` reads standard input"), "{help}");
    debug("-", "").fails_with(&["give the program as a file"]);
}

/// A program that is passed on must not print words of files that its writer could not read.
#[cfg(unix)]
#[test]
fn evm384_includes_files_of_the_programs_folder_alone() {
    let folder = Folder::new();
    let write = |name: &str, text: &str| std::fs::write(folder.path(name), text).expect("written");
    std::fs::create_dir_all(folder.path("program/parts")).expect("made");
    write("secret", "confidential words");
    write("program/parts/stop.easm", "STOP");
    write("program/up.easm", "include \"../secret\"");
    write("program/link.easm", "include \"linked\"");
    write(
        "program/inside.easm",
        "include \"parts/../parts/stop.easm\"",
    );
    let secret = folder.path("secret");
    let absolute = format!("include \"{}\"", secret.display());
    write("absolute.easm", &absolute);
    std::os::unix::fs::symlink(&secret, folder.path("program/linked")).expect("linked");
    let inside = folder.run(&["evm384", "asm", "program/inside.easm"]);
    assert_eq!(inside.ok().stdout(), "00\n");
    for (word, file) in [
        ("asm", "program/up.easm"),
        ("asm", "program/link.easm"),
        ("debug", "program/link.easm"),
    ] {
        let run = folder.run(&["evm384", word, file]);
        run.fails_with(&["outside the program's folder", "--include-outside"]);
        assert!(!run.stderr().contains("confidential"), "{}", run.stderr());
        folder
            .run(&["evm384", word, file, "--include-outside"])
            .fails_with(&["'confidential' is no instruction"]);
    }
    std::fs::create_dir(folder.path("elsewhere")).expect("made");
    std::fs::rename(
        folder.path("absolute.easm"),
        folder.path("elsewhere/a.easm"),
    )
    .expect("moved");
    let run = Command::new(env!("CARGO_BIN_EXE_arbor"))
        .args(["evm384", "asm", "a.easm"])
        .current_dir(folder.path("elsewhere"))
        .output();
    support::Run(run.expect("it runs")).fails_with(&["outside the program's folder"]);
}

/// The variable's name ended every command in a panic.
#[test]
fn an_unknown_backend_is_an_error_that_names_the_choices() {
    let folder = Folder::new();
    for words in [["evm384", "run", "sha1"], ["status", "--db", "db"]] {
        let run = Command::new(env!("CARGO_BIN_EXE_arbor"))
            .args(words)
            .env("ARBOR_BACKEND", "foo")
            .current_dir(folder.0.path())
            .output();
        let run = support::Run(run.expect("it runs"));
        run.fails_with(&["ARBOR_BACKEND", "'foo'", "portable, avx2, avx512"]);
        assert_eq!(run.0.status.code(), Some(1));
    }
}

/// Code and gas of a call without intrinsic gas, as go-ethereum 1.17.7 (core/vm/runtime) takes it: a transaction warms its sender, its
/// recipient, the coinbase and the precompiles. Each of them was charged as cold.
#[test]
fn evm384_warms_what_a_transaction_warms() {
    let folder = Folder::new();
    for (code, gas) in [
        ("3031", 102),
        ("3331", 102),
        ("3231", 102),
        ("4131", 102),
        ("600231", 103),
        ("61010031", 103),
        ("61020031", 2603),
        ("5f5f5f5f60025afa", 173),
        ("5f5f5f5f60025afa5f5f5f5f60025afa", 346),
        ("5f5f5f5f60055afa", 613),
    ] {
        std::fs::write(folder.path("code.hex"), code).expect("written");
        for more in [&[][..], &["--no-engine"]] {
            let words = [&["evm384", "run", "code.hex", "--json"], more].concat();
            let run = folder.run(&words).ok().json();
            assert_eq!(run["gasUsed"], gas, "{code} {more:?}");
        }
    }
}

/// The page kept the gas of contracts that had called cold precompiles.
#[test]
fn the_page_states_the_gas_that_contracts_take() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/evm384.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let folder = Folder::new();
    let (both, v7) = (&["v7", "immediate"][..], &["v7"][..]);
    for (contract, interfaces) in [
        ("pairing", both),
        ("pairing-check", both),
        ("g1-add", both),
        ("g2-add", both),
        ("g2-map", both),
        ("bls-verify", both),
        ("poseidon", both),
        ("bn254-mul", both),
        ("bls12-377-mul", both),
        ("ipa-verify", both),
        ("multiproof-verify", both),
        ("bn254-mul-words", v7),
        ("pairing-words", v7),
        ("pairing-check-words", v7),
        ("sha1", v7),
    ] {
        for interface in interfaces {
            let line = format!(
                "evm384 gas {contract} --interface {interface} --goal gas --schedule a --json"
            );
            let gas = folder.run(&line.split(' ').collect::<Vec<_>>());
            let gas = gas.ok().json()["sampleGas"].as_u64().expect("a number");
            let digits = gas.to_string();
            let groups: Vec<&str> = digits
                .as_bytes()
                .rchunks(3)
                .rev()
                .map(|group| std::str::from_utf8(group).expect("digits"))
                .collect();
            let gas = groups.join(",");
            assert!(page.contains(&gas), "{contract}, {interface}: {gas} gas");
        }
    }
}

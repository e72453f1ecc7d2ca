//! `arbor evm384` as a user runs it.

mod support;

use serde_json::Value;
use support::Folder;

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
    assert!(gas["sample_gas"].as_u64().expect("a number") < 400_000);
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
        .run(&["evm384", "run", "pairing", "--interface", "v8"])
        .fails_with(&["v8", "immediate"]);
    folder
        .run(&["evm384", "gas", "nothing"])
        .fails_with(&["nothing", "pairing-check"]);
    // Too little gas is no failure of the command: the call says how it ended.
    let halted = folder.run(&["evm384", "run", "pairing", "--gas", "1000"]);
    assert!(halted.ok().stdout().starts_with("halted"));
}

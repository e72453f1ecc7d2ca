//! What `replay --witness` and `recover` believe of a file, and the exit code of a verdict.

use std::path::Path;

use crate::support::{Folder, Run, shared};
use serde_json::{Value, json};

/// A folder with a generated chain of this id in `chain/`, its database `db`, and the witness of block 3 in `w.json`.
fn with_witness(chain_id: &str) -> Folder {
    let folder = Folder::new();
    let words = ["generate", "--preset", "tiny", "--out", "chain"];
    folder
        .run(&[&words[..], &["--chain-id", chain_id]].concat())
        .ok();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let words = ["witness", "--db", "db", "--block", "3", "chain"];
    folder
        .run(&[&words[..], &["--out", "w.json"]].concat())
        .ok();
    folder
}

fn replay(folder: &Folder, more: &[&str]) -> Run {
    folder.run(&[&["replay", "--witness", "w.json"], more].concat())
}

/// Changes the witness.
fn change(folder: &Folder, change: impl FnOnce(&mut Value)) {
    let text = std::fs::read_to_string(folder.path("w.json")).expect("a witness");
    let mut witness = serde_json::from_str(&text).expect("JSON");
    change(&mut witness);
    std::fs::write(folder.path("w.json"), witness.to_string()).expect("written");
}

const GENESIS: [&str; 2] = ["--genesis", "chain/genesis.json"];

/// Whose rules they were was not said, and the exit code was 0: a witness of an unknown chain shows that a block follows the rules that came with it.
#[test]
fn a_block_of_an_unknown_chain_has_a_partial_verdict() {
    let folder = with_witness("5");
    let run = replay(&folder, &[]);
    assert_eq!(run.0.status.code(), Some(3), "{}", run.stderr());
    assert!(
        run.stderr().starts_with("partial: 1 of 1 verdicts"),
        "{}",
        run.stderr()
    );
    let (line, said) = (run.stdout(), "the verdict is partial (chain 5 is not known");
    assert!(line.contains(said) && !line.contains(" holds"), "{line}");
    let line = replay(&folder, &["--accept-partial"]).ok().stdout();
    assert!(line.contains("the verdict is partial"), "{line}");
    let line = replay(&folder, &GENESIS).ok().stdout();
    for said in [
        "chain 5 block 3 holds",
        "judged by the genesis chain/genesis.json",
        "not checked: its seal, and whether it is in the canonical chain",
    ] {
        assert!(line.contains(said), "{line}");
    }
    // A fault is one, whatever else is partial.
    std::fs::write(folder.path("bad.json"), "{}").expect("written");
    let both = replay(&folder, &["bad.json"]);
    assert_eq!(both.0.status.code(), Some(1));
    folder
        .run(&["replay", "--db", "db", "--accept-partial", "chain"])
        .fails_with(&["--accept-partial is of no use without --witness"]);
}

/// The specification of generated chains is built in.
#[test]
fn a_generated_block_holds_by_the_generator_s_rules() {
    let folder = with_witness("77120");
    let line = replay(&folder, &[]).ok().stdout();
    let said = "judged by the rules of the chains that `arbor generate` makes;";
    assert!(
        line.contains("chain 77120 block 3 holds") && line.contains(said),
        "{line}"
    );
    change(&folder, |witness| {
        witness["config"]["osakaTime"] = json!(1_u64 << 40);
    });
    assert_eq!(replay(&folder, &[]).0.status.code(), Some(3));
}

/// The rewards, the bomb, the blobs and the deposit contract of the witness were taken, also with --genesis.
#[test]
fn a_configuration_other_than_the_genesis_is_refused_by_its_field() {
    for (field, value, named) in [
        (
            "ecip1017Block",
            json!(0),
            "the block reward is that of ecip1017Block 0",
        ),
        ("disposalBlock", json!(0), "the difficulty bomb is that of"),
        (
            "depositContractAddress",
            json!("0x00000000000000000000000000000000000000aa"),
            "depositContractAddress is 0x00000000000000000000000000000000000000AA",
        ),
        (
            "osakaTime",
            json!(0),
            "Osaka starts at time 0 instead of never",
        ),
        (
            "blobSchedule",
            json!({"cancun": {"target": 9, "max": 9, "baseFeeUpdateFraction": 1}}),
            "blobSchedule is [",
        ),
    ] {
        let folder = with_witness("5");
        change(&folder, |witness| witness["config"][field] = value);
        replay(&folder, &GENESIS).fails_with(&["w.json", named, "another chain"]);
    }
    let folder = with_witness("5");
    change(&folder, |witness| {
        witness["chainId"] = json!(6);
        witness["config"] = Value::Null;
    });
    replay(&folder, &GENESIS).fails_with(&["it is of chain 6, the genesis given of chain 5"]);
}

/// A chain that has a public network's id has its rules, or a genesis on the command line.
#[test]
fn another_chain_s_configuration_is_not_mainnet_s() {
    let folder = with_witness("1");
    replay(&folder, &[]).fails_with(&["chain id of mainnet", "Homestead starts at block 0"]);
    let line = replay(&folder, &GENESIS).ok().stdout();
    assert!(line.contains("chain 1 block 3 holds"), "{line}");
    change(&folder, |witness| {
        witness.as_object_mut().expect("an object").remove("config");
    });
    replay(&folder, &[]).fails_with(&["block 3"]);
}

/// EVM384 and the gas of EIP-4762 were switched on by the witness, for every chain.
#[test]
fn a_witness_does_not_switch_rules_on() {
    let folder = with_witness("5");
    let words = ["replay", "--db", "other", "--evm384", "v7", "chain"];
    folder.run(&words).ok();
    let words = ["witness", "--db", "other", "--block", "3", "chain"];
    let other = folder.run(&words).ok().stdout();
    let other: Value = serde_json::from_str(&other).expect("JSON");
    change(&folder, |witness| witness["rules"] = other["rules"].clone());
    for more in [&[][..], &GENESIS] {
        replay(&folder, more).fails_with(&[
            "the witness notes that blocks are executed with --evm384 v7",
            "blocks without --gas and --evm384",
        ]);
    }
    let asked = replay(&folder, &[&GENESIS[..], &["--evm384", "v7"]].concat());
    let line = asked.ok().stdout();
    assert!(line.contains("genesis.json with --evm384 v7"), "{line}");
}

/// `recover` kept rules and genesis of a snapshot without a word, although its root does not cover them.
#[test]
fn a_recovery_says_what_its_root_does_not_cover() {
    let recover = |folder: &Folder, db: &str, more: &[&str]| {
        folder.run(&[&["recover", "--db", db, "list"], more].concat())
    };
    let with_list = |chain_id: &str, more: &[&str]| {
        let folder = with_witness(chain_id);
        let words = ["replay", "--db", "ar16mt", "--tree", "ar16mt", "chain"];
        folder.run(&[&words[..], more].concat()).ok();
        folder
            .run(&["snapshot", "--db", "ar16mt", "--out", "list"])
            .ok();
        folder
    };
    let folder = with_list("5", &[]);
    let said = recover(&folder, "one", &[]).ok().stdout();
    for part in [
        "not covered by the root: chain 5, genesis 0x",
        "taken from the snapshot",
        "Prague at time 0",
        "rules: none",
        "block 12 with hash 0x",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let said = recover(&folder, "two", &GENESIS).ok().stdout();
    assert!(
        said.contains("the same in every field as that of --genesis"),
        "{said}"
    );
    let text = std::fs::read_to_string(folder.path("chain/genesis.json")).expect("a genesis");
    let mut other: Value = serde_json::from_str(&text).expect("JSON");
    other["config"]["ecip1017Block"] = json!(0);
    std::fs::write(folder.path("other.json"), other.to_string()).expect("written");
    recover(&folder, "three", &["--genesis", "other.json"]).fails_with(&[
        "list",
        "the block reward is Ethereum's instead of that of ecip1017Block 0",
    ]);
    recover(&folder, "three", &["--genesis", "sepolia"])
        .fails_with(&["chainId is 5 instead of 11155111"]);
    recover(&folder, "three", &["--gas", "eip4762"])
        .fails_with(&["the snapshot notes that blocks are executed without --gas"]);
    assert!(!folder.path("three").join("rules").exists());
    let folder = with_list("1", &[]);
    recover(&folder, "one", &[])
        .fails_with(&["not that of mainnet", "Homestead starts at block 0"]);
    recover(&folder, "one", &GENESIS).ok();
    let folder = with_list("5", &["--evm384", "v7"]);
    recover(&folder, "one", &[]).fails_with(&["with --evm384 v7", "give --evm384 v7"]);
    let said = recover(&folder, "one", &["--evm384", "v7"]).ok().stdout();
    assert!(said.contains("rules: --evm384 v7"), "{said}");
}

/// Some producers put all preimages into one list. A code among the nodes was read as a node because an account refers to it, and so was the
/// empty string, whose hash every account without code has.
#[test]
fn spare_entries_do_no_harm() {
    let folder = with_witness("77120");
    change(&folder, |witness| {
        let mut spare = witness["codes"].as_array().expect("codes").clone();
        assert!(!spare.is_empty());
        spare.extend(["0x", "0x80", "0xc0", "0xff00", "0xdeadbeef"].map(Value::from));
        let nodes = witness["stateNodes"].as_array_mut().expect("nodes");
        nodes.extend(spare);
    });
    replay(&folder, &[]).ok();
    let said = folder.run(&["verify-witness", "w.json"]).ok().stdout();
    assert!(said.contains(" 0 other codes"), "{said}");
}

/// A block with more gas than can be executed was executed for ever.
#[test]
fn gas_has_a_bound_that_the_command_line_raises() {
    let folder = with_witness("77120");
    let bound = ["--max-gas", "100000"];
    let said = "the bound is 100000 (--max-gas)";
    replay(&folder, &bound).fails_with(&["w.json", "block 3", said]);
    let replayed = ["replay", "--db", "new", "chain"];
    folder
        .run(&[&replayed[..], &bound].concat())
        .fails_with(&["block 1 ", said]);
    let floor = ["replay", "--tree", "none", "chain"];
    folder
        .run(&[&floor[..], &bound].concat())
        .fails_with(&["block 1 ", said]);
    replay(&folder, &["--max-gas", "3000000"]).ok();
}

/// Case 70: the receipts of a block before Byzantium carry roots, for which its witness lacked nodes. Case 56: the witness of a block that touches nothing was
/// refused for want of a root node, and under Verkle there was none.
#[test]
fn witnesses_of_blocks_with_roots_in_receipts_and_of_empty_blocks_hold() {
    let test = "witnesses_of_blocks_with_roots_in_receipts_and_of_empty_blocks_hold";
    for case in ["70-witness-receipts-with-roots", "56-block-touches-nothing"] {
        let Some(case) = shared(&format!("cases/{case}"), test) else {
            return;
        };
        let of_case = |name: &str| Path::new(&case).join(name).display().to_string();
        let (chain, genesis) = (of_case("chain.rlp"), of_case("genesis.json"));
        let folder = Folder::new();
        let words = [
            "replay",
            "--db",
            "db",
            "--retain",
            "all",
            "--genesis",
            &genesis,
            &chain,
        ];
        folder.run(&words).ok();
        let words = [
            "witness", "--db", "db", "--block", "1", "--to", "2", "--out", "made", &chain,
        ];
        folder.run(&words).ok();
        for file in ["made/1.json", "made/2.json"] {
            folder.run(&["verify-witness", file]).ok();
            folder
                .run(&["replay", "--genesis", &genesis, "--witness", file])
                .ok();
        }
    }
}

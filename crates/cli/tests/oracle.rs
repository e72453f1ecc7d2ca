//! The root of a state, its leaves with their names, and where two lists of leaves differ.

use std::io::Write;

use crate::support::{Folder, roots};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

const ORACLE: [&str; 3] = ["oracle", "--tree", "eip8297"];

fn write(folder: &Folder, name: &str, text: &str) {
    std::fs::write(folder.path(name), text).expect("written");
}

/// The same state as a genesis, as its alloc alone, and as a dump has the root that a database has.
#[test]
fn the_root_is_that_of_a_database() {
    let folder = Folder::with_chain();
    let words = [
        "replay", "--db", "db", "--tree", "eip8297", "--to", "1", "chain",
    ];
    folder.run(&words).ok();
    let root = roots(&folder, "db")[0]
        .rsplit(' ')
        .next()
        .expect("a root")
        .to_owned();
    let oracle = |state: &str| {
        let words = [&ORACLE[..], &["--json", state]].concat();
        folder.run(&words).ok().json()
    };
    let genesis = oracle("chain/genesis.json");
    assert_eq!(genesis["root"], root.as_str());
    let dump = folder
        .run(&["dump", "--db", "db", "--at", "0"])
        .ok()
        .stdout();
    write(&folder, "state.jsonl", &dump);
    assert_eq!(oracle("state.jsonl"), genesis);
    let text = std::fs::read_to_string(folder.path("chain/genesis.json")).expect("read");
    let whole: Value = serde_json::from_str(&text).expect("JSON");
    write(&folder, "alloc.json", &whole["alloc"].to_string());
    assert_eq!(oracle("alloc.json"), genesis);
    // A state test's, and a dump of geth in one object.
    let of_test = json!({ "env": {}, "pre": whole["alloc"], "post": {} });
    write(&folder, "test.json", &of_test.to_string());
    assert_eq!(oracle("test.json"), genesis);
    let mut lines = dump
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut object = lines.next().expect("a root");
    let accounts = lines.map(|account| {
        let address = account["address"].as_str().expect("an address").to_owned();
        (address, account)
    });
    object["accounts"] = Value::Object(accounts.collect());
    write(&folder, "dump.json", &object.to_string());
    assert_eq!(oracle("dump.json"), genesis);
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(dump.as_bytes()).expect("packed");
    let packed = packed.finish().expect("packed");
    std::fs::write(folder.path("state.gz"), packed).expect("written");
    assert_eq!(oracle("state.gz"), genesis);
    let words = [&ORACLE[..], &["--json", "-"]].concat();
    assert_eq!(folder.run_with_input(&words, &dump).ok().json(), genesis);
    // A database is read at its latest block.
    folder.run(&["rollback", "--db", "db", "--to", "0"]).ok();
    assert_eq!(oracle("db"), genesis);
    let leaves = genesis["leaves"].as_array().expect("a list");
    assert!(leaves.len() >= 2 * genesis["accounts"].as_u64().expect("a number") as usize);
}

/// A dump of hashed keys, or without codes, gave a root that no state has.
#[test]
fn a_state_without_names_or_codes_is_refused() {
    let folder = Folder::new();
    let (hash, address) = (format!("0x{}", "ab".repeat(32)), "11".repeat(20));
    let head = format!("{{\"root\":\"{hash}\"}}\n");
    let line = |more: &str| format!("{head}{{\"balance\":\"1\",\"nonce\":1,{more}}}\n");
    for (text, wanted) in [
        (String::new(), "it is empty"),
        (line(&format!("\"key\":\"{hash}\"")), "lacks its preimage"),
        (
            line(&format!(
                "\"address\":\"0x{address}\",\"codeHash\":\"{hash}\""
            )),
            "is missing: dump without --nocode",
        ),
        (
            line(&format!("\"address\":\"0x{address}\"")),
            "accounts or slots are missing or were changed",
        ),
        (
            format!(
                "{{\"{address}\":{{\"balance\":\"1\"}},\"0x{address}\":{{\"balance\":\"2\"}}}}"
            ),
            "is listed twice",
        ),
    ] {
        write(&folder, "state", &text);
        let words = [&ORACLE[..], &["state"]].concat();
        folder.run(&words).fails_with(&["reading state", wanted]);
        let words = [&ORACLE[..], &["-"]].concat();
        folder.run_with_input(&words, &text).fails_with(&[wanted]);
    }
    folder
        .run(&[&ORACLE[..], &["nowhere"]].concat())
        .fails_with(&["nowhere"]);
}

/// Databases are compared at their latest blocks, under any tree that has leaves.
#[test]
fn databases_are_compared_by_their_leaves() {
    let folder = Folder::with_chain();
    for (db, tree, to) in [
        ("a", "eip8297", "3"),
        ("b", "mpt", "3"),
        ("c", "eip8297", "2"),
    ] {
        let words = ["replay", "--db", db, "--tree", tree, "--to", to, "chain"];
        folder.run(&words).ok();
    }
    let words = [&ORACLE[..], &["--json", "b"]].concat();
    let list = folder.run(&words).ok().json();
    let root = list["root"].as_str().expect("a root");
    assert!(roots(&folder, "a").last().expect("a root").ends_with(root));
    write(&folder, "list", &list.to_string());
    let leaves = list["leaves"].as_array().expect("leaves").iter();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let values = leaves.map(|leaf| (text(&leaf["key"]), leaf["value"].clone()));
    let values: serde_json::Map<String, Value> = values.collect();
    // As `evm t8n` writes them to a file, and to standard output.
    write(&folder, "values", &json!(values).to_string());
    write(&folder, "vkt", &json!({ "vkt": values }).to_string());
    for other in ["list", "values", "vkt"] {
        folder.run(&["diff", "a", other]).ok();
    }
    folder.run(&["diff", "a", "b", "--tree", "eip7864"]).ok();
    let run = folder.run(&["diff", "a", "c"]);
    let differ = run.fails_with(&["leaves differ between a (", "the first of them account 0x"]);
    assert!(
        differ
            .stdout()
            .lines()
            .all(|line| line.starts_with("account 0x"))
    );
    folder
        .run(&["diff", "a", "b"])
        .fails_with(&["reading b", "mpt", "--tree"]);
    write(&folder, "empty", "");
    write(&folder, "no-leaves", "root 0x00\n");
    folder
        .run(&["diff", "a", "empty"])
        .fails_with(&["reading empty: it is empty"]);
    folder
        .run(&["diff", "no-leaves", "no-leaves"])
        .fails_with(&["nothing was compared"]);
    folder
        .run(&["diff", "a", "no-leaves"])
        .fails_with(&["no-leaves (0)"]);
    folder.run(&["diff", "-", "-"]).fails_with(&["not both"]);
}

#[test]
fn leaves_that_differ_are_named() {
    let folder = Folder::new();
    let (one, two) = (
        format!("0x{}", "11".repeat(20)),
        format!("0x{}", "22".repeat(20)),
    );
    let alloc = |balance: u64, slot: u64, code: &str| {
        let code = json!({"balance": "0x0", "code": code, "storage": {"0x05": format!("{slot:#x}"), "0x0400": "0x7"}});
        json!({"alloc": {one.clone(): {"balance": balance.to_string(), "nonce": 3}, two.clone(): code}}).to_string()
    };
    write(&folder, "a.json", &alloc(5, 6, "0x6001"));
    write(&folder, "b.json", &alloc(5, 9, "0x6002"));
    for (list, state) in [("a", "a.json"), ("b", "b.json")] {
        let prove = format!("{two}:5,1");
        let words = [&ORACLE[..], &["--json", "--prove", &prove, state]].concat();
        let run = folder.run(&words);
        let found = run.ok();
        write(&folder, &format!("{list}.list"), &found.stdout());
        let found = found.json();
        let proof = &found["proofs"][0];
        write(&folder, "proof.json", &proof.to_string());
        let root = found["root"].as_str().expect("a root");
        folder
            .run(&["verify-proof", "proof.json", "--root", root])
            .ok();
        let words = [&ORACLE[..], &[state]].concat();
        write(
            &folder,
            &format!("{list}.lines"),
            &folder.run(&words).ok().stdout(),
        );
    }
    folder.run(&["diff", "a.list", "a.lines"]).ok();
    let differ = |b: &str| {
        let run = folder.run(&["diff", "a.list", b]);
        run.fails_with(&["4 of 8 leaves differ"]).stdout()
    };
    let (by_json, by_lines) = (differ("b.list"), differ("b.lines"));
    assert_eq!(by_json, by_lines);
    assert!(
        by_json.contains(&format!("account {two} slot 0x5: 0x")),
        "{by_json}"
    );
    assert!(
        by_json.contains(&format!("account {two} code hash: 0x")),
        "{by_json}"
    );
    assert_eq!(
        by_json
            .lines()
            .filter(|line| line.contains("chunk 0"))
            .count(),
        2
    );
    assert!(!by_json.contains(&one), "{by_json}");
    // Another client's list has keys and values alone.
    let bare = std::fs::read_to_string(folder.path("b.lines")).expect("read");
    let bare: Vec<String> = bare
        .lines()
        .skip(1)
        .map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(","))
        .collect();
    write(&folder, "bare", &bare.join("\n"));
    let by_bare = differ("bare");
    assert!(
        by_bare.contains(&format!("account {two} slot 0x5: 0x")),
        "{by_bare}"
    );
    write(&folder, "nothing", "no leaves");
    folder
        .run(&["diff", "a.list", "nothing"])
        .fails_with(&["nothing", "no leaves"]);
    let words = [
        "oracle", "--tree", "eip8297", "--hash", "sha256", "a.json", "--json",
    ];
    let other = folder.run(&words).ok().json();
    let words = [&ORACLE[..], &["a.json", "--json"]].concat();
    assert_ne!(other["root"], folder.run(&words).ok().json()["root"]);
    let rich = json!({two: {"balance": format!("0x1{}", "0".repeat(32))}}).to_string();
    write(&folder, "rich.json", &rich);
    folder
        .run(&[&ORACLE[..], &["rich.json"]].concat())
        .fails_with(&["balance", "EIP-8297"]);
}

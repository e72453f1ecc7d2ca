//! The root of a state, its leaves with their names, and where two lists of leaves differ.

mod support;

use serde_json::{Value, json};
use support::{Folder, roots};

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
    let leaves = genesis["leaves"].as_array().expect("a list");
    assert!(leaves.len() >= 2 * genesis["accounts"].as_u64().expect("a number") as usize);
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

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
    // Leaves of different trees were all printed as different.
    let run = folder.run(&["diff", "a", "b"]);
    let refused = run.fails_with(&[
        "the trees differ",
        "a has leaves of eip8297 (",
        "b of mpt (",
        "--tree T",
    ]);
    assert_eq!(refused.stdout(), "");
    folder
        .run(&["diff", "b", "b"])
        .fails_with(&["reading b", "mpt", "--tree"]);
    folder
        .run(&["diff", "b", "list"])
        .fails_with(&["the trees differ", "list of eip8297 ("]);
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

/// The leaves of zeros that a tree keeps of slots that were cleared were left out, and the root that was printed was not
/// the database's.
#[test]
fn a_database_has_its_own_root_and_the_leaves_of_its_tree() {
    let folder = Folder::with_chain();
    for (tree, more, keeps_zeros) in [
        ("eip7864", &["--hash", "sha256"][..], true),
        ("eip7864-a", &[], true),
        ("verkle", &[], true),
        ("verkle-2023", &[], true),
        ("eip8297", &["--hash", "keccak256"], false),
        ("mpt", &[], false),
        ("ar16mt", &[], false),
    ] {
        let words = ["replay", "--db", tree, "--tree", tree, "chain"];
        folder.run(&[&words[..], more].concat()).ok();
        let file = format!("{tree}.snapshot");
        folder.run(&["snapshot", "--db", tree, "--out", &file]).ok();
        let status = folder.status(tree);
        // The hash function is the database's, and the tree too.
        let found = folder.run(&["oracle", "--json", tree]).ok().json();
        let of_tree = folder.run(&["oracle", "--tree", tree, "--json", tree]);
        assert_eq!(of_tree.ok().json(), found, "{tree}");
        let of_snapshot = folder.run(&["oracle", "--json", &file]);
        assert_eq!(of_snapshot.ok().json(), found, "{tree}");
        assert_eq!(found["root"], status["stateRoot"], "{tree}");
        assert_eq!(found["hash"], status["hash"], "{tree}");
        assert_eq!(found["tree"], tree);
        let (accounts, slots) = folder.accounts_and_slots(tree);
        assert_eq!(found["accounts"], accounts, "{tree}");
        let Some(leaves) = found["leaves"].as_array() else {
            let run = folder.run(&["oracle", tree]);
            assert_eq!(run.ok().stdout().lines().count(), 1);
            assert!(run.stderr().contains("only the root"), "{}", run.stderr());
            write(&folder, "list", &found.to_string());
            folder.run(&["diff", "list", tree]).fails_with(&[
                "reading list",
                "only the root",
                tree,
            ]);
            continue;
        };
        let is_slot = |leaf: &&Value| leaf["of"].as_str().expect("text").contains(" slot ");
        let zero = format!("0x{}", "0".repeat(64));
        let zeros = leaves.iter().filter(is_slot);
        let zeros = zeros.filter(|leaf| leaf["value"] == zero.as_str()).count() as u64;
        assert_eq!(zeros > 0, keeps_zeros, "{tree}");
        let all = leaves.iter().filter(is_slot).count() as u64;
        assert_eq!(all - zeros, slots, "{tree}");
        write(&folder, "list", &found.to_string());
        folder.run(&["diff", "list", tree]).ok();
        folder.run(&["diff", "--tree", tree, tree, "list"]).ok();
        // A state without a history has the root of a new tree.
        let dump = folder.run(&["dump", "--db", tree]).ok().stdout();
        write(&folder, "dump", &dump);
        let words = ["oracle", "--tree", tree, "--json", "dump"];
        let new = folder.run(&[&words[..], more].concat()).ok().json();
        assert_eq!(new["root"] == found["root"], !keeps_zeros, "{tree}");
    }
    // Both are compared as new trees, and standard error says it.
    let run = folder.run(&["diff", "--tree", "verkle", "verkle", "eip7864"]);
    let said = run.ok().stderr();
    assert!(said.contains("zeros"), "{said}");
    let run = folder.run(&["oracle", "--tree", "eip8297", "eip7864"]);
    let said = run.ok().stderr();
    assert!(
        said.contains("eip7864 has the tree eip7864 (sha256)"),
        "{said}"
    );
    assert!(said.contains("eip8297 (blake3)"), "{said}");
}

/// The root of a genesis is that of block 0, under every tree.
#[test]
fn every_tree_has_the_root_of_a_genesis() {
    let folder = Folder::with_chain();
    for tree in [
        "mpt",
        "verkle",
        "verkle-2023",
        "ar16mt",
        "eip8297",
        "eip7864",
        "eip7864-a",
    ] {
        let words = ["replay", "--db", tree, "--tree", tree, "--to", "0", "chain"];
        folder.run(&words).ok();
        let words = ["oracle", "--tree", tree, "--json", "chain/genesis.json"];
        let found = folder.run(&words).ok().json();
        assert_eq!(found["root"], folder.status(tree)["stateRoot"], "{tree}");
    }
    folder
        .run(&["oracle", "chain/genesis.json"])
        .fails_with(&["chain/genesis.json", "--tree"]);
}

/// Lines with a malformed key were passed over, and the leaf counted as absent.
#[test]
fn a_malformed_leaf_is_an_error_with_its_line() {
    let folder = Folder::new();
    let key = "11".repeat(32);
    let good = format!("# a comment\nkey,value\n\n0x{key} 0x{key} account\n");
    write(&folder, "good", &good);
    for (text, wanted) in [
        (
            format!("{good}0x1z {key}"),
            &["line 5", "0x1z", "not hexadecimal"][..],
        ),
        (
            format!("{good}0x123 {key}"),
            &["line 5", "0x123", "not hexadecimal"],
        ),
        (format!("{good}{key}"), &["line 5", "no value"]),
        (format!("{good}12,"), &["line 5", "no value"]),
        (
            format!("{good}0x12 0x1234"),
            &["line 5", "2 bytes instead of 32"],
        ),
        (
            format!("{good}0x{key}\t0x{key}"),
            &["line 5", "comes twice"],
        ),
        (
            format!("{{\"{key}\": \"0x{key}\",\n\"0x1z\": \"0x{key}\"}}"),
            &["line 2", "0x1z", "not hexadecimal"],
        ),
        (
            "{\"leaves\": [\n{\"key\": \"0x12\", \"value\": \"0x12\"}]}".to_owned(),
            &["leaf 0 in line 2", "1 bytes instead of 32"],
        ),
        (
            "{\"leaves\": [{\"key\": \"0x12\"}]}".to_owned(),
            &["leaf 0 has no value"],
        ),
    ] {
        write(&folder, "bad", &text);
        let run = folder.run(&["diff", "good", "bad"]);
        run.fails_with(&[&["reading bad"], wanted].concat());
    }
    write(&folder, "same", &format!("0x{key}, 0x{key}"));
    folder.run(&["diff", "good", "same"]).ok();
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

//! Preimages of whole states: audits, exports, imports, and conversions of dumps of hashed keys.

use std::collections::BTreeMap;

use crate::support::{Folder, shared};
use alloy_primitives::{B256, hex, keccak256};
use serde_json::{Map, Value, json};

/// The names of all trees.
fn trees() -> Vec<&'static str> {
    let rows = arbor_trees::standard();
    rows.rows().map(|row| row.name).collect()
}

/// The chain at block 20 in `db`, and its dump as `geth snapshot dump` would write it: hashed keys, values in RLP.
fn with_hashed_dump(tree: &str) -> (Folder, Vec<Value>) {
    let folder = Folder::with_chain();
    let words = [
        "replay", "--db", "db", "--tree", tree, "--memory", "64MiB", "--to", "6", "chain",
    ];
    folder.run(&words).ok();
    let text = folder.run(&["dump", "--db", "db"]).ok().stdout();
    let mut lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON line"))
        .collect();
    for line in &mut lines[1..] {
        let account = line.as_object_mut().expect("an object");
        account.remove("address");
        if let Some(Value::Object(storage)) = account.get("storage").cloned() {
            let hashed: Map<String, Value> = storage.iter().map(hashed).collect();
            account.insert("storage".to_owned(), hashed.into());
        }
    }
    write(&folder, "hashed", &lines);
    (folder, lines)
}

fn hashed((slot, value): (&String, &Value)) -> (String, Value) {
    let number: B256 = slot.parse().expect("a slot");
    let value = hex::decode(value.as_str().expect("a text")).expect("digits");
    let rlp = match value[..] {
        [byte] if byte < 0x80 => value,
        _ => [&[0x80 + value.len() as u8], &value[..]].concat(),
    };
    (keccak256(number).to_string(), hex::encode(rlp).into())
}

fn write(folder: &Folder, name: &str, lines: &[Value]) {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(folder.path(name), lines.join("\n")).expect("written");
}

fn accounts(folder: &Folder, db: &str) -> BTreeMap<String, Value> {
    let text = folder.run(&["dump", "--db", db]).ok().stdout();
    let lines = text.lines().skip(1).map(|line| {
        let account: Value = serde_json::from_str(line).expect("a JSON line");
        (account["address"].to_string(), account)
    });
    lines.collect()
}

#[test]
fn hashed_dumps_are_converted_with_preimages_of_every_form() {
    let (folder, _) = with_hashed_dump(trees()[0]);
    let wanted = accounts(&folder, "db");
    let forms = ["eip8347", "strings"];
    for form in forms {
        let words = ["preimages", "export", "--db", "db", "--form"];
        folder
            .run(&[&words[..], &[form, "--out", form]].concat())
            .ok();
        for from in ["hashed", "db"] {
            let words = ["preimages", "audit", "--json", "--from", from];
            let words = [&words[..], &["--preimages", form]].concat();
            let found = folder.run(&words).ok().json();
            assert_eq!(found["accounts"], wanted.len());
            assert_eq!(found["missing"], json!([]));
        }
    }
    for (tree, form) in trees().into_iter().zip(forms.into_iter().cycle()) {
        let words = ["convert", "--from", "hashed", "--to", "to", "--tree", tree];
        let names = ["--preimages", form, "--memory", "64MiB"];
        let chain = ["--ancestors", "chain", "--at", "6"];
        folder.run(&[&words[..], &names, &chain].concat()).ok();
        assert_eq!(accounts(&folder, "to"), wanted, "{tree} with {form}");
        // Another tree has the names in another order, and exports the same file.
        let words = ["preimages", "export", "--db", "to", "--out", "of-tree"];
        folder.run(&words).ok();
        same_as_exported(&folder, "of-tree");
        let words = ["replay", "--db", "to", "--memory", "64MiB"];
        let words = [&words[..], &["--check-state", "1", "chain"]].concat();
        folder.run(&words).ok();
        for made in ["to", "of-tree"] {
            let path = folder.path(made);
            let removed = match path.is_dir() {
                true => std::fs::remove_dir_all(path),
                false => std::fs::remove_file(path),
            };
            removed.expect("removed");
        }
    }
}

/// Compares a file with the export in EIP-8347's form.
fn same_as_exported(folder: &Folder, name: &str) {
    let read = |name| std::fs::read(folder.path(name)).expect("read");
    assert!(read(name) == read("eip8347"), "{name}");
}

#[test]
fn files_of_preimages_are_imported() {
    let (folder, _) = with_hashed_dump(trees()[0]);
    for form in ["eip8347", "strings"] {
        let words = ["preimages", "export", "--db", "db", "--form"];
        folder
            .run(&[&words[..], &[form, "--out", form]].concat())
            .ok();
    }
    let import = [
        "preimages",
        "import",
        "strings",
        "--from",
        "hashed",
        "--out",
        "imported",
    ];
    folder.run(&import).ok();
    same_as_exported(&folder, "imported");
    // As in framed.bin, records lie in another order.
    let records = std::fs::read(folder.path("eip8347")).expect("read");
    let mut rest = &records[..];
    let mut framed = Vec::new();
    while !rest.is_empty() {
        let slots = u32::from_be_bytes(rest[20..24].try_into().expect("four bytes"));
        let (record, after) = rest.split_at(24 + 32 * slots as usize);
        let (head, slots) = record.split_at(24);
        let mut slots: Vec<&[u8]> = slots.chunks(32).collect();
        slots.sort_unstable();
        framed.push([head, &slots.concat()].concat());
        rest = after;
    }
    framed.sort_unstable();
    std::fs::write(folder.path("framed.bin"), framed.concat()).expect("written");
    folder
        .run(&["preimages", "import", "framed.bin", "--out", "sorted"])
        .ok();
    same_as_exported(&folder, "sorted");
    folder
        .run(&["preimages", "import", "strings", "--out", "none"])
        .fails_with(&["strings", "--from"]);
}

#[test]
fn missing_names_are_listed_by_account_before_anything_is_built() {
    let (folder, lines) = with_hashed_dump(trees()[0]);
    let words = [
        "preimages",
        "export",
        "--db",
        "db",
        "--form",
        "strings",
        "--out",
        "all",
    ];
    folder.run(&words).ok();
    let all = std::fs::read(folder.path("all")).expect("read");
    // Without the first account's address, and without a slot of another.
    let mut kept = Vec::new();
    let (mut rest, mut slots, mut lost_slot) = (&all[21..], 0, B256::ZERO);
    let lost = keccak256(&all[1..21]);
    while !rest.is_empty() {
        let length = if rest[0] == 0x94 { 21 } else { 33 };
        let (string, after) = rest.split_at(length);
        slots += usize::from(length == 33);
        match slots == 5 && lost_slot.is_zero() {
            true => lost_slot = keccak256(&string[1..]),
            // The same number may be a slot of other accounts.
            false if length == 33 && keccak256(&string[1..]) == lost_slot => {}
            false => kept.extend_from_slice(string),
        }
        rest = after;
    }
    let kept: Vec<u8> = {
        let (mut rest, mut out) = (&kept[..], Vec::new());
        while !rest.is_empty() {
            let (string, after) = rest.split_at(if rest[0] == 0x94 { 21 } else { 33 });
            if keccak256(&string[1..]) != lost_slot {
                out.extend_from_slice(string);
            }
            rest = after;
        }
        out
    };
    std::fs::write(folder.path("some"), kept).expect("written");
    let lacking = lines[1..].iter().filter(|line| {
        let storage = line.get("storage").and_then(Value::as_object);
        storage.is_some_and(|slots| slots.contains_key(&lost_slot.to_string()))
    });
    let lacking = lacking.count() as u64;
    assert!(lacking > 0);
    let audit = [
        "preimages",
        "audit",
        "--from",
        "hashed",
        "--preimages",
        "some",
    ];
    let found = folder.run(&[&audit[..], &["--json"]].concat());
    let report = found.json();
    assert_eq!(report["missingAccounts"], 1);
    assert_eq!(report["missingSlots"], lacking);
    let missing = report["missing"].as_array().expect("a list");
    assert_eq!(missing.len() as u64, 1 + lacking);
    let account = missing.iter().find(|missing| missing["slotKey"].is_null());
    let account = account.expect("an account");
    assert_eq!(account["key"], lost.to_string());
    assert!(account["address"].is_null());
    found.fails_with(&["hashed keys have no preimage"]);
    // The file does not fit the database either.
    let words = ["preimages", "audit", "--from", "db", "--preimages", "some"];
    folder
        .run(&words)
        .fails_with(&["hashed keys have no preimage"]);
    let words = [
        "convert",
        "--from",
        "hashed",
        "--preimages",
        "some",
        "--to",
        "to",
        "--tree",
        "mpt",
    ];
    folder
        .run(&words)
        .fails_with(&[&lost_slot.to_string(), "1 accounts and", "have no preimage"]);
    // With the whole file the same command goes on.
    let words = [
        "convert",
        "--from",
        "hashed",
        "--preimages",
        "all",
        "--to",
        "to",
        "--tree",
        "mpt",
    ];
    folder.run(&words).ok();
    folder
        .run(&[
            "convert", "--from", "hashed", "--to", "other", "--tree", "mpt",
        ])
        .fails_with(&["lacks its preimage"]);
}

/// The digests of published preimage files, of states that are given as allocations.
#[test]
fn exported_files_have_the_digests_of_eip_8347() {
    let test = "exported_files_have_the_digests_of_eip_8347";
    let Some(vectors) = shared("vectors/small/derived_eip8347_genesis_artifacts.json", test) else {
        return;
    };
    let text = std::fs::read_to_string(vectors).expect("read");
    let vectors: Value = serde_json::from_str(&text).expect("JSON");
    let rows = vectors["rows"].as_array().expect("rows");
    assert!(!rows.is_empty());
    let folder = Folder::new();
    // One tree keeps accounts by hash, the other by address.
    let trees = &trees()[..2];
    let pairs = rows
        .iter()
        .flat_map(|row| trees.iter().map(move |tree| (row, *tree)));
    for (row, tree) in pairs {
        let genesis = row["genesis"].as_str().expect("a name");
        let words = [
            "convert", "--from", genesis, "--to", "db", "--tree", tree, "--memory", "64MiB",
        ];
        folder.run(&words).ok();
        folder
            .run(&["preimages", "export", "--db", "db", "--out", "preimages"])
            .ok();
        let file = std::fs::read(folder.path("preimages")).expect("read");
        assert_eq!(
            keccak256(&file).to_string(),
            row["preimageDigest"],
            "{genesis}, {tree}"
        );
        std::fs::remove_dir_all(folder.path("db")).expect("removed");
        std::fs::remove_file(folder.path("preimages")).expect("removed");
    }
}

/// The state of the conformance harness, of which one account lies at each rule of the embedding.
#[test]
fn the_conformance_state_has_its_published_file() {
    let test = "the_conformance_state_has_its_published_file";
    let Some(vectors) = shared("vectors/eip8347_hive", test) else {
        return;
    };
    let read = |name: &str| std::fs::read(vectors.join(name)).expect("read");
    let alloc: Value = serde_json::from_slice(&read("alloc.json")).expect("JSON");
    let genesis = json!({
        "config": { "chainId": 1337 },
        "difficulty": "0x0",
        "gasLimit": "0x1c9c380",
        "alloc": alloc["alloc"],
    });
    let folder = Folder::new();
    std::fs::write(folder.path("genesis.json"), genesis.to_string()).expect("written");
    let tree = trees()[0];
    let words = [
        "convert",
        "--from",
        "genesis.json",
        "--to",
        "db",
        "--tree",
        tree,
    ];
    folder.run(&words).ok();
    folder
        .run(&["preimages", "export", "--db", "db", "--out", "preimages"])
        .ok();
    let file = std::fs::read(folder.path("preimages")).expect("read");
    assert!(file == read("valid/preimages.bin"));
    for (case, why) in [
        ("truncated-record", "ends within a record"),
        ("slot-count-huge", "ends within a record"),
        ("empty-file", "have no preimage"),
        // Its number is that of a slot of other accounts, too.
        ("missing-header-slot", "1 of "),
    ] {
        let broken = vectors.join(format!("preimages/{case}/preimages.bin"));
        let words = ["preimages", "audit", "--from", "db", "--preimages"];
        let broken = broken.to_str().expect("a path");
        folder
            .run(&[&words[..], &[broken]].concat())
            .fails_with(&[why]);
    }
}

//! The same chain under every tree: the state is the same, whatever commits to it, and says so of itself.

use std::collections::BTreeMap;

use crate::support::{Folder, Run, roots};
use serde_json::Value;

/// The lines of a dump by address, without the first, which names the tree's root.
fn dump(run: &Run) -> BTreeMap<String, String> {
    let text = run.ok().stdout();
    let lines = text.lines().skip(1).map(|line| {
        let account: Value = serde_json::from_str(line).expect("a JSON line");
        let address = account["address"].as_str().expect("an address");
        (address.to_owned(), line.to_owned())
    });
    lines.collect()
}

/// With small tables, which are made quickly; what they compute does not depend on their sizes.
fn replay(folder: &Folder, db: &str, more: &[&str]) -> Run {
    let words = ["replay", "--db", db, "--memory", "64MiB", "chain"];
    folder.run(&[&words, more].concat())
}

/// A replay went on in the default form in silence, whatever the database had been made with.
#[test]
fn a_database_remembers_its_tree_settings() {
    let folder = Folder::with_chain();
    let begun = |db: &str, more: &[&str]| replay(&folder, db, &[&["--to", "5"], more].concat());
    let settings = |words| ["--tree", "verkle", "--tree-settings", words];
    let remembered = |db: &str| folder.status(db)["treeSettings"].clone();
    begun("db", &settings("narrow-tables,compressed,narrow-tables")).ok();
    // How nodes are computed is each run's own.
    let made = serde_json::json!(["compressed"]);
    assert_eq!(remembered("db"), made);
    let text = folder.run(&["status", "--db", "db"]).ok().stdout();
    assert!(text.contains("settings    compressed\n"), "{text}");
    for other in ["no-images", "points-only", "compressed,published"] {
        let asked = format!("not with --tree-settings {other}: ");
        let made = "was made with --tree-settings compressed,";
        replay(&folder, "db", &settings(other)).fails_with(&["db ", made, &asked]);
    }
    // The same in another order, and none.
    begun("db", &settings("narrow-tables,compressed")).ok();
    begun("db", &settings("single-blocks")).ok();
    let went_on = replay(&folder, "db", &["--report", "r.json"]);
    let told = went_on.ok().stderr();
    assert!(
        told.contains("with --tree-settings compressed, as before"),
        "{told}"
    );
    let report = std::fs::read(folder.path("r.json")).expect("a report");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["settings"]["tree_settings"], made);
    assert_eq!(remembered("db"), made);
    let verify = ["verify", "--memory", "64MiB", "--db", "db"];
    folder.run(&verify).ok();
    // Made without any, it has the default, and is not stored in two ways.
    begun("plain", &["--tree", "verkle"]).ok();
    assert_eq!(remembered("plain"), serde_json::json!([]));
    replay(&folder, "plain", &settings("compressed")).fails_with(&[
        "plain was made with the default --tree-settings, not with --tree-settings compressed",
    ]);
    // A database from before does not say with which it was made: those that are given are believed, and remembered.
    std::fs::remove_file(folder.path("plain/tree-settings")).expect("it was remembered");
    replay(&folder, "plain", &settings("compressed")).ok();
    assert_eq!(remembered("plain"), serde_json::json!(["compressed"]));
    replay(&folder, "plain", &[]).ok();
    // Every node of every block at once stays so.
    begun("published", &settings("published")).ok();
    replay(&folder, "published", &["--report", "r.json"]).ok();
    let report = std::fs::read(folder.path("r.json")).expect("a report");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["settings"]["write_back_bytes"], 0);
    std::fs::write(folder.path("db/tree-settings"), "compresed\n").expect("written");
    // Nodes are read as they say themselves that they are stored.
    let damaged = "db/tree-settings is damaged";
    for reads in [&verify[..], &["status", "--db", "db"]] {
        let told = folder.run(reads).ok().stderr();
        assert!(told.contains(damaged), "{told}");
    }
    assert_eq!(remembered("db"), Value::Null);
    replay(&folder, "db", &[]).fails_with(&[damaged]);
}

#[test]
fn verkle_keeps_the_state_that_merkle_patricia_keeps() {
    let folder = Folder::with_chain();
    replay(&folder, "mpt", &[]).ok();
    replay(
        &folder,
        "verkle",
        &["--tree", "verkle", "--check-state", "5"],
    )
    .ok();
    let older = [
        "--tree",
        "verkle-2023",
        "--tree-settings",
        "compressed,single-affine",
    ];
    replay(&folder, "older", &older).ok();

    let head = folder.status("mpt")["block"].as_u64().expect("a number");
    let at = (head - 7).to_string();
    for words in [&[][..], &["--at", &at]] {
        let of = |db| folder.run(&[&["dump", "--db", db], words].concat());
        let expected = dump(&of("mpt"));
        assert!(!expected.is_empty());
        assert_eq!(dump(&of("verkle")), expected);
        assert_eq!(dump(&of("older")), expected);
    }
    let header_root = folder.status("mpt")["stateRoot"].clone();
    let header_root = header_root.as_str().expect("a root");
    for db in ["verkle", "older"] {
        let verified = folder.run(&["verify", "--memory", "64MiB", "--db", db]);
        let text = verified.ok().stdout();
        assert!(text.contains(header_root), "{text}");
        let status = folder.status(db);
        assert_eq!(status["tree"], "verkle");
        let roots = roots(&folder, db);
        assert_eq!(roots.len() as u64, head + 1);
        let last = roots.last().expect("a line");
        let root = status["stateRoot"].as_str().expect("a root");
        assert!(
            last.starts_with(&format!("{head} 0x")) && last.ends_with(root),
            "{last}"
        );
    }
    assert_ne!(
        folder.status("verkle")["revision"],
        folder.status("older")["revision"]
    );
    assert_ne!(
        folder.status("verkle")["stateRoot"],
        folder.status("older")["stateRoot"]
    );
}

/// Records of all forms say the same, beside each other as well; and a slow disk is only slow.
#[test]
fn all_forms_of_records_give_the_same_roots() {
    let folder = Folder::with_chain();
    replay(&folder, "db", &["--tree", "verkle"]).ok();
    let expected = roots(&folder, "db");
    let half = (expected.len() / 2).to_string();
    let mut bytes = Vec::new();
    for form in [
        "published",
        "no-images",
        "compressed,leaf-commitments",
        "points-only",
    ] {
        let words = ["--tree", "verkle", "--tree-settings", form];
        let report = [
            "--to",
            &half,
            "--report",
            "r.json",
            "--throttle",
            "5000:200",
        ];
        replay(&folder, form, &[&words[..], &report].concat()).ok();
        let report = std::fs::read(folder.path("r.json")).expect("a report");
        let report: Value = serde_json::from_slice(&report).expect("JSON");
        let results = &report["results"];
        bytes.push(
            results["database"]["bytes"]["nodes"]
                .as_u64()
                .expect("bytes"),
        );
        assert_eq!(report["settings"]["throttle"]["requests_per_second"], 5000);
        assert!(results["counters"]["store_writes"].as_u64() > Some(0));
        folder
            .run(&["verify", "--memory", "64MiB", "--db", form])
            .ok();
        // The rest in the default form, which a database has that does not say otherwise.
        std::fs::remove_file(folder.path(form).join("tree-settings")).expect("it was remembered");
        replay(&folder, form, &[]).ok();
        assert_eq!(roots(&folder, form), expected);
        folder
            .run(&["verify", "--memory", "64MiB", "--db", form])
            .ok();
    }
    let largest = bytes.iter().max();
    assert_eq!(largest, bytes.first(), "{bytes:?}");
    replay(&folder, "db", &["--throttle", "0:1"]).fails_with(&["REQUESTS:US"]);
}

#[test]
fn a_verkle_database_goes_back_and_on() {
    let folder = Folder::with_chain();
    replay(&folder, "db", &["--tree", "verkle"]).ok();
    let whole = roots(&folder, "db");
    let head = folder.status("db")["block"].as_u64().expect("a number");
    let back = (head - 6).to_string();
    let rolled = folder.run(&["rollback", "--memory", "64MiB", "--db", "db", "--to", &back]);
    let root = whole[whole.len() - 7].rsplit(' ').next().expect("a root");
    assert!(rolled.ok().stdout().contains(root));
    assert_eq!(roots(&folder, "db"), whole[..whole.len() - 6]);
    folder
        .run(&["verify", "--memory", "64MiB", "--db", "db"])
        .ok();
    // No --tree: the database knows.
    replay(&folder, "db", &["--verify", "last"]).fails_with(&["--verify every"]);
    replay(&folder, "db", &[]).ok();
    assert_eq!(roots(&folder, "db"), whole);
    let some = ["roots", "--db", "db", "--from", "3", "--to", "5", "--csv"];
    let some = folder.run(&some).ok().stdout();
    let expected = whole[3..6].join("\n").replace(' ', ",");
    assert_eq!(some, format!("block,root\n{expected}\n"));
    folder.run(&["prune", "--db", "db", "--retain", "2"]).ok();
    folder
        .run(&["verify", "--memory", "64MiB", "--db", "db"])
        .ok();
    // Roots of blocks that are not retained stay.
    assert_eq!(roots(&folder, "db"), whole);
    // One thread makes the same tree.
    replay(&folder, "alone", &["--tree", "verkle", "--threads", "1"]).ok();
    assert_eq!(roots(&folder, "alone"), whole);
    // Headers have Merkle-Patricia's: they are not kept a second time.
    replay(&folder, "mpt", &["--tree", "mpt", "--retain", "3"]).ok();
    let retained = roots(&folder, "mpt");
    assert!((1..=4).contains(&retained.len()), "{retained:?}");
    let status = folder.status("mpt");
    let (block, root) = (
        &status["block"],
        status["stateRoot"].as_str().expect("a root"),
    );
    assert_eq!(retained.last(), Some(&format!("{block} {root}")));
}

#[test]
fn reads_of_a_verkle_database_are_measured() {
    let folder = Folder::with_chain();
    replay(&folder, "db", &["--tree", "verkle"]).ok();
    let words = [
        "bench", "reads", "--db", "db", "--reads", "10", "--back", "0", "3",
    ];
    let table = folder.run(&words).ok().stdout();
    assert_eq!(table.matches("absent account").count(), 4, "{table}");
    let words = [&words[..], &["--proofs", "1"]].concat();
    let table = folder.run(&words).ok().stdout();
    assert!(table.contains("proof"), "{table}");
}

#[test]
fn a_database_is_not_opened_as_another_tree() {
    let folder = Folder::with_chain();
    replay(&folder, "mpt", &["--to", "2"]).ok();
    replay(&folder, "verkle", &["--tree", "verkle", "--to", "2"]).ok();
    replay(&folder, "mpt", &["--tree", "verkle"]).fails_with(&["mpt", "verkle"]);
    replay(&folder, "verkle", &["--tree", "mpt"]).fails_with(&["mpt", "verkle"]);
    replay(&folder, "verkle", &["--tree", "verkle-2023"])
        .fails_with(&["its tree is verkle,", "verkle-2023"]);
    replay(&folder, "mpt", &["--check-state", "0"]).fails_with(&["--check-state"]);
    replay(&folder, "mpt", &["--tree-settings", "compressed"])
        .fails_with(&["--tree-settings", "mpt"]);
    for flag in [["--check-state", "1"], ["--db", "mpt"]] {
        let words = ["replay", "--tree", "none", flag[0], flag[1], "chain"];
        folder.run(&words).fails_with(&[flag[0], "--tree none"]);
    }
}

#[test]
fn accounts_and_slots_are_proven_under_a_verkle_root() {
    let folder = Folder::with_chain();
    replay(&folder, "db", &["--tree", "verkle"]).ok();
    let head = folder.status("db")["block"].as_u64().expect("a number");
    let roots = roots(&folder, "db");
    let accounts = dump(&folder.run(&["dump", "--db", "db"]));
    let with_storage = |line: &&String| line.contains("storage");
    let line = accounts.values().find(with_storage).expect("a contract");
    let account: Value = serde_json::from_str(line).expect("JSON");
    let storage = account["storage"].as_object().expect("slots");
    let (slot, value) = storage.iter().next().expect("a slot");
    let address = account["address"].as_str().expect("an address");
    let absent = format!("0x{}", "77".repeat(20));
    for block in [head, head - 5] {
        let root = roots[block as usize].rsplit(' ').next().expect("a root");
        let verify = |address: &str, slots: &[&str]| {
            let block = block.to_string();
            let words = [
                "prove", "--memory", "64MiB", "--db", "db", "--at", &block, address,
            ];
            let words = [&words[..], slots].concat();
            let proof = folder.run(&words).ok().stdout();
            std::fs::write(folder.path("proof.json"), proof).expect("written");
            folder
                .run(&[&words[..], &["--out", "proof.ssz"]].concat())
                .ok();
            let check = |words: &[&str]| {
                let words = [&["verify-proof", "--root", root], words].concat();
                let shown = folder.run(&words).ok().stdout();
                let of_account = shown.lines().filter(|line| line.starts_with("0x"));
                of_account.fold(String::new(), |all, line| all + line + "\n")
            };
            let checked = check(&["proof.json", "--tree", "verkle"]);
            // The binary form has no names: whoever checks it says whose leaves it is asked for.
            let of = format!("{address}:{}", slots.join(","));
            let bytes = ["proof.ssz", "--of", &of, "--tree", "verkle"];
            assert_eq!(check(&bytes), checked);
            checked
        };
        let proven = verify(address, &[slot, "12345678"]);
        assert_eq!(proven.lines().count(), 3, "{proven}");
        assert!(proven.ends_with("slot 0xbc614e absent\n"), "{proven}");
        if block == head {
            let value = value.as_str().expect("hex digits");
            assert!(proven.contains(&format!("{value:0>64}")), "{proven}");
        }
        let proven = verify(&absent, &[]);
        assert_eq!(proven, format!("{absent} absent\n"));
    }
    // Against another root, and with a value changed, it does not hold.
    let other = format!("0x{}", "00".repeat(32));
    folder
        .run(&["verify-proof", "proof.json", "--root", &other])
        .fails_with(&["proof.json"]);
    let mut proof: Value =
        serde_json::from_slice(&std::fs::read(folder.path("proof.json")).expect("read"))
            .expect("JSON");
    proof["stateDiff"][0]["suffixDiffs"][0]["currentValue"] =
        format!("0x{}", "11".repeat(32)).into();
    std::fs::write(folder.path("proof.json"), proof.to_string()).expect("written");
    let root = roots[(head - 5) as usize]
        .rsplit(' ')
        .next()
        .expect("a root");
    folder
        .run(&["verify-proof", "proof.json", "--root", root])
        .fails_with(&["proof.json"]);
}

/// A proof of one account passed for one of another's absence: the keys of a Verkle tree do not tell whose they are.
#[test]
fn a_proof_is_held_to_the_account_that_is_asked_for() {
    let folder = Folder::with_chain();
    for tree in [
        "mpt",
        "verkle",
        "verkle-2023",
        "ar16mt",
        "eip8297",
        "eip7864",
    ] {
        replay(&folder, tree, &["--tree", tree]).ok();
        let status = folder.status(tree);
        let root = status["stateRoot"].as_str().expect("a root");
        let accounts = dump(&folder.run(&["dump", "--db", tree]));
        let with_storage = |line: &&String| line.contains("storage");
        let line = accounts.values().find(with_storage).expect("a contract");
        let account: Value = serde_json::from_str(line).expect("JSON");
        let address = account["address"].as_str().expect("an address");
        let storage = account["storage"].as_object().expect("slots");
        let (slot, value) = storage.iter().next().expect("a slot");
        let prove = |address: &str| {
            let words = ["prove", "--db", tree, "--out", "proof.json", address];
            folder.run(&[&words[..], &[slot, "12345678"]].concat()).ok();
        };
        let layout = ["--tree", tree];
        let layout = match tree {
            "verkle" | "verkle-2023" | "eip7864" => &layout[..],
            _ => &[],
        };
        let check = |of: &str| {
            let words = ["verify-proof", "proof.json", "--root", root, "--of", of];
            folder.run(&[&words[..], layout].concat())
        };
        if tree == "verkle" {
            let words = ["prove", "--db", tree, "--out", "proof.ssz", address];
            folder.run(&words).ok();
            let words = ["verify-proof", "proof.ssz", "--root", root, "--tree"];
            folder.run(&[&words[..], &[tree]].concat()).ok();
            for other in ["mpt", "ar16mt"] {
                let told = ["proof.ssz", "none of --tree", other];
                folder
                    .run(&[&words[..], &[other]].concat())
                    .fails_with(&told);
            }
        }
        let absent = format!("0x{}", "77".repeat(20));
        prove(address);
        let shown = check(&format!("{address}:12345678,{slot}")).ok().stdout();
        let balance = account["balance"].as_str().expect("a balance");
        let fields = format!("nonce {} balance {balance} code 0x", account["nonce"]);
        assert!(shown.contains(&fields), "{tree}: {shown} {account}");
        let value = value.as_str().expect("hex digits");
        assert!(shown.contains(&format!("{value:0>64}")), "{tree}: {shown}");
        assert!(shown.contains("2 slots"), "{tree}: {shown}");
        check(&absent).fails_with(&["proof.json", &absent]);
        check(&format!("{address}:99")).fails_with(&["proof.json", "slot 0x63"]);
        prove(&absent);
        let shown = check(&absent).ok().stdout();
        assert!(
            shown.contains(&format!("{absent} absent")),
            "{tree}: {shown}"
        );
        check(address).fails_with(&["proof.json", "account"]);
        if tree.starts_with("verkle") {
            // New values are not proven, whatever else is; and nothing is said where not all of it can be.
            let proof = std::fs::read(folder.path("proof.json")).expect("read");
            let mut proof: Value = serde_json::from_slice(&proof).expect("JSON");
            proof["stateDiff"][0]["suffixDiffs"][0]["newValue"] =
                format!("0x{}", "11".repeat(32)).into();
            std::fs::write(folder.path("proof.json"), proof.to_string()).expect("written");
            let shown = check(&absent).ok().stdout();
            assert!(shown.contains("also has 1 new values"), "{shown}");
            let more = format!("{absent}:99");
            let words = [
                "verify-proof",
                "proof.json",
                "--root",
                root,
                "--of",
                &absent,
            ];
            let both = [&words[..], &["--of", &more], layout].concat();
            let shown = folder.run(&both);
            assert_eq!(shown.fails_with(&["slot 0x63"]).stdout(), "");
        }
        // What tree it is of it says itself.
        let other = match tree {
            "verkle" => "verkle-2023",
            "eip7864" => "eip7864-a",
            _ => "verkle",
        };
        let words = ["verify-proof", "proof.json", "--root", root];
        let shown = folder.run(&words);
        if tree == "eip7864" {
            // It has no keys apart from its accounts.
            shown.fails_with(&["falsely", "--tree eip7864"]);
        } else {
            let shown = shown.ok().stdout();
            let has_names = shown.contains(&absent);
            assert_eq!(has_names, layout.is_empty(), "{tree}: {shown}");
        }
        let words = [&words[..], &["--of", &absent]].concat();
        let wrong = [&words[..], &["--tree", other]].concat();
        folder.run(&wrong).fails_with(&["--tree", other]);
        if layout.is_empty() {
            continue;
        }
        // But not truly, if somebody renames the form: whoever checks says of which tree the root is.
        folder.run(&words).fails_with(&["falsely", "--tree"]);
        prove(address);
        let proof = std::fs::read_to_string(folder.path("proof.json")).expect("read");
        let renamed = proof.replace(&format!("{tree}/1"), &format!("{other}/1"));
        assert_ne!(renamed, proof);
        std::fs::write(folder.path("proof.json"), renamed).expect("written");
        let words = ["verify-proof", "proof.json", "--root", root, "--tree", tree];
        folder.run(&words).fails_with(&["proof.json"]);
    }
    let empty = serde_json::json!({"form": "mpt-accounts/1", "accounts": []});
    std::fs::write(folder.path("empty.json"), empty.to_string()).expect("written");
    let root = format!("0x{}", "11".repeat(32));
    let words = ["verify-proof", "empty.json", "--root", &root];
    folder.run(&words).fails_with(&["names no account"]);
}

/// A header that says another state than its block leaves is found by whoever compares it, and called what it is.
#[test]
fn a_false_header_is_no_damage() {
    let folder = Folder::with_chain();
    replay(&folder, "mpt", &[]).ok();
    let status = folder.status("mpt");
    let root = status["stateRoot"].as_str().expect("a root");
    let root: Vec<u8> = (2..66)
        .step_by(2)
        .map(|at| u8::from_str_radix(&root[at..at + 2], 16).expect("hex digits"))
        .collect();
    let file = folder.path("chain/chain.rlp");
    let mut blocks = std::fs::read(&file).expect("read");
    let at = blocks.windows(32).rposition(|bytes| bytes == root);
    blocks[at.expect("the last header has it")] ^= 1;
    std::fs::write(&file, blocks).expect("written");
    replay(&folder, "db", &["--tree", "verkle"]).ok();
    let block = format!("header of block {}", status["block"]);
    let checked = folder.run(&["verify", "--db", "db"]);
    checked.fails_with(&["fault: ", &block, "that header is false"]);
    let words = ["--tree", "verkle", "--check-state", "1"];
    replay(&folder, "checked", &words).fails_with(&["state root"]);
}

/// What a replay writes, by its report.
#[derive(PartialEq, Eq, Debug)]
struct Written {
    nodes: u64,
    flat_bytes: u64,
    node_bytes: u64,
    /// Code.
    blob_bytes: u64,
}

/// What a replay on one thread with these words writes, and the inversions that it needs.
fn took(folder: &Folder, words: &[&str]) -> (Written, u64) {
    let replay = ["replay", "--db", "db", "chain", "--threads", "1"];
    let report = ["--report", "report.json"];
    folder.run(&[&replay[..], &report, words].concat()).ok();
    std::fs::remove_dir_all(folder.path("db")).expect("removed");
    let report = std::fs::read(folder.path("report.json")).expect("a report");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    let results = &report["results"];
    let (total, bytes) = (&results["total"], &results["database"]["bytes"]);
    let count = |value: &Value| value.as_u64().expect("a count");
    let inversions = |phase: &str| total["work"][phase]["inversions"].as_u64().unwrap_or(0);
    let written = Written {
        nodes: count(&total["nodes"]),
        flat_bytes: count(&bytes["flat"]),
        node_bytes: count(&bytes["nodes"]),
        blob_bytes: count(&bytes["blobs"]),
    };
    (written, inversions("keys") + inversions("tree"))
}

/// What is written is a function of the chain. Inversions depend on how the processor's lanes are filled, so they are only bounded, by a tenth more than
/// were counted with AVX2. Blocks whose roots are computed together write each node once, and share inversions.
#[test]
fn a_replay_takes_what_is_recorded() {
    let folder = Folder::with_chain();
    let recorded = Written {
        nodes: 620,
        flat_bytes: 42_362,
        node_bytes: 23_280,
        blob_bytes: 11_524,
    };
    assert_eq!(took(&folder, &["--tree", "mpt"]), (recorded, 0));
    let verkle = ["--tree", "verkle"];
    let single = [&verkle[..], &["--tree-settings", "single-blocks"]].concat();
    for (words, nodes, counted) in [(&verkle[..], 331, 116), (&single, 829, 504)] {
        let (written, inversions) = took(&folder, words);
        let recorded = Written {
            nodes,
            flat_bytes: 26_879,
            // The roots are 40 bytes a block.
            node_bytes: 39_651 + 13 * 40,
            blob_bytes: 11_524,
        };
        assert_eq!(written, recorded, "{words:?}");
        let bound = 1..=counted * 11 / 10;
        assert!(bound.contains(&inversions), "{words:?}: {inversions}");
    }
}

/// Slots that were cleared, of which some trees keep a leaf, were counted as slots.
#[test]
fn verify_counts_what_is_there() {
    let folder = Folder::with_chain();
    for tree in ["verkle", "eip7864", "eip8297", "mpt"] {
        let replay = ["replay", "--db", tree, "--tree", tree, "chain"];
        folder.run(&replay).ok();
        let (accounts, slots) = folder.accounts_and_slots(tree);
        let words = ["verify", "--db", tree, "--json"];
        let verified = folder.run(&words).ok().json();
        assert_eq!(verified["accounts"], accounts, "{tree}");
        assert_eq!(verified["slots"], slots, "{tree}");
        for part in ["1/2", "2/2"] {
            let to = format!("{tree}-{}", &part[..1]);
            let words = ["verify", "--db", tree, "--part", part, "--to", &to];
            folder.run(&words).ok();
        }
        let (one, two) = (format!("{tree}-1"), format!("{tree}-2"));
        let join = ["verify", "--db", tree, "--json", "--join", &one, &two];
        let joined = folder.run(&join).ok().json();
        assert_eq!(joined["slots"], slots, "{tree}");
    }
}

//! The load test under every tree: its figures and roots, how it stops, and what it leaves.

use crate::support::Folder;
use alloy_primitives::{B256, U256, address};
use arbor_tree_ar16mt::naive;
use arbor_trees::ar16mt::{Entry, LeafName};
use serde_json::Value;

/// What a test counts is what its blocks did.
#[test]
fn the_load_test_counts_reads_and_hashes() {
    let folder = Folder::new();
    let report = |words: &[&str]| {
        let words = [&["loadtest"], words, &["--report", "report"]].concat();
        folder.run(&words).ok();
        let report = std::fs::read(folder.path("report")).expect("a report");
        let report: Value = serde_json::from_slice(&report).expect("JSON");
        report["results"].clone()
    };
    let one = report(&["1", "1", "-M"]);
    let tree = &one["blocks"][0]["tree"];
    assert_eq!(tree["hashed_bytes"], 16_424);
    assert_eq!(tree["hashes_per_leaf"], 257.0);
    assert_eq!(one["stopped_after"], Value::Null);
    for words in [
        &["6", "300", "-M"][..],
        &["6", "300", "--write-back", "1"],
        &["6", "300"],
    ] {
        let results = report(words);
        for block in results["blocks"].as_array().expect("blocks") {
            let number = |name: &str| block[name].as_u64().expect(name);
            let reads = number("unflushed_hits") + number("cache_hits") + number("cache_misses");
            let nodes = block["tree"]["nodes_read"].as_u64().expect("nodes");
            let fits = (nodes..=nodes + 3).contains(&reads);
            assert!(fits, "{words:?}: {reads} reads, {nodes} nodes");
            let figure = |name: &str| block["tree"][name].as_f64().expect("a figure");
            let parts = figure("fold_hashes_per_leaf")
                + figure("rise_hashes_per_leaf")
                + figure("node_hashes_per_leaf");
            assert!((parts - figure("hashes_per_leaf")).abs() < 1e-6);
        }
    }
    for words in [
        &["3", "50", "--reads", "20"][..],
        &["3", "50", "--reads", "20", "--proofs"],
    ] {
        let results = report(words);
        let blocks = results["blocks"].as_array().expect("blocks");
        let reads = blocks.iter().map(|block| block["key_reads"].as_u64());
        assert!(reads.eq([Some(0), Some(20), Some(20)]));
    }
}

/// Threads and chunks were reported as they were asked for, 0 and null; the last flush was no block's, and that of the blocks before those of changes the first of these'.
#[test]
fn a_load_test_reports_what_was_in_effect_and_all_of_its_time() {
    let folder = Folder::new();
    let report = |words: &str| {
        let words = format!("loadtest 4 300 --update-blocks 2 --report report {words}");
        let words: Vec<&str> = words.split(' ').collect();
        folder.run(&words).ok();
        let report = std::fs::read(folder.path("report")).expect("a report");
        serde_json::from_slice::<Value>(&report).expect("JSON")
    };
    let usual = report("--prune --write-back 1GiB");
    assert!(usual["settings"]["threads"].as_u64() > Some(0));
    assert_eq!(usual["settings"]["chunk_size"], 512);
    let results = &usual["results"];
    let blocks = results["blocks"].as_array().expect("blocks");
    let figure = |of: &Value, name: &str| of[name].as_f64().expect("a figure");
    for (run, blocks) in [(results, &blocks[..4]), (&results["updates"], &blocks[4..])] {
        let in_blocks: f64 = blocks.iter().map(|block| figure(block, "wall_s")).sum();
        let all = in_blocks + figure(run, "between_s") + figure(run, "flush_s");
        let wall = figure(run, "wall_s");
        assert!((wall - all).abs() < 0.01 + wall / 10.0, "{all} of {wall}");
        for block in blocks {
            let parts = [
                "reads_s",
                "leaves_s",
                "keys_s",
                "tree_s",
                "records_s",
                "commit_s",
            ];
            let sum: f64 = parts.map(|part| figure(block, part)).iter().sum();
            assert!(sum <= figure(block, "wall_s") + 1e-3, "{block}");
            assert!(figure(block, "leaves_s") > 0.0);
            // Nothing was flushed until then.
            assert_eq!(block["batch_bytes"], 0);
        }
        assert!(run["flush_batch_bytes"].as_u64() > Some(10_000), "{run}");
    }
    let other = report("--tree mpt --threads 1");
    assert_eq!(other["settings"]["threads"], 1);
    assert_eq!(other["settings"]["chunk_size"], Value::Null);
}

/// What was done until then is told and reported.
#[test]
fn a_load_test_that_is_stopped_reports_its_blocks() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let folder = Folder::new();
    for signal in ["-TERM", "-INT"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_arbor"));
        command
            .args(["loadtest", "100000", "50", "-M", "--report", "report"])
            .current_dir(folder.path("."))
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let out = child.stdout.take().expect("piped");
        let mut lines = BufReader::new(out).lines().map(|line| line.expect("text"));
        assert_eq!(lines.by_ref().take(8).count(), 8);
        let id = child.id().to_string();
        let kill = Command::new("kill").args([signal, &id]).status();
        assert!(kill.expect("kill runs").success());
        let rest: Vec<String> = lines.collect();
        let ended = child.wait().expect("ends");
        assert_eq!(ended.code(), Some(130));
        let stopped = rest
            .iter()
            .find_map(|line| line.strip_prefix("stopped after block "));
        let stopped = stopped.expect("it says so").split(':').next();
        let report = std::fs::read(folder.path("report")).expect("a report");
        let report: Value = serde_json::from_slice(&report).expect("JSON");
        let results = &report["results"];
        assert_eq!(Some(&*results["stopped_after"].to_string()), stopped);
        let blocks = results["blocks"].as_array().expect("blocks");
        let last = blocks.last().expect("a block");
        assert_eq!(last["block"], results["stopped_after"]);
        assert_eq!(results["leaves"].as_u64(), Some(50 * blocks.len() as u64));
        assert_eq!(last["root"], results["root"]);
        assert_eq!(results["verify_s"], Value::Null);
        let root = results["root"].as_str().expect("a root");
        assert_eq!(rest.last(), Some(&format!("root: {root}")));
        std::fs::remove_file(folder.path("report")).expect("removed");
    }
}

/// Nothing is left to be spared then but what tells whether it all was right.
#[test]
fn a_load_test_that_is_stopped_behind_its_blocks_checks_and_reports() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let folder = Folder::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_arbor"));
    command
        .args(["loadtest", "2", "5000", "--update-blocks", "1"])
        .args(["--report", "report"])
        .current_dir(folder.path("."))
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let out = child.stdout.take().expect("piped");
    let mut lines = BufReader::new(out).lines().map(|line| line.expect("text"));
    // What the figures mean, their names, and the three blocks.
    assert_eq!(lines.by_ref().take(6).count(), 6);
    let id = child.id().to_string();
    let kill = Command::new("kill").args(["-TERM", &id]).status();
    assert!(kill.expect("kill runs").success());
    let rest: Vec<String> = lines.collect();
    let code = child.wait().expect("ends").code();
    // The signal may come when all is done.
    assert!(matches!(code, Some(130 | 0)), "{code:?}");
    let report = std::fs::read(folder.path("report")).expect("a report");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    let results = &report["results"];
    assert_eq!(results["stopped_after"], Value::Null);
    assert!(results["verify_s"].is_number());
    assert_eq!(results["blocks"].as_array().map(Vec::len), Some(3));
    let root = results["root"].as_str().expect("a root");
    assert_eq!(rest.last(), Some(&format!("root: {root}")));
}

/// A stop waited for the end of the block, which may take minutes.
#[test]
fn a_load_test_gives_up_a_block_that_does_not_end() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};
    let folder = Folder::new();
    let temporary = folder.path("tmp");
    std::fs::create_dir(&temporary).expect("made");
    for place in [&[][..], &["--db", "db"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_arbor"));
        command
            .args([
                "loadtest",
                "1",
                "4000000",
                "--threads",
                "1",
                "--memory",
                "64MiB",
            ])
            .args(place)
            .env("TMPDIR", &temporary)
            .current_dir(folder.path("."))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let out = child.stdout.take().expect("piped");
        // What the figures mean, their names, and then nothing.
        let mut lines = BufReader::new(out).lines().map(|line| line.expect("text"));
        assert_eq!(lines.by_ref().take(3).count(), 3);
        let id = child.id().to_string();
        let kill = Command::new("kill").args(["-TERM", &id]).status();
        assert!(kill.expect("kill runs").success());
        assert_eq!(lines.count(), 0);
        assert_eq!(child.wait().expect("ends").code(), Some(130));
        let mut told = String::new();
        let mut errors = child.stderr.take().expect("piped");
        errors.read_to_string(&mut told).expect("text");
        assert!(told.contains("4000000 writes takes some 2.4 GiB"), "{told}");
        assert!(
            told.contains("did not end in 5 seconds and is given up"),
            "{told}"
        );
        let left = std::fs::read_dir(&temporary).expect("a folder").count();
        assert_eq!(left, 0, "{place:?}");
    }
    // Nothing came into that database, which can be begun anew.
    folder.run(&["loadtest", "1", "5", "--db", "db"]).ok();
}

/// Roots computed from the definition, one hash after the other, of the leaves that give the published root of 75 blocks of 150,000:
/// `arbor loadtest 75 150000` ends with 0x1ddec3794d0a1c5b44c2d9c7aa985cc61c70e988da2e6f2a810e0eb37f4322c0.
#[test]
fn the_load_test_gives_the_roots_of_the_original() {
    let folder = Folder::new();
    let of = |blocks: &str, writes: &str, more: &[&str]| {
        let words = ["loadtest", blocks, writes];
        let out = folder.run(&[&words[..], more].concat()).ok().stdout();
        let root = out.lines().last().expect("a root").to_owned();
        root.strip_prefix("root: ").expect("a root").to_owned()
    };
    for (blocks, writes, root) in [
        (
            "1",
            "10",
            "0xabc0827817b99ef2a4d1b06dbc213283969febdd46dee6a6d6d9ede7d74b619b",
        ),
        (
            "3",
            "100",
            "0x2a42a300a2dbd1b79f72cfa7f5653f89ddd1b88f1d15c3c685bb32f460e5498f",
        ),
        (
            "5",
            "1000",
            "0x56bb7e1a26118d3428cab435b5244195874525b38dc6d790cf6acfe337002b76",
        ),
    ] {
        assert_eq!(of(blocks, writes, &[]), root);
        assert_eq!(of(blocks, writes, &["-M", "--reads", "7"]), root);
        let proofs = ["-M", "--reads", "7", "--proofs"];
        assert_eq!(of(blocks, writes, &proofs), root);
        assert_eq!(
            of(
                blocks,
                writes,
                &["--prune", "--chunk-size", "3", "--threads", "1"]
            ),
            root
        );
    }
    let no_hash = of("3", "100", &["--no-hash"]);
    assert_eq!(of("3", "100", &["--no-hash", "-M"]), no_hash);
    let updated = of("3", "100", &["--updates", "20"]);
    assert_eq!(of("3", "100", &["--updates", "20", "--prune"]), updated);
    assert_eq!(of("3", "100", &["--updates", "20", "--proofs"]), updated);
    let after = of("3", "100", &["--update-blocks", "2"]);
    assert_eq!(
        of("3", "100", &["--update-blocks", "2", "--prune"]),
        after,
        "the same leaves are changed"
    );
    assert_ne!(after, of("3", "100", &["--update-blocks", "1"]));
    assert_ne!(after, of("3", "100", &[]));
    let nothing = of("0", "100", &["--update-blocks", "2", "--proofs"]);
    assert_eq!(nothing, of("0", "100", &[]), "there is nothing to change");
    assert_ne!(
        of("3", "100", &["--updates", "20", "--rng-seed", "1"]),
        updated
    );
}

#[test]
fn the_load_test_runs_under_every_tree() {
    let folder = Folder::new();
    for tree in ["ar16mt", "mpt", "verkle"] {
        let words = [
            "loadtest",
            "3",
            "50",
            "--updates",
            "10",
            "--reads",
            "10",
            "--update-blocks",
            "2",
            "--tree",
            tree,
        ];
        let words = [&words[..], &["--report", "report.json"]].concat();
        folder.run(&words).ok();
        let report = std::fs::read(folder.path("report.json")).expect("a report");
        let report: Value = serde_json::from_slice(&report).expect("JSON");
        assert_eq!(report["settings"]["tree"], tree);
        let results = &report["results"];
        assert_eq!(results["leaves"], 150);
        let blocks = results["blocks"].as_array().expect("blocks");
        assert_eq!(blocks.len(), 5);
        assert_eq!(blocks[4]["leaves"], 150, "changes bring no leaves");
        assert!(results["updates"]["writes_per_second"].as_f64() > Some(0.0));
        assert_eq!(results["verified_versions"], 4, "all versions are kept");
    }
    for (words, why) in [
        (&["--tree", "mpt", "--no-hash"][..], "--no-hash"),
        (&["--tree", "verkle", "--proofs"], "--proofs"),
        (&["--tree", "none"], "invalid value 'none'"),
        (&["-M", "--db", "x"], "--db"),
        (&["--store", "memory", "--db", "x"], "-M"),
        (&["--store", "memory"], "fjall"),
        (&["--threads", "18446744073709551615"], "1024"),
        (&["--updates", "18446744073709551615"], "--updates"),
    ] {
        let all = [&["loadtest", "1", "1"], words].concat();
        folder.run(&all).fails_with(&[why]);
    }
    folder.run(&["loadtest", "1", "0"]).fails_with(&["WRITES"]);
    folder.run(&["loadtest", "1", "5", "--db", "kept"]).ok();
    let again = folder.run(&["loadtest", "1", "5", "--db", "kept"]);
    again.fails_with(&["kept", "already"]);
}

/// What `loadtest` leaves belongs to no chain; whatever needs none can be done with it.
#[test]
fn the_load_tests_database_is_looked_at() {
    let folder = Folder::new();
    let words = ["loadtest", "4", "30", "--updates", "5", "--db", "db"];
    let out = folder.run(&words).ok().stdout();
    let root = out.lines().last().expect("a root");
    let root = root.strip_prefix("root: ").expect("a root");
    let verified = folder.run(&["verify", "--db", "db"]).ok().stdout();
    assert!(
        verified.contains(root) && !verified.contains("header"),
        "{verified}"
    );
    let contract = "0x4b3af74f66ab1f0da3f2e4ec7a3cb99baf1af7b2";
    let value = folder.run(&["get", "--db", "db", contract, "0", "--at", "0"]);
    let number = "0".repeat(62);
    assert_eq!(value.ok().stdout().trim(), format!("0x{number}23"));
    let words = ["prove", "--db", "db", contract, "7", "123456"];
    std::fs::write(folder.path("proof"), folder.run(&words).ok().stdout()).expect("written");
    folder.run(&["verify-proof", "proof", "--root", root]).ok();
    folder
        .run(&["dump", "--db", "db"])
        .fails_with(&["no names"]);
    // A name of `-` made a file of it.
    for (words, at) in [("--storage-logs", 3), ("--range 0x20..0x7f --out", 0)] {
        let prove = |file: &str| {
            let words = format!("prove --db db --at {at} {words} {file}");
            let run = folder.run(&words.split(' ').collect::<Vec<_>>());
            run.ok().0.stdout.clone()
        };
        let written = prove("-");
        prove("written");
        let file = std::fs::read(folder.path("written")).expect("written");
        assert!(written == file && file.len() > 1_000, "{words}");
    }
    assert!(!folder.path("-").exists());
    for (words, why) in [
        ("snapshot --db db --out -", "not to standard output"),
        ("recover --db again -", "not standard input"),
        ("recover --db again /dev/null", "no regular file"),
        ("prune --db db --retain all", "nothing is pruned"),
        // Before it is made.
        ("prove --db db --storage-logs none/x --at 9", "none/x"),
        ("prove --db db --storage-logs x --at 0", "first version"),
    ] {
        let run = folder.run(&words.split(' ').collect::<Vec<_>>());
        run.fails_with(&[why]);
    }
    let witness = ["witness", "--db", "db", "--block", "1", "x"];
    folder.run(&witness).fails_with(&["no chain"]);
    folder
        .run(&["snapshot", "--db", "db", "--out", "file"])
        .ok();
    folder.run(&["recover", "--db", "again", "file"]).ok();
    let verified = folder.run(&["verify", "--db", "again"]).ok().stdout();
    assert!(verified.contains(root), "{verified}");
    // That version 2 is not retained was all that was said.
    folder
        .run(&["prove", "--db", "again", "--storage-logs", "x"])
        .fails_with(&["block 3 is the oldest", "recovered"]);
    folder.run(&["rollback", "--db", "db", "--to", "1"]).ok();
    folder
        .run(&["prune", "--db", "db", "--retain", "none"])
        .ok();
    folder.run(&["verify", "--db", "db"]).ok();
    for tree in ["mpt", "verkle"] {
        let words = ["loadtest", "2", "20", "--db", tree, "--tree", tree];
        folder.run(&words).ok();
        folder.run(&["verify", "--db", tree]).ok();
        folder.run(&["dump", "--db", tree]).ok();
        folder.run(&["get", "--db", tree, contract, "3"]).ok();
    }
}

/// Leaf j of block v of W writes has the index (v + 1) W + j: the rule of zksync-era's load test at 3e29e4a. The tree by its definition says what root that gives.
#[test]
fn leaves_are_numbered_by_either_rule() {
    let folder = Folder::new();
    let root = |more: &[&str]| {
        let out = folder.run(&[&["loadtest", "3", "20"], more].concat());
        let out = out.ok().stdout();
        out.lines().last().expect("a root").to_owned()
    };
    let contract = address!("4b3af74f66ab1f0da3f2e4ec7a3cb99baf1af7b2");
    let by_definition = |index: &dyn Fn(u64) -> u64| {
        let leaves = (0..60).map(|slot| {
            let entry = Entry {
                index: index(slot),
                value: U256::from(20 + slot).to_be_bytes(),
            };
            (LeafName::Slot(contract, U256::from(slot)).key(), entry)
        });
        format!("root: {}", B256::from(naive::root(&leaves.collect())))
    };
    let published = by_definition(&|slot| slot + 1);
    let upstream = by_definition(&|slot| (slot / 20 + 1) * 20 + slot % 20);
    assert_ne!(published, upstream);
    assert_eq!(root(&[]), published);
    assert_eq!(root(&["--numbering", "published", "-M"]), published);
    for more in [&[][..], &["-M", "--proofs", "--reads", "5"]] {
        let words = [&["--numbering", "upstream"], more].concat();
        assert_eq!(root(&words), upstream);
    }
    // Leaves that change take new numbers, which the check and the proofs at the end hold to.
    let changed = ["--numbering", "upstream", "--updates", "5", "--proofs"];
    assert_ne!(root(&changed), upstream);
    let refused = |more: &[&str]| {
        let words = [&["loadtest", "1", "5", "--numbering", "upstream"], more];
        folder.run(&words.concat())
    };
    refused(&["--tree", "mpt"])
        .fails_with(&["--numbering upstream", "does nothing with --tree mpt"]);
    refused(&["--db", "db"]).fails_with(&["--numbering upstream", "without --db"]);
}

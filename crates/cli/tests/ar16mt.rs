//! Databases whose tree is zkSync's: replays, proofs, and the load test.

mod support;

use serde_json::Value;
use support::{Folder, Run};

/// A dump without its first line, which names the tree's root, in the order of addresses.
fn dump(run: &Run) -> Vec<String> {
    let text = run.ok().stdout();
    let mut lines: Vec<(String, String)> = text
        .lines()
        .skip(1)
        .map(|line| {
            let account: Value = serde_json::from_str(line).expect("a JSON line");
            let address = account["address"].as_str().expect("an address");
            (address.to_owned(), line.to_owned())
        })
        .collect();
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect()
}

fn replay(folder: &Folder, db: &str, more: &[&str]) -> Run {
    folder.run(&[&["replay", "--db", db, "chain"], more].concat())
}

fn roots(folder: &Folder, db: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.path(&format!("{db}/roots"))).expect("roots");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn it_keeps_the_state_that_merkle_patricia_keeps() {
    let folder = Folder::with_chain();
    replay(&folder, "mpt", &[]).ok();
    let words = ["--tree", "ar16mt", "--check-state", "5"];
    replay(&folder, "db", &words).ok();
    let head = folder.status("mpt")["block"].as_u64().expect("a number");
    let at = (head - 7).to_string();
    for words in [&[][..], &["--at", &at]] {
        let of = |db| folder.run(&[&["dump", "--db", db], words].concat());
        let expected = dump(&of("mpt"));
        assert!(!expected.is_empty());
        assert_eq!(dump(&of("db")), expected);
    }
    let status = folder.status("db");
    assert_eq!(status["tree"], "ar16mt");
    let header_root = folder.status("mpt")["stateRoot"].clone();
    let verified = folder.run(&["verify", "--db", "db"]).ok().stdout();
    let header_root = header_root.as_str().expect("a root");
    assert!(verified.contains(header_root), "{verified}");
    let root = status["stateRoot"].as_str().expect("a root");
    assert!(roots(&folder, "db").last().expect("a line").ends_with(root));
}

#[test]
fn it_goes_back_and_on() {
    let folder = Folder::with_chain();
    replay(&folder, "db", &["--tree", "ar16mt"]).ok();
    let whole = roots(&folder, "db");
    let head = folder.status("db")["block"].as_u64().expect("a number");
    let back = (head - 6).to_string();
    let rolled = folder.run(&["rollback", "--db", "db", "--to", &back]);
    let root = whole[whole.len() - 7].rsplit(' ').next().expect("a root");
    assert!(rolled.ok().stdout().contains(root));
    folder.run(&["verify", "--db", "db"]).ok();
    replay(&folder, "db", &["--verify", "last"]).fails_with(&["--verify every"]);
    replay(&folder, "db", &[]).ok();
    assert_eq!(roots(&folder, "db"), whole);
    folder.run(&["prune", "--db", "db", "--retain", "2"]).ok();
    folder.run(&["verify", "--db", "db"]).ok();
    replay(&folder, "alone", &["--tree", "ar16mt", "--threads", "1"]).ok();
    assert_eq!(roots(&folder, "alone"), whole);
    replay(&folder, "db", &["--tree", "mpt"]).fails_with(&["merkle-patricia", "ar16mt"]);
    let last = head.to_string();
    let witness = ["witness", "--db", "db", "--block", &last, "chain"];
    folder.run(&witness).fails_with(&["merkle-patricia"]);
    let reads = ["bench", "reads", "--db", "db", "--reads", "10"];
    folder.run(&reads).ok();
}

#[test]
fn accounts_and_slots_are_proven() {
    let folder = Folder::with_chain();
    replay(&folder, "db", &["--tree", "ar16mt"]).ok();
    let head = folder.status("db")["block"].as_u64().expect("a number");
    let roots = roots(&folder, "db");
    let accounts = dump(&folder.run(&["dump", "--db", "db"]));
    let with_storage = |line: &&String| line.contains("storage");
    let line = accounts.iter().find(with_storage).expect("a contract");
    let account: Value = serde_json::from_str(line).expect("JSON");
    let storage = account["storage"].as_object().expect("slots");
    let slot = storage.keys().next().expect("a slot");
    let address = account["address"].as_str().expect("an address");
    for block in [head, head - 5] {
        let root = roots[block as usize].rsplit(' ').next().expect("a root");
        let at = block.to_string();
        let words = [
            "prove", "--db", "db", "--at", &at, address, slot, "12345678",
        ];
        let proof = folder.run(&words).ok().stdout();
        std::fs::write(folder.path("proof.json"), &proof).expect("written");
        let check = |root: &str| folder.run(&["verify-proof", "proof.json", "--root", root]);
        let proven = check(root).ok().stdout();
        assert!(proven.contains("2 slots"), "{proven}");
        let proof: Value = serde_json::from_str(&proof).expect("JSON");
        if block == head {
            let value = storage[slot].as_str().expect("digits");
            let shown = proof["slots"][0]["value"].as_str().expect("a value");
            assert!(shown.ends_with(value), "{shown} {value}");
            assert_eq!(proof["nonce"], account["nonce"]);
        }
        check(&format!("0x{}", "00".repeat(32))).fails_with(&["proof.json", "false proof"]);
        // Whatever is changed, the proof does not hold.
        for (pointer, other) in [
            ("/nonce", Value::from(77)),
            ("/balance", "0x77".into()),
            ("/slots/0/value", "0x77".into()),
            ("/slots/0/slot", "0x77".into()),
            ("/address", format!("0x{}", "77".repeat(20)).into()),
        ] {
            let mut changed = proof.clone();
            *changed.pointer_mut(pointer).expect(pointer) = other;
            std::fs::write(folder.path("proof.json"), changed.to_string()).expect("written");
            check(root).fails_with(&["proof.json"]);
        }
    }
}

/// Several accounts by one proof, a range of leaves, and the prover's logs, at the head and at an older block.
#[test]
fn many_leaves_are_proven_together() {
    let folder = Folder::with_chain();
    replay(&folder, "db", &["--tree", "ar16mt"]).ok();
    let head = folder.status("db")["block"].as_u64().expect("a number");
    let roots = roots(&folder, "db");
    let accounts = dump(&folder.run(&["dump", "--db", "db"]));
    let account = |line: &String| -> Value { serde_json::from_str(line).expect("JSON") };
    let with_storage = accounts.iter().find(|line| line.contains("storage"));
    let contract = account(with_storage.expect("a contract"));
    let slot = contract["storage"].as_object().expect("slots");
    let slot = slot.keys().next().expect("a slot").as_str();
    let address = contract["address"].as_str().expect("an address");
    let other = account(&accounts[0])["address"]
        .as_str()
        .expect("one")
        .to_owned();
    let absent = format!("0x{}", "77".repeat(20));
    for block in [head, head - 5] {
        let root = roots[block as usize].rsplit(' ').next().expect("a root");
        let at = block.to_string();
        let check = |proof: &str, root: &str| {
            std::fs::write(folder.path("proof"), proof).expect("written");
            folder.run(&["verify-proof", "proof", "--root", root])
        };
        let prove = |words: &[&str]| {
            let words = [&["prove", "--db", "db", "--at", &at], words].concat();
            folder.run(&words).ok().stdout()
        };
        let also = format!("{other}:0,0x7");
        let proof = prove(&["--also", &also, "--also", &absent, address, slot]);
        let proven = check(&proof, root).ok().stdout();
        assert!(proven.contains("3 accounts and 3 slots"), "{proven}");
        assert!(proven.contains(&format!("{absent} absent")), "{proven}");
        let slot = folder.run(&["get", "--db", "db", "--at", &at, address, slot]);
        assert!(proven.contains(slot.ok().stdout().trim()), "{proven}");
        let no_root = format!("0x{}", "00".repeat(32));
        check(&proof, &no_root).fails_with(&["proof", "false proof"]);
        // Every digit of the multiproof counts; some are tried here.
        let name = "\"multiproof\": \"0x";
        let begin = proof.find(name).expect("bytes") + name.len();
        let length = proof[begin..].find('"').expect("an end");
        for place in (begin..begin + length).step_by(length / 9) {
            let mut changed = proof.clone().into_bytes();
            changed[place] = if changed[place] == b'0' { b'1' } else { b'0' };
            let changed = String::from_utf8(changed).expect("text");
            check(&changed, root).fails_with(&["proof"]);
        }
        check(&prove(&["--together", address]), root).ok();

        let proof = prove(&["--range", "0x20..0x7f"]);
        let proven = check(&proof, root).ok().stdout();
        assert!(proven.contains("and no others from 0x2000"), "{proven}");
        let mut less: Value = serde_json::from_str(&proof).expect("JSON");
        let entries = less["entries"].as_array_mut().expect("entries");
        assert_eq!(proven.lines().count(), entries.len() + 1);
        entries.pop().expect("leaves");
        check(&less.to_string(), root).fails_with(&["false proof"]);

        let told = prove(&["--storage-logs", "logs"]);
        assert!(told.contains(&format!("of block {block}")), "{told}");
        let logs = std::fs::read(folder.path("logs")).expect("a file");
        let text: String = logs.iter().map(|byte| format!("{byte:02x}")).collect();
        let last = root.trim_start_matches("0x");
        assert!(text.contains(last), "the last log has the block's root");
        let before = roots[block as usize - 1]
            .rsplit(' ')
            .next()
            .expect("a root");
        let check =
            |root: &str| folder.run(&["verify-proof", "logs", "--storage-logs", "--root", root]);
        let proven = check(before).ok().stdout();
        assert!(
            proven.contains(&format!("to root {root}, and from next index"))
                && proven.contains("which no root shows"),
            "{proven}"
        );
        let next = proven.split("from next index ").nth(1).expect("an index");
        let next: u64 = next
            .split(' ')
            .next()
            .expect("an index")
            .parse()
            .expect("a number");
        let due = |next: u64| {
            let (words, next) = (["verify-proof", "logs", "--storage-logs"], next.to_string());
            folder.run(&[&words[..], &["--root", before, "--next-index", &next]].concat())
        };
        assert!(!due(next).ok().stdout().contains("which no root shows"));
        due(next + 1).fails_with(&["logs", "its next index is", "--next-index"]);
        check(root).fails_with(&["logs", "false", "log 0 does not follow"]);
        std::fs::write(folder.path("logs"), &logs[..logs.len() - 1]).expect("written");
        check(before).fails_with(&["logs", "malformed", "end within log"]);
    }
    replay(&folder, "mpt", &[]).ok();
    let refused = [
        &["--together", address][..],
        &["--range", "0x..0x"],
        &["--storage-logs", "x"],
    ];
    for words in refused {
        let words = [&["prove", "--db", "mpt"], words].concat();
        folder.run(&words).fails_with(&["ar16mt"]);
    }
    let no_slot = format!("{absent}:y");
    for (words, why) in [
        (&["--range", "0x30..0x20"][..], "ends before"),
        (&["--range", "20..30"], "0x"),
        (&["--also", &no_slot, address], "'y' is no slot"),
        (&["--also", "x", address], "'x' is no address"),
        (&[], "ADDRESS"),
    ] {
        let words = [&["prove", "--db", "db"], words].concat();
        folder.run(&words).fails_with(&[why]);
    }
}

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

/// It left a file of which nobody knew until the next snapshot came into the same folder.
#[cfg(unix)]
#[test]
fn a_snapshot_that_is_stopped_leaves_nothing() {
    use std::process::{Command, Stdio};
    let folder = Folder::new();
    folder.run(&["loadtest", "1", "200000", "--db", "db"]).ok();
    std::fs::create_dir(folder.path("out")).expect("made");
    let listed = || {
        std::fs::read_dir(folder.path("out"))
            .expect("listed")
            .count()
    };
    let stopped = ["-INT", "-TERM"].map(|signal| {
        // One may be done before it is stopped.
        (0..20).any(|_| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_arbor"));
            command
                .args(["snapshot", "--db", "db", "--out", "out/list"])
                .current_dir(folder.path("."))
                .stdout(Stdio::null())
                .stderr(Stdio::piped());
            let mut child = command.spawn().expect("it runs");
            while listed() == 0 && child.try_wait().expect("asked").is_none() {
                std::thread::yield_now();
            }
            let id = child.id().to_string();
            let _done_already = Command::new("kill").args([signal, &id]).status();
            let ended = child.wait_with_output().expect("ends");
            let _there_or_not = std::fs::remove_file(folder.path("out/list"));
            assert_eq!(listed(), 0, "{signal}");
            let told = String::from_utf8_lossy(&ended.stderr);
            ended.status.code() == Some(130) && told.contains("nothing is written")
        })
    });
    assert_eq!(stopped, [true; 2]);
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
        (&["--tree", "none"], "--tree none"),
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

#[test]
fn a_snapshot_of_entries_is_recovered_and_goes_on() {
    let folder = Folder::with_chain();
    replay(&folder, "db", &["--tree", "ar16mt"]).ok();
    let whole = roots(&folder, "db");
    let head = folder.status("db")["block"].as_u64().expect("a number");
    let middle = (head - 5).to_string();
    for (out, more) in [
        ("by-key", &[][..]),
        ("by-index", &["--order", "index", "--chunk-size", "50"]),
        ("older", &["--at", &middle, "--chunk-size", "70"]),
    ] {
        let words = ["snapshot", "--db", "db", "--out", out];
        let told = folder.run(&[&words[..], more].concat()).ok().stdout();
        assert!(told.contains("codes"), "{told}");
        let db = format!("{out}.db");
        folder.run(&["recover", "--db", &db, out]).ok();
        folder.run(&["verify", "--db", &db]).ok();
        let block = folder.status(&db)["block"].to_string();
        let of = |db| dump(&folder.run(&["dump", "--db", db, "--at", &block]));
        assert_eq!(of(&db), of("db"), "{out}");
        let last = &whole[block.parse::<usize>().expect("a number")];
        let root = last.rsplit(' ').next().expect("a root");
        let again = folder.run(&["recover", "--db", &db, out, "--root", root]);
        again.ok();
        replay(&folder, &db, &[]).ok();
        folder.run(&["verify", "--db", &db]).ok();
        assert_eq!(roots(&folder, &db).last(), whole.last(), "{out}");
    }
    // Cut short, changed, another root, another file, another state.
    let bytes = std::fs::read(folder.path("by-index")).expect("a file");
    let write =
        |name: &str, bytes: &[u8]| std::fs::write(folder.path(name), bytes).expect("written");
    write("cut", &bytes[..bytes.len() * 2 / 3]);
    let recover =
        |db: &str, file: &str| folder.run(&["recover", "--db", db, "--write-back", "1", file]);
    recover("new", "cut").fails_with(&["cut", "cut short"]);
    for words in [["verify", "--db", "new"], ["dump", "--db", "new"]] {
        folder
            .run(&words)
            .fails_with(&["recovery was not finished", "arbor recover"]);
    }
    replay(&folder, "new", &[]).fails_with(&["recovery was not finished"]);
    recover("new", "by-key").fails_with(&["another file"]);
    let rest = recover("new", "by-index").ok().stdout();
    assert!(rest.contains("chunks that were there"), "{rest}");
    folder.run(&["verify", "--db", "new"]).ok();
    let mut changed = bytes.clone();
    changed[bytes.len() * 3 / 4] ^= 1;
    write("changed", &changed);
    recover("other", "changed").fails_with(&[
        "changed",
        "damaged",
        "at byte",
        "remove that folder",
    ]);
    write("none", b"nothing");
    recover("other", "none").fails_with(&["none", "cut short"]);
    recover("db", "older").fails_with(&["has the state of block"]);
    let root = format!("0x{}", "11".repeat(32));
    let words = ["recover", "--db", "other", "by-key", "--root", &root];
    folder.run(&words).fails_with(&["0x1111"]);
    replay(&folder, "mpt", &[]).ok();
    let words = ["snapshot", "--db", "db", "--out", "by-key"];
    folder.run(&words).fails_with(&["by-key", "there already"]);
    let files = || {
        let entries = std::fs::read_dir(folder.path(".")).expect("a folder");
        entries.count()
    };
    let before = files();
    let words = ["snapshot", "--db", "db", "--out", "nowhere/"];
    folder.run(&words).fails_with(&["nowhere/", "folder"]);
    let words = ["snapshot", "--db", "db", "--out", "no-such-folder/file"];
    folder.run(&words).fails_with(&["no-such-folder/file"]);
    assert_eq!(files(), before);
    // What lies beside a snapshot is somebody else's.
    std::fs::write(folder.path("twice.new"), "mine").expect("written");
    let words = ["snapshot", "--db", "db", "--out", "twice"];
    folder.run(&words).ok();
    let mine = std::fs::read_to_string(folder.path("twice.new"));
    assert_eq!(mine.expect("still there"), "mine");
    assert_eq!(files(), before + 2);
    // What a killed one has left goes away with the next; what somebody is writing does not.
    let [killed, written] = ["killed", "locked"].map(|name| {
        let path = folder.path(&format!("snapshot-{name}.unfinished"));
        std::fs::File::create(&path).map(|file| (path, file))
    });
    let (killed, _) = killed.expect("made");
    let (written, file) = written.expect("made");
    file.lock().expect("locked");
    let other = folder.path("snapshot-mine-1.unfinished");
    std::fs::write(&other, "mine").expect("written");
    let words = ["snapshot", "--db", "db", "--out", "after"];
    folder.run(&words).ok();
    let there = [&killed, &written, &other].map(|path| path.exists());
    assert_eq!(there, [false, true, true]);
    let words = ["snapshot", "--db", "mpt", "--out", "x"];
    folder.run(&words).fails_with(&["ar16mt"]);
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

/// A recovery that was refused left the rules of its file in a database of other rules, and a snapshot could take the place of what a database remembers.
#[test]
fn a_refused_recovery_changes_no_database() {
    let folder = Folder::with_chain();
    let replay = |db: &str, more: &[&str]| {
        let words = ["replay", "--db", db, "--tree", "ar16mt", "chain"];
        folder.run(&[&words[..], more].concat()).ok();
    };
    replay("one", &["--to", "9"]);
    replay("two", &["--evm384", "v7"]);
    folder
        .run(&["snapshot", "--db", "two", "--out", "two/rules"])
        .fails_with(&["is the database's own"]);
    folder
        .run(&["snapshot", "--db", "two", "--out", "list"])
        .ok();
    folder
        .run(&["recover", "--db", "one", "list"])
        .fails_with(&["has the state of block 9 already"]);
    let rules = std::fs::read(folder.path("one/rules")).unwrap_or_default();
    assert!(!String::from_utf8_lossy(&rules).contains("v7"));
    replay("one", &[]);
    folder.run(&["recover", "--db", "three", "list"]).ok();
    let rules = std::fs::read_to_string(folder.path("three/rules")).expect("rules");
    assert!(rules.contains("v7"), "{rules}");
}

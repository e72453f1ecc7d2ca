//! Databases whose tree is zkSync's: replays, proofs, snapshots. The load test is in `loadtest.rs`.

use crate::support::{Folder, Run, roots};
use serde_json::Value;

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
    replay(&folder, "db", &["--tree", "mpt"]).fails_with(&["tree mpt", "ar16mt"]);
    let last = head.to_string();
    let witness = ["witness", "--db", "db", "--block", &last, "chain"];
    folder
        .run(&witness)
        .fails_with(&["the tree ar16mt has no witnesses"]);
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
        let of = |of: &[&str]| {
            folder.run(&[&["verify-proof", "proof", "--root", root, "--of"], of].concat())
        };
        of(&[&format!("{other}:7"), "--of", &absent]).ok();
        of(&[&format!("{other}:8")]).fails_with(&["proof", "slot 0x8 of"]);
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
        of(&[&absent]).fails_with(&["proof", "range", &absent]);
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
    for flag in [["--range", "0x..0x"], ["--storage-logs", "x"]] {
        let words = ["prove", "--db", "mpt", flag[0], flag[1]];
        folder
            .run(&words)
            .fails_with(&[flag[0], "leaves by key", "mpt"]);
    }
    // Under every tree several accounts are proven together.
    let words = ["prove", "--db", "mpt", "--also", &absent, address];
    let proof = folder.run(&words).ok().stdout();
    std::fs::write(folder.path("proof"), proof).expect("written");
    let root = folder.status("mpt")["stateRoot"].clone();
    let words = [
        "verify-proof",
        "proof",
        "--root",
        root.as_str().expect("a root"),
    ];
    let shown = folder.run(&words).ok().stdout();
    assert!(shown.contains("2 accounts"), "{shown}");
    let no_slot = format!("{absent}:y");
    for (words, why) in [
        (&["--range", "0x30..0x20"][..], "ends before"),
        (&["--range", "20..30"], "0x"),
        (&["--also", &no_slot, address], "'y' is no slot"),
        (&["--also", "x", address], "'x' is not an address"),
        (&[], "ADDRESS"),
    ] {
        let words = [&["prove", "--db", "db"], words].concat();
        folder.run(&words).fails_with(&[why]);
    }
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
    let words = ["snapshot", "--db", "mpt", "--out", "x", "--order", "index"];
    folder
        .run(&words)
        .fails_with(&["the tree mpt", "leaves by key"]);
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
        .run(&["recover", "--db", "one", "list", "--evm384", "v7"])
        .fails_with(&["has the state of block 9 already"]);
    let rules = std::fs::read(folder.path("one/rules")).unwrap_or_default();
    assert!(!String::from_utf8_lossy(&rules).contains("v7"));
    replay("one", &[]);
    folder
        .run(&["recover", "--db", "three", "list", "--evm384", "v7"])
        .ok();
    let rules = std::fs::read_to_string(folder.path("three/rules")).expect("rules");
    assert!(rules.contains("v7"), "{rules}");
}

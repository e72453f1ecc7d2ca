//! Databases read while another process has them open for writing, or without the right to write.

use std::process::Command;

use crate::support::{Folder, Run, an_account};
use serde_json::Value;

/// Every command that only looks, on the database `db` of the chain `chain`.
fn looks(folder: &Folder) -> Vec<Vec<String>> {
    let (address, slot) = an_account(folder);
    let words = [
        format!("get --db db {address} {slot} --at 7"),
        format!("prove --db db {address} {slot}"),
        format!("prove --db db {address} {slot} --at 7"),
        "dump --db db".to_owned(),
        "witness --db db --block 8 chain".to_owned(),
        "verify --db db".to_owned(),
    ];
    let split = |line: &String| line.split(' ').map(str::to_owned).collect();
    words.iter().map(split).collect()
}

#[test]
fn a_second_process_reads_but_does_not_write() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let looks = looks(&folder);
    let run = |words: &[String]| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        folder.run(&words).ok().stdout()
    };
    let alone: Vec<String> = looks.iter().map(|words| run(words)).collect();

    let lock = arbor_versions::DirLock::acquire(&folder.path("db")).expect("free");
    let store = arbor_store_fjall::FjallStore::open(&folder.path("db/fjall"), &Default::default());
    let held = (lock, store.expect("opens"));
    let beside: Vec<String> = looks.iter().map(|words| run(words)).collect();
    assert_eq!(beside, alone);
    assert!(folder.status("db")["block"].as_u64() > Some(7));
    let pid = std::process::id().to_string();
    for command in [
        &["replay", "--db", "db", "chain"][..],
        &["rollback", "--db", "db", "--to", "7"],
        &["prune", "--db", "db", "--retain", "1"],
    ] {
        let words = ["db", "already open", "LOCK", &pid];
        folder.run(command).fails_with(&words);
    }
    drop(held);
    folder.run(&["rollback", "--db", "db", "--to", "7"]).ok();
    assert_eq!(folder.status("db")["block"], 7);
}

/// Looking left nothing behind but wanted to write: `get` on a read-only disk, or in another user's folder, failed at LOCK.
#[cfg(target_os = "linux")]
#[test]
fn a_database_is_read_without_the_right_to_write() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    use std::path::Path;
    /// The user that owns nothing.
    const NOBODY: u32 = 65534;
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let looks = looks(&folder);
    let allow = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("allowed");
    };
    // Nobody may not reach the build's folder.
    let arbor = folder.path("arbor");
    std::fs::copy(env!("CARGO_BIN_EXE_arbor"), &arbor).expect("copied");
    let temporary = folder.path("tmp");
    std::fs::create_dir(&temporary).expect("made");
    allow(&temporary, 0o777);
    let folders = [
        "db",
        "db/fjall",
        "db/fjall/keyspaces/1",
        "db/fjall/keyspaces/1/tables",
    ];
    folders
        .iter()
        .for_each(|name| allow(&folder.path(name), 0o555));
    allow(folder.0.path(), 0o755);
    let root = std::fs::metadata("/proc/self").expect("a process").uid() == 0;
    for words in &looks {
        let mut command = Command::new(&arbor);
        command.args(words).current_dir(folder.0.path());
        command.env("TMPDIR", &temporary);
        if root {
            command.uid(NOBODY).gid(NOBODY);
        }
        Run(command.output().expect("the binary runs")).ok();
        let left = std::fs::read_dir(&temporary).expect("a folder").count();
        assert_eq!(left, 0, "{words:?} left something");
    }
    // It was said that it could not be written.
    allow(&folder.path("db/fjall/0.jnl"), 0o200);
    let mut command = Command::new(&arbor);
    command.args(["verify", "--db", "db"]);
    command.current_dir(folder.0.path());
    if root {
        command.uid(NOBODY).gid(NOBODY);
    }
    Run(command.output().expect("the binary runs"))
        .fails_with(&["db/fjall/0.jnl cannot be read: no permission"]);
    folders
        .iter()
        .for_each(|name| allow(&folder.path(name), 0o755));
}

/// `status` stopped at files that it only tells of, as the others did at one that they do not need.
#[test]
fn damaged_rules_and_retention_stop_writers_alone() {
    let folder = Folder::with_chain();
    let begin = [
        "replay", "--db", "db", "--to", "8", "--retain", "5", "chain",
    ];
    folder.run(&begin).ok();
    let status = folder.status("db");
    assert_eq!(
        (&status["retain"], &status["rules"]),
        (&"5".into(), &serde_json::json!([]))
    );
    let looks = looks(&folder);
    let begin = std::fs::read(folder.path("db/rules")).expect("remembered");
    for damage in [
        &b"--gas eip476\n"[..],
        b"",
        b"\xff\xfe\0",
        &[b'x'; 1 << 20],
        // 512 of them were read, and taken for a chain without rules.
        &[b'\n'; 513],
    ] {
        std::fs::write(folder.path("db/rules"), damage).expect("written");
        std::fs::write(folder.path("db/retain"), damage).expect("written");
        let status = folder.run(&["status", "--db", "db", "--json"]);
        let found = status.ok().json();
        assert_eq!(
            (&found["retain"], &found["rules"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(found["retained"]["newest"], 8);
        let told = status.stderr();
        for file in ["db/rules", "db/retain"] {
            assert!(told.contains(&format!("{file} is damaged: ")), "{told}");
        }
        assert!(told.len() < 6_000, "{told}");
        let text = folder.run(&["status", "--db", "db"]).ok().stdout();
        assert!(text.contains("rules       not known\n"), "{text}");
        assert!(
            text.contains("blocks 3 to 8, by what --retain is not known"),
            "{text}"
        );
        for words in &looks {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let run = folder.run(&words);
            match words[0] {
                // What a witness means depends on them; and a check of everything tells of them, once it has looked at all else.
                "witness" => run.fails_with(&["db/rules is damaged", "to be removed"]),
                "verify" => {
                    assert!(run.stdout().contains("checked "), "{}", run.stdout());
                    run.fails_with(&["db/rules is damaged", "to be removed"])
                }
                _ => run.ok(),
            };
        }
        let replay = ["replay", "--db", "db", "--to", "9", "chain"];
        folder
            .run(&replay)
            .fails_with(&["db/rules is damaged", "to be removed"]);
        std::fs::write(folder.path("db/rules"), &begin).expect("written");
        folder
            .run(&replay)
            .fails_with(&["db/retain is damaged", "--retain"]);
        assert_eq!(folder.status("db")["block"], 8);
    }
    folder
        .run(&["replay", "--db", "db", "--retain", "7", "chain"])
        .ok();
    assert_eq!(folder.status("db")["retain"], "7");
}

/// A process that is ended however the test ends.
struct Background(std::process::Child);

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn what_is_read_beside_a_running_replay_is_whole() {
    let folder = Folder::new();
    let words = [
        "generate", "--preset", "tiny", "--blocks", "400", "--out", "chain",
    ];
    folder.run(&words).ok();
    let mut command = Command::new(env!("CARGO_BIN_EXE_arbor"));
    command.args([
        "replay",
        "--db",
        "db",
        "--durable",
        "--retain",
        "all",
        "chain",
    ]);
    command.current_dir(folder.0.path());
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let mut replay = Background(command.spawn().expect("the binary runs"));
    let ended = |replay: &mut Background| replay.0.try_wait().expect("asked").is_some();
    let running = || folder.run(&["status", "--db", "db"]).0.status.success();
    while !running() {
        assert!(!ended(&mut replay), "it ended before it wrote anything");
    }
    let at = |block: u64| {
        let words = ["dump", "--db", "db", "--at", &block.to_string()];
        folder.run(&words).ok().stdout()
    };
    let (mut blocks, mut beside) = (Vec::new(), 0);
    // What was read at a block stays what is read there, whatever the replay flushes and merges meanwhile.
    let mut dumps: Vec<(u64, String)> = Vec::new();
    while !ended(&mut replay) {
        let text = folder.run(&["verify", "--db", "db"]).ok().stdout();
        let words = text.lines().next().and_then(|line| line.rsplit(' ').next());
        let block: u64 = words.and_then(|word| word.parse().ok()).expect("a block");
        blocks.push(block);
        beside += u64::from(block < 400);
        if dumps.len() < 5 && dumps.last().is_none_or(|(last, _)| *last < block) {
            dumps.push((block, at(block)));
        }
        let (block, before) = &dumps[blocks.len() % dumps.len()];
        assert!(at(*block) == *before, "block {block} beside {blocks:?}");
    }
    assert!(blocks.is_sorted(), "{blocks:?}");
    assert!(beside > 0, "{blocks:?}");
    for (block, before) in &dumps {
        assert!(at(*block) == *before, "block {block} after the replay");
    }
    let different = |pair: &[(u64, String)]| pair[0].1 != pair[1].1;
    assert!(dumps.windows(2).all(different), "{blocks:?}");
    assert_eq!(folder.status("db")["block"], 400);
}

/// The block was HEAD's and the retained blocks were the store's, of which one may be a flush ahead: block 9 of blocks 0 to 20.
#[test]
fn status_tells_one_moment() {
    let folder = Folder::with_chain();
    folder
        .run(&["replay", "--db", "db", "--to", "5", "chain"])
        .ok();
    let head = std::fs::read(folder.path("db/HEAD")).expect("a head");
    let before = folder.status("db");
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let after = folder.status("db");
    assert_ne!(before["block"], after["block"]);
    // As a reader finds it between a writer's flush and the new HEAD.
    std::fs::write(folder.path("db/HEAD"), &head).expect("written");
    let mut found = folder.status("db");
    found["diskBytes"] = after["diskBytes"].clone();
    assert_eq!(found, after);
    assert_eq!(found["block"], found["retained"]["newest"]);
    // After a kill between the first flush and its HEAD.
    let text = String::from_utf8(head.clone()).expect("text");
    let (_, body) = text.split_once('\n').expect("two lines");
    let mut empty: serde_json::Value = serde_json::from_str(body).expect("JSON");
    empty["head"] = serde_json::Value::Null;
    let empty = format!("{empty}\n");
    let empty = format!("arboretum-head 1 {:08x}\n{empty}", crc32(empty.as_bytes()));
    std::fs::write(folder.path("db/HEAD"), empty).expect("written");
    let mut found = folder.status("db");
    found["diskBytes"] = after["diskBytes"].clone();
    assert_eq!(found, after);
    std::fs::write(folder.path("db/HEAD"), &head).expect("written");
    // What HEAD says stands where the store does not open.
    std::fs::remove_file(folder.path("db/fjall/version")).expect("removed");
    let alone = folder.run(&["status", "--db", "db", "--json"]);
    let alone = alone.fails_with(&["its file version is not there"]).json();
    assert_eq!(alone["block"], before["block"]);
    assert!(alone["retained"].is_null(), "{alone}");
}

/// The checksum of a HEAD file (CRC-32 as in IEEE 802.3).
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 * (sum & 1))
        })
    };
    !bytes.iter().fold(u32::MAX, step)
}

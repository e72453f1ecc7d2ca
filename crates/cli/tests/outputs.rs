//! What commands write, and to what: files, links, FIFOs, devices, names that are not UTF-8.
#![cfg(unix)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::support::{Folder, Run};
use serde_json::Value;

fn arbor(folder: &Folder, words: &[&OsStr]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arbor"));
    command.args(words).current_dir(folder.0.path());
    command
}

/// Replays in memory with a report to a file.
fn report_to(folder: &Folder, file: &str) -> Run {
    folder.run(&["replay", "--store", "memory", "chain", "--report", file])
}

/// Makes a special file as `mkfifo` or `mknod` does; `false`, said aloud, where that is not allowed.
fn make(folder: &Folder, test: &str, words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    let made = command.args(&words[1..]).current_dir(folder.0.path());
    let made = made.status().is_ok_and(|status| status.success());
    if !made {
        arbor_testdata::skip(test, &format!("no right to {}", words.join(" ")));
    }
    made
}

fn is_report(text: &[u8]) {
    let report: Value = serde_json::from_slice(text).expect("JSON");
    assert_eq!(report["schema"], "arboretum/1");
}

/// A report that was written beside its place and renamed left a regular file where there had been a link, a FIFO, or /dev/null.
#[test]
fn a_report_goes_through_links_and_into_fifos_and_devices() {
    let folder = Folder::with_chain();
    fs::create_dir(folder.path("far")).expect("made");
    fs::write(
        folder.path("far/r.json"),
        "a longer text than this ".repeat(1_000),
    )
    .expect("written");
    for (link, aim) in [("there", "far/r.json"), ("dangling", "far/new.json")] {
        symlink(aim, folder.path(link)).expect("linked");
        report_to(&folder, link).ok();
        assert!(folder.path(link).is_symlink(), "{link}");
        is_report(&fs::read(folder.path(aim)).expect("written"));
    }
    // Nothing is left beside what was written.
    assert_eq!(fs::read_dir(folder.path("far")).expect("listed").count(), 2);
    report_to(&folder, "r.json").ok();
    report_to(&folder, "r.json").ok();
    is_report(&fs::read(folder.path("r.json")).expect("written"));
    assert!(!folder.path("r.json.unfinished").exists());
    symlink("missing/r.json", folder.path("astray")).expect("linked");
    report_to(&folder, "astray").fails_with(&["report cannot be written", "astray"]);

    if make(&folder, "a report into a FIFO", &["mkfifo", "fifo"]) {
        let fifo = folder.path("fifo");
        let reader = std::thread::spawn(move || fs::read(fifo).expect("read"));
        report_to(&folder, "fifo").ok();
        is_report(&reader.join().expect("read"));
        let kind = fs::metadata(folder.path("fifo")).expect("there");
        assert!(kind.file_type().is_fifo());
    }
    // The numbers of /dev/null and /dev/full.
    for (name, minor) in [("null", "3"), ("full", "7")] {
        if make(
            &folder,
            "a report into a device",
            &["mknod", name, "c", "1", minor],
        ) {
            let run = report_to(&folder, name);
            // A mount may be without devices.
            if name == "null" && run.stderr().contains("ermission denied") {
                arbor_testdata::skip("a report into a device", "devices do not work here");
            } else if name == "null" {
                run.ok();
            } else {
                run.fails_with(&["writing the report", "full"]);
            }
            let kind = fs::metadata(folder.path(name)).expect("there");
            assert!(kind.file_type().is_char_device(), "{name}");
        }
    }
    let _socket = std::os::unix::net::UnixListener::bind(folder.path("socket")).expect("bound");
    report_to(&folder, "socket").fails_with(&["report cannot be written", "socket"]);
}

/// "Permission denied", since a file was to be made in /dev.
#[test]
fn a_report_to_standard_output_follows_the_summary() {
    let folder = Folder::with_chain();
    let piped = report_to(&folder, "/dev/stdout").ok().stdout();
    let words = ["replay", "--store", "memory", "chain", "--report"];
    for name in ["/dev/stdout", "out"] {
        let out = folder.path("out");
        let words = words.map(OsStr::new);
        let words = [&words[..], &[OsStr::new(name)]].concat();
        let mut command = arbor(&folder, &words);
        let command = command.stdout(fs::File::create(&out).expect("made"));
        assert!(command.status().expect("runs").success());
        for text in [&piped, &fs::read_to_string(&out).expect("read")] {
            let (summary, report) = text.split_at(text.find("\n{").expect("a report"));
            assert!(summary.starts_with("replayed blocks"), "{name}: {text}");
            is_report(report.as_bytes());
        }
    }
}

/// `--report DB/HEAD` succeeded, and the database had no HEAD any more.
#[test]
fn no_report_replaces_a_file_of_the_database() {
    let folder = Folder::with_chain();
    folder
        .run(&["replay", "--db", "db", "--to", "5", "chain"])
        .ok();
    symlink("db/HEAD", folder.path("link")).expect("linked");
    symlink("db", folder.path("other")).expect("linked");
    let own = [
        "HEAD",
        "LOCK",
        "HEAD.new",
        "genesis.json",
        "rules",
        "retain",
        "fjall/x",
    ];
    let mut files: Vec<String> = own.iter().map(|name| format!("db/{name}")).collect();
    files.extend(["db", "link", "other/retain", "chain/../db/HEAD"].map(str::to_owned));
    for file in &files {
        for flag in ["--report", "--failure-dump"] {
            folder
                .run(&["replay", "--db", "db", "chain", flag, file])
                .fails_with(&[flag, file, "the database's own"]);
        }
        folder
            .run(&["bench", "reads", "--db", "db", "--report", file])
            .fails_with(&["--report", file, "the database's own"]);
    }
    assert_eq!(folder.status("db")["block"], 5);
    let words = [
        "replay",
        "--db",
        "db",
        "chain",
        "--report",
        "db/report.json",
    ];
    folder.run(&words).ok();
    folder.run(&words).ok();
    folder.run(&["verify", "--db", "db"]).ok();
}

/// The genesis was looked for under the name with its bytes replaced.
#[test]
fn names_need_not_be_utf8() {
    let folder = Folder::with_chain();
    let name = |bytes: &'static [u8]| OsStr::from_bytes(bytes);
    let (chain, db) = (name(b"n\xff"), name(b"n\xff-db"));
    if fs::rename(folder.path("chain"), folder.0.path().join(Path::new(chain))).is_err() {
        arbor_testdata::skip("names_need_not_be_utf8", "names are UTF-8 here");
        return;
    }
    let run = |words: &[&OsStr]| Run(arbor(&folder, words).output().expect("runs"));
    let replay = ["replay", "--to", "5", "--db"].map(OsStr::new);
    run(&[&replay[..], &[db, chain]].concat()).ok();
    // With the genesis from the database's folder.
    let replay = ["replay", "--db"].map(OsStr::new);
    run(&[&replay[..], &[db, name(b"n\xff/chain.rlp")]].concat()).ok();
    for command in ["status", "verify"] {
        run(&[OsStr::new(command), OsStr::new("--db"), db]).ok();
    }
    run(&["demo", "--out"]
        .map(OsStr::new)
        .into_iter()
        .chain([name(b"d\xff")])
        .collect::<Vec<_>>())
    .ok();
}

/// Only "No space left on device" was said, and not of what.
#[test]
fn a_dump_that_cannot_be_written_says_where() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let Ok(full) = fs::File::create("/dev/full") else {
        arbor_testdata::skip("a_dump_that_cannot_be_written_says_where", "no /dev/full");
        return;
    };
    let mut command = arbor(&folder, &["dump", "--db", "db"].map(OsStr::new));
    Run(command.stdout(full).output().expect("runs")).fails_with(&["writing to standard output: "]);
}

/// Of standard error on a full disk a panic was made, with its exit code.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_told_changes_nothing_else() {
    let folder = Folder::with_chain();
    let full = || {
        fs::File::options()
            .write(true)
            .open("/dev/full")
            .expect("Linux has it")
    };
    let code = |words: &[&str]| {
        let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
        let mut command = arbor(&folder, &words);
        let status = command
            .env("RUST_LOG", "debug")
            .stderr(full())
            .stdout(full())
            .status();
        status.expect("the binary runs").code()
    };
    assert_eq!(code(&["status", "--db", "nothing"]), Some(1));
    assert_eq!(code(&["no-command"]), Some(2));
    // Blocks go in; that nobody was told is an error, which is not told either.
    assert_eq!(code(&["replay", "--db", "db", "chain"]), Some(1));
    assert!(folder.status("db")["block"].as_u64() > Some(7));
    folder.run(&["verify", "--db", "db"]).ok();
    assert_eq!(code(&["verify", "--db", "db"]), Some(1));
    // With standard error alone full, all is done and said.
    let words = ["replay", "--db", "db", "--evm384", "v7", "chain"].map(OsStr::new);
    let refused = arbor(&folder, &words).stderr(full()).status();
    assert_eq!(refused.expect("the binary runs").code(), Some(1));
    let words = ["replay", "--db", "new", "chain"].map(OsStr::new);
    let mut command = arbor(&folder, &words);
    let done = command.env("RUST_LOG", "debug").stderr(full()).output();
    Run(done.expect("the binary runs")).ok();
}

/// `-` was a file of that name for some commands and standard output for others.
#[test]
fn a_dash_is_standard_output_or_refused() {
    let folder = Folder::with_chain();
    let run = |line: &str| folder.run(&line.split_whitespace().collect::<Vec<_>>());
    run("replay --db db --retain all chain").ok();
    let line = "witness --db db --block 3 chain";
    let printed = run(line).ok().stdout();
    assert_eq!(run(&format!("{line} --out -")).ok().stdout(), printed);
    assert!(!folder.path("-").exists());
}

/// That nobody reads on was an error where the name of standard output was given.
#[test]
fn a_reader_of_standard_output_may_leave() {
    let folder = Folder::with_chain();
    let words = ["replay", "--store", "memory", "chain", "--report", "-"];
    let mut command = arbor(&folder, &words.map(OsStr::new));
    let piped = command.stdout(std::process::Stdio::piped());
    let mut child = piped.stderr(std::process::Stdio::piped()).spawn();
    let child = child.as_mut().expect("started");
    drop(child.stdout.take());
    let status = child.wait().expect("ended");
    assert!(status.success(), "{status}");
}

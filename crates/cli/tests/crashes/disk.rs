//! Disks that are full, files that may not grow, syncs that fail: a clear error, and nothing that was flushed is lost.

use std::process::{Command, Stdio};

use crate::crashes::chain::{Chain, HISTORY_PROOFS, MOVING, PLAIN};
use crate::crashes::flips::{in_words, reported_once};
use crate::support::{Folder, Run};

/// Runs a script with the binary as `$ARBOR` in a folder.
pub(crate) fn script(folder: &Folder, program: &[&str], script: &str) -> Run {
    let mut command = Command::new(program[0]);
    command
        .args(&program[1..])
        .args(["sh", "-c", script])
        .env("ARBOR", env!("CARGO_BIN_EXE_arbor"))
        .current_dir(folder.0.path());
    Run(command.output().expect("a shell"))
}

/// Whether a program can be used here; tests say so where it cannot.
pub(crate) fn works(test: &str, words: &[&str]) -> bool {
    let run = Command::new(words[0])
        .args(&words[1..])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let works = run.is_ok_and(|status| status.success());
    if !works {
        let reason = format!("no right or no program: {}", words.join(" "));
        arbor_testdata::skip(test, &reason);
    }
    works
}

/// Runs a command where it may mount.
pub(crate) const MOUNTS: [&str; 3] = ["unshare", "--mount", "--map-root-user"];

/// Whether a test may mount a tmpfs here.
pub(crate) fn tmpfs_works(test: &str) -> bool {
    let mount = ["mount", "-t", "tmpfs", "none", "/mnt"];
    works(test, &[&MOUNTS[..], &mount].concat())
}

/// A small tmpfs in a namespace of its own fills up amid a replay, also with writes that are cut short; with more room the
/// same database goes on.
#[test]
fn a_full_disk_is_an_error_and_costs_nothing() {
    if !tmpfs_works("a_full_disk_is_an_error_and_costs_nothing") {
        return;
    }
    let chain = Chain::new(120, 30);
    for (kilobytes, budget, flags) in [
        (300, "40kB", PLAIN),
        (1_500, "40kB", PLAIN),
        (900, "3MiB", PLAIN),
        (1_300, "1MiB", PLAIN),
        (1_500, "40kB", HISTORY_PROOFS),
        (2_000, "1MiB", HISTORY_PROOFS),
        (1_500, "40kB", MOVING),
        (1_200, "1MiB", MOVING),
    ] {
        let moves = flags == MOVING;
        let flags = flags.join(" ");
        let run = script(
            &chain.folder,
            &MOUNTS,
            &format!(
                "mkdir -p small && mount -t tmpfs -o size={kilobytes}k none small || exit 99
                 timeout 100 $ARBOR replay --db small/db --write-back {budget} {flags} chain >out.txt 2>err.txt; echo $? >code.txt
                 $ARBOR status --db small/db --json >standing.txt 2>/dev/null
                 mount -o remount,size=200m small || exit 99
                 if [ -s standing.txt ]; then
                     $ARBOR verify --db small/db || exit 97
                     $ARBOR status --db small/db --json | cmp -s - standing.txt || $ARBOR status --db small/db --json >ahead.txt
                 fi
                 $ARBOR replay --db small/db {flags} chain && cp -a --sparse=always small/db grown"
            ),
        );
        let place = format!("{kilobytes} kB, budget {budget} {flags}");
        assert!(
            run.0.status.success(),
            "{place}: {:?} {}{}",
            run.0.status,
            run.stdout(),
            run.stderr()
        );
        let read = |name| std::fs::read_to_string(chain.path(name)).unwrap_or_default();
        assert_eq!(
            read("code.txt").trim(),
            "1",
            "{place}: {}{}",
            read("out.txt"),
            read("err.txt")
        );
        assert!(
            read("err.txt").contains("No space left") || read("err.txt").contains("no space left"),
            "{place}: {}",
            read("err.txt")
        );
        assert!(
            !read("err.txt").contains("panicked"),
            "{place}: {}",
            read("err.txt")
        );
        reported_once(&read("err.txt"), &place);
        let out = read("out.txt");
        assert!(!out.contains("replayed block"), "{place}: {out}");
        match moves {
            true => chain.assert_moved("grown", &place),
            false => assert_eq!(chain.assert_whole("grown", &place).block, chain.last()),
        }
        println!("full disk of {place}: {}", read("err.txt").trim());
        std::fs::remove_dir_all(chain.path("grown")).expect("removed");
    }
}

/// Files may not grow beyond a limit, so that writes end short.
#[test]
fn a_file_size_limit_is_an_error_and_costs_nothing() {
    let chain = Chain::new(60, 30);
    for flags in [PLAIN, HISTORY_PROOFS] {
        limit_files(&chain, flags);
        std::fs::remove_dir_all(chain.path("db")).expect("removed");
    }
}

fn limit_files(chain: &Chain, flags: &[&str]) {
    let words = ["replay", "--db", "db", "--to", "20", "--write-back", "20kB"];
    chain.run(&[&words[..], flags, &["chain"]].concat()).ok();
    // In 512 bytes, or in 1,024 for some shells. The signal that comes with it is left as it is: it killed the process without a word.
    for limit in [1, 64, 400] {
        let run = script(
            &chain.folder,
            &["env"],
            &format!(
                "ulimit -f {limit}; exec timeout 100 $ARBOR replay --db db --write-back 20kB chain"
            ),
        );
        let place = format!("limit {limit} {flags:?}");
        if !run.0.status.success() {
            in_words(&run, &place);
        }
        println!("{place}: {}", run.stderr().trim());
        chain.assert_whole("db", &place);
    }
    chain.run(&["replay", "--db", "db", "chain"]).ok();
    assert_eq!(chain.assert_whole("db", "at the end").block, chain.last());
}

/// The system says that a sync failed: what it covers may never reach the disk, so it does not count as flushed.
#[test]
fn a_failed_sync_is_an_error_and_costs_nothing() {
    let inject = |call: &str, from: u32| format!("--inject={call}:error=EIO:when={from}+");
    let fails = inject("fsync", 1);
    let probe = ["strace", "-f", "-qq", "-o", "/dev/null", &fails, "true"];
    if !works("a_failed_sync_is_an_error_and_costs_nothing", &probe) {
        return;
    }
    let chain = Chain::new(40, 10);
    let mut failed = 0;
    for (call, from, flags) in [
        ("fsync", 3, PLAIN),
        ("fsync", 16, PLAIN),
        ("fsync", 40, PLAIN),
        ("fsync", 41, PLAIN),
        ("fsync", 42, PLAIN),
        ("rename", 12, PLAIN),
        ("fsync", 40, HISTORY_PROOFS),
        ("fsync", 41, HISTORY_PROOFS),
    ] {
        let flags = flags.join(" ");
        let place = format!("{call} fails from its call {from} on {flags}");
        let fails = inject(call, from);
        let trace = ["strace", "-f", "-qq", "-o", "/dev/null", &fails];
        let run = script(
            &chain.folder,
            &trace,
            &format!("exec timeout 100 $ARBOR replay --db db --durable --threads 1 {flags} chain"),
        );
        if !run.0.status.success() {
            failed += 1;
            in_words(&run, &place);
        }
        println!("{place}: {}", run.stderr().trim());
        if let Some(standing) = chain.standing("db") {
            let found = chain.assert_whole("db", &place);
            assert!(found.block >= standing.block, "{place}");
        }
        chain.run(&["replay", "--db", "db", "chain"]).ok();
        assert_eq!(chain.assert_whole("db", &place).block, chain.last());
        std::fs::remove_dir_all(chain.path("db")).expect("removed");
    }
    assert!(failed > 4, "the faults hit: {failed}");
}

//! Temporary stores, in which states that lie too far back for memory are made: what a killed process leaves of them, and a full
//! disk under them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::crashes::chain::Chain;
use crate::crashes::disk::{MOUNTS, script, tmpfs_works};
use crate::crashes::flips::reported_once;

/// Memory in which the changes of the whole chain have no room.
const SMALL: [&str; 2] = ["--memory", "64MiB"];

/// A chain with many more changes than are made in memory, as [`SMALL`] allows.
fn chain() -> Chain {
    Chain::new(60, 300)
}

/// The folders of temporary stores in a folder.
fn stores(temporary: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(temporary).expect("listed");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_store = |path: &PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy();
        name.starts_with("arbor-past-")
    };
    paths.filter(is_store).collect()
}

/// Starts a command that makes an old state, and returns once its store has files.
fn begun(chain: &Chain, words: &[&str], temporary: &Path) -> (Child, PathBuf) {
    let before = stores(temporary);
    let mut child = chain
        .command(words)
        .env("TMPDIR", temporary)
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let start = Instant::now();
    loop {
        let mut found = stores(temporary).into_iter();
        if let Some(store) = found.find(|store| !before.contains(store))
            && fs::read_dir(store.join("files")).is_ok_and(|mut files| files.next().is_some())
        {
            return (child, store);
        }
        let ended = child.try_wait().expect("waited for");
        assert!(ended.is_none(), "it made no temporary store: {ended:?}");
        assert!(start.elapsed() < Duration::from_secs(60), "no store");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_a_killed_process_leaves_is_removed_by_the_next() {
    let chain = chain();
    let temporary = chain.path("tmp");
    fs::create_dir(&temporary).expect("made");
    let prove = ["prove", "--db", "whole", "--at", "1", chain.account()];
    let prove = [&prove[..], &SMALL].concat();
    let verify = [&["verify", "--db", "whole"][..], &SMALL].concat();
    for words in [&prove, &verify] {
        let (mut killed, store) = begun(&chain, words, &temporary);
        killed.kill().expect("killed");
        killed.wait().expect("ended");
        assert!(store.exists(), "a killed process leaves its store");
        let (mut next, its_own) = begun(&chain, words, &temporary);
        assert!(!store.exists(), "{}", store.display());
        // Another one does not take the store of the living.
        let mut other = chain.command(words);
        let other = other.env("TMPDIR", &temporary).output().expect("runs");
        assert!(other.status.success());
        assert!(its_own.exists() || next.try_wait().expect("waited for").is_some());
        assert!(next.wait().expect("ended").success());
        let left: Vec<_> = fs::read_dir(&temporary).expect("listed").collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// The disk of the temporary files is full. The database, which lies on another one, is whole, and with more room the same command succeeds.
#[test]
fn a_full_disk_of_temporary_files_is_an_error_and_costs_nothing() {
    if !tmpfs_works("a_full_disk_of_temporary_files_is_an_error_and_costs_nothing") {
        return;
    }
    let chain = chain();
    let prove = format!("prove --db whole --at 1 {}", chain.account());
    let mut of_stores = 0;
    for command in [&prove[..], "dump --db whole --at 1", "verify --db whole"] {
        for kilobytes in [16, 100, 300, 1_000, 2_000, 4_000] {
            let place = format!("{command} with {kilobytes} kB");
            let memory = SMALL.join(" ");
            let run = script(
                &chain.folder,
                &MOUNTS,
                &format!(
                    "mkdir -p small && mount -t tmpfs -o size={kilobytes}k none small || exit 99
                     export TMPDIR=$PWD/small
                     timeout 100 $ARBOR {command} {memory} >out.txt 2>err.txt; echo $? >code.txt
                     ls small >left.txt
                     mount -o remount,size=400m small || exit 99
                     $ARBOR {command} {memory} >again.txt || exit 98
                     ls small >>left.txt"
                ),
            );
            assert!(run.0.status.success(), "{place}: {}", run.stderr());
            let read = |name| fs::read_to_string(chain.path(name)).expect("written");
            assert_eq!(read("left.txt"), "", "{place}");
            let said = read("err.txt");
            println!("{place}: {} {said}", read("code.txt").trim());
            assert!(!said.contains("panicked"), "{place}: {said}");
            if read("code.txt").trim() == "0" {
                assert_eq!(read("out.txt"), read("again.txt"), "{place}");
                continue;
            }
            assert_eq!(read("code.txt").trim(), "1", "{place}: {said}");
            reported_once(&said, &place);
            let small = chain.path("small");
            for word in [&*small.to_string_lossy(), "free", "set TMPDIR"] {
                assert!(said.contains(word), "{place}: no '{word}' in: {said}");
            }
            of_stores += u32::from(said.contains("the temporary store for an older version"));
        }
    }
    assert!(of_stores >= 3, "{of_stores} stores had no room");
    chain.assert_whole("whole", "after all");
}

/// A rollback far back goes in steps, and the disk of the database is full before the last: the database is whole, and the same command goes on.
#[test]
fn a_full_disk_amid_a_rollback_is_an_error_and_costs_nothing() {
    if !tmpfs_works("a_full_disk_amid_a_rollback_is_an_error_and_costs_nothing") {
        return;
    }
    let chain = chain();
    let mut failed = 0;
    for spare in [50, 200, 500, 1_000] {
        let place = format!("{spare} kB to spare");
        let memory = SMALL.join(" ");
        let run = script(
            &chain.folder,
            &MOUNTS,
            &format!(
                "mkdir -p small && mount -t tmpfs -o size=400m none small || exit 99
                 cp -a --sparse=always whole small/db
                 used=$(df -k --output=used small | tail -1)
                 mount -o remount,size=$((used + {spare}))k small || exit 99
                 timeout 100 $ARBOR rollback --db small/db --to 1 {memory} >out.txt 2>err.txt; echo $? >code.txt
                 mount -o remount,size=400m small || exit 99
                 $ARBOR verify --db small/db >verified.txt || exit 97
                 $ARBOR status --db small/db --json >standing.txt || exit 96
                 $ARBOR rollback --db small/db --to 1 {memory} || exit 98
                 cp -a --sparse=always small/db back"
            ),
        );
        let read = |name| fs::read_to_string(chain.path(name)).unwrap_or_default();
        let said = read("err.txt");
        println!("{place}: {} {said}", read("code.txt").trim());
        assert!(
            run.0.status.success(),
            "{place}: {said}{}{}",
            read("verified.txt"),
            run.stderr()
        );
        if read("code.txt").trim() != "0" {
            failed += 1;
            assert_eq!(read("code.txt").trim(), "1", "{place}: {said}");
            assert!(!said.contains("panicked"), "{place}: {said}");
            assert!(said.contains("small/db"), "{place}: {said}");
            assert!(
                said.to_lowercase().contains("no space left"),
                "{place}: {said}"
            );
            reported_once(&said, &place);
        }
        assert_eq!(chain.assert_whole("back", &place).block, 1);
        fs::remove_dir_all(chain.path("back")).expect("removed");
    }
    assert!(failed > 1, "{failed} rollbacks had no room");
}

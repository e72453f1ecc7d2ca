//! Conversions that are killed again and again, or run out of room: the database that comes of them is the one that an undisturbed conversion makes.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use alloy_primitives::{B256, Keccak256};
use arbor_store_fjall::FjallStore;

use crate::crashes::chain::{Random, number};
use crate::crashes::disk::{MOUNTS, script, tmpfs_works};
use crate::support::Folder;

/// Kills of an ordinary test run, for each tree.
const FEW: u64 = 4;

/// The names of all trees.
fn trees() -> Vec<&'static str> {
    let rows = arbor_trees::standard();
    rows.rows().map(|row| row.name).collect()
}

/// A source, and folders for what is made of it.
struct Conversions {
    folder: Folder,
}

impl Conversions {
    /// A database of the usual tree with a state of so many accounts.
    fn new(accounts: u64) -> Self {
        let folder = Folder::new();
        let accounts = accounts.to_string();
        let words = "generate --preset tiny --out chain --mix visit=1 --blocks 2 --population";
        let words: Vec<&str> = words.split(' ').chain([&*accounts]).collect();
        folder.run(&words).ok();
        folder
            .run(&["replay", "--db", "db", "--to", "1", "chain"])
            .ok();
        Self { folder }
    }

    fn words<'w>(&self, tree: &'w str, to: &'w str) -> [&'w str; 9] {
        [
            "convert", "--from", "db", "--tree", tree, "--to", to, "--memory", "64MiB",
        ]
    }

    /// All tables of a database: how many records, and the hash of their keys and values.
    fn tables(&self, tree: &str, db: &str) -> BTreeMap<&'static str, (u64, B256)> {
        let path = self.folder.path(db).join("fjall");
        let store = FjallStore::open_to_read(&path, &Default::default()).expect("a store");
        let kind = arbor_trees::standard().find(tree).expect("a tree");
        let tables = kind.tables.iter().map(|spec| {
            let (mut records, mut hash) = (0, Keccak256::new());
            for record in store.scan(spec.table, &[], &[]).expect("a scan") {
                let (key, value) = record.expect("a record");
                for bytes in [&key[..], &value[..]] {
                    hash.update((bytes.len() as u64).to_be_bytes());
                    hash.update(bytes);
                }
                records += 1;
            }
            (spec.name, (records, hash.finalize()))
        });
        tables.collect()
    }

    fn remove(&self, db: &str) {
        std::fs::remove_dir_all(self.folder.path(db)).expect("removed");
    }
}

/// `ARBOR_KILLS` says how many, `ARBOR_ACCOUNTS` of how large a state: `just convert-kills`.
#[test]
fn a_killed_conversion_goes_on_to_the_same_database() {
    let accounts = number("ARBOR_ACCOUNTS").unwrap_or(6_000);
    let conversions = Conversions::new(accounts);
    let wanted = number("ARBOR_KILLS").unwrap_or(FEW);
    let mut random = Random::from_environment("conversions");
    for tree in trees() {
        let start = Instant::now();
        conversions
            .folder
            .run(&conversions.words(tree, "whole"))
            .ok();
        let takes = start.elapsed();
        let expected = conversions.tables(tree, "whole");
        let (mut kills, mut rounds) = (0, 0);
        while kills < wanted {
            // Shorter and shorter, so that every phase is met; but each run gets further than the one before.
            let mut span = takes.as_micros() as u64;
            let mut in_this = 0;
            loop {
                let moment = Duration::from_micros(random.below(span));
                let mut child = Command::new(env!("CARGO_BIN_EXE_arbor"))
                    .args(conversions.words(tree, "to"))
                    .current_dir(conversions.folder.0.path())
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .expect("the binary runs");
                std::thread::sleep(moment);
                let has_ended = child.try_wait().expect("asked").is_some();
                if !has_ended && kills < wanted {
                    child.kill().expect("killed");
                    child.wait().expect("waited for");
                    kills += 1;
                    in_this += 1;
                    if in_this % 4 == 0 {
                        span *= 2;
                    }
                    continue;
                }
                let output = child.wait_with_output().expect("waited for");
                let told = String::from_utf8_lossy(&output.stderr);
                assert!(
                    output.status.success(),
                    "{tree} after {kills} kills: {told}"
                );
                break;
            }
            rounds += 1;
            assert_eq!(
                conversions.tables(tree, "to"),
                expected,
                "{tree} after {kills} kills"
            );
            let verify = ["verify", "--memory", "64MiB", "--db", "to"];
            conversions.folder.run(&verify).ok();
            assert!(!conversions.folder.path("to/convert").exists());
            conversions.remove("to");
        }
        conversions.remove("whole");
        println!(
            "{tree}: {kills} kills of conversions of {accounts} accounts, which take {takes:?}, in {rounds} databases: all the same"
        );
    }
}

/// A small tmpfs fills up at several moments of a conversion.
#[test]
fn a_conversion_on_a_full_disk_goes_on() {
    if !tmpfs_works("a_conversion_on_a_full_disk_goes_on") {
        return;
    }
    let conversions = Conversions::new(6_000);
    for tree in trees() {
        conversions
            .folder
            .run(&conversions.words(tree, "whole"))
            .ok();
        let expected = conversions.tables(tree, "whole");
        for kilobytes in [400, 1_200, 2_500] {
            let run = script(
                &conversions.folder,
                &MOUNTS,
                &format!(
                    "mkdir -p small && mount -t tmpfs -o size={kilobytes}k none small || exit 99
                     convert() {{ timeout 100 $ARBOR convert --skip-disk-check --from db --to small/to --tree {tree} --memory 64MiB; }}
                     convert 2>full.txt && exit 98
                     for text in 'the disk of small/to' 'free space on it, then the same command goes on'; do
                         grep -q \"$text\" full.txt || {{ cat full.txt; exit 97; }}
                     done
                     grep -q panicked full.txt && {{ cat full.txt; exit 96; }}
                     mount -o remount,size=300m small || exit 99
                     convert && $ARBOR verify --memory 64MiB --db small/to && rm -rf to && cp -a --sparse=always small/to to"
                ),
            );
            let place = format!("{tree}, {kilobytes} kB");
            let text = format!("{}{}", run.stdout(), run.stderr());
            assert!(run.0.status.success(), "{place}: {:?} {text}", run.0.status);
            assert_eq!(conversions.tables(tree, "to"), expected, "{place}");
        }
        conversions.remove("whole");
    }
    conversions.folder.run(&["verify", "--db", "db"]).ok();
}

/// Runs on a full disk, each with a little more room, filled it with what no later run reads.
#[test]
fn runs_on_a_full_disk_do_not_fill_what_is_freed() {
    if !tmpfs_works("runs_on_a_full_disk_do_not_fill_what_is_freed") {
        return;
    }
    let conversions = Conversions::new(20_000);
    // One has the order of the source, and the other has not.
    for tree in &trees()[..2] {
        let run = script(
            &conversions.folder,
            &MOUNTS,
            &format!(
                "mkdir -p small && mount -t tmpfs -o size=5000k none small || exit 99
                 for size in 5000 5500 6000 6500 7000; do
                     mount -o remount,size=${{size}}k small || exit 99
                     $ARBOR convert --skip-disk-check --from db --to small/to --tree {tree} --memory 64MiB 2>full.txt && exit 98
                     grep -q 'then the same command goes on' full.txt || {{ cat full.txt; exit 97; }}
                     du -ks small | cut -f1
                 done"
            ),
        );
        let text = format!("{}{}", run.stdout(), run.stderr());
        assert!(run.0.status.success(), "{tree}: {text}");
        let taken: Vec<u64> = text
            .lines()
            .map(|line| line.parse().expect("kilobytes"))
            .collect();
        assert!(taken[4] < taken[1] + 200, "{tree}: {taken:?}");
    }
}

/// The target has a HEAD and no version until all of it is built: it was called an empty database, into which a chain is to be replayed.
#[test]
fn a_target_that_is_being_built_is_not_called_empty() {
    let conversions = Conversions::new(40_000);
    let folder = &conversions.folder;
    let tree = trees()[1];
    let is_built = || folder.path("to/converted.json").exists();
    for _ in 0..10 {
        let _ = std::fs::remove_dir_all(folder.path("to"));
        let mut child = Command::new(env!("CARGO_BIN_EXE_arbor"))
            .args(conversions.words(tree, "to"))
            .current_dir(folder.0.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let has = |name: &str| folder.path("to").join(name).exists();
        while !(has("HEAD") && has("convert/job.json") || is_built()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("killed");
        child.wait().expect("waited for");
        if !is_built() {
            break;
        }
    }
    assert!(!is_built(), "every conversion ended before it was killed");
    let told = ["conversion into to is not finished", "--from db --tree"];
    let address = "0x1111111111111111111111111111111111111111";
    let commands = [
        format!("get --db to {address}"),
        format!("prove --db to {address}"),
        "status --db to".to_owned(),
        "dump --db to".to_owned(),
        "verify --db to".to_owned(),
        "roots --db to".to_owned(),
        "inspect --db to".to_owned(),
        "snapshot --db to --out snapshot".to_owned(),
        "serve --db to".to_owned(),
        "witness --db to --block 1 chain --out witness".to_owned(),
        "preimages export --db to --out preimages".to_owned(),
        "convert --from to --to other --tree mpt".to_owned(),
        "backup --db to --to copy".to_owned(),
        "rollback --db to --to 0".to_owned(),
        "replay --db to chain".to_owned(),
    ];
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        println!("{command}");
        folder.run(&words).fails_with(&told);
    }
}

/// A disk without enough room is told of before anything is written.
#[test]
fn a_disk_that_is_too_small_is_refused() {
    if !tmpfs_works("a_disk_that_is_too_small_is_refused") {
        return;
    }
    let conversions = Conversions::new(6_000);
    let run = script(
        &conversions.folder,
        &MOUNTS,
        "mkdir -p small && mount -t tmpfs -o size=1m none small || exit 99
         $ARBOR convert --from db --to small/to --tree mpt --memory 64MiB 2>full.txt && exit 98
         cat full.txt; grep -q 'are free' full.txt || exit 97
         test ! -e small/to || exit 96",
    );
    assert!(
        run.0.status.success(),
        "{:?} {}",
        run.0.status,
        run.stdout()
    );
}

/// The second process says who has the target.
#[test]
fn two_processes_do_not_make_one_target() {
    let conversions = Conversions::new(40_000);
    let tree = trees()[1];
    let mut first = Command::new(env!("CARGO_BIN_EXE_arbor"))
        .args(conversions.words(tree, "to"))
        .current_dir(conversions.folder.0.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let begun = conversions.folder.path("to/convert/job.json");
    let start = Instant::now();
    while !begun.exists() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let second = conversions.folder.run(&conversions.words(tree, "to"));
    assert!(
        first.try_wait().expect("asked").is_none(),
        "the first ended too early"
    );
    second.fails_with(&["to", &first.id().to_string()]);
    assert!(first.wait().expect("waited for").success());
}

//! A process that writes keys and values is killed at any moment: the database opens whole, with every version that was said to be
//! durable, and goes on to the same roots.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use arbor_database::primitives::{B256, keccak256};
use arbor_database::{KeyValueTree, KeyValueWrite, OpenOptions, Retain, Version};

/// Tells the child where its database is, and under which tree.
const FOLDER: &str = "ARBOR_KILLED_FOLDER";
const TREE: &str = "ARBOR_KILLED_TREE";
const KILLS: u64 = 12;
const KEYS: u64 = 3_000;

fn open(tree: &str, folder: &Path) -> KeyValueTree {
    let options = OpenOptions::new().tree(tree).retain(Retain::Last(8));
    let opened = options.memory(16 << 20).open_key_value(folder);
    opened.expect("opened")
}

/// New keys and changed ones, the same for a version in every process.
fn batch(version: u64) -> Vec<KeyValueWrite> {
    let mut writes: Vec<u64> = (0..200).map(|place| version * 131 + place * 17).collect();
    writes.sort_unstable_by_key(|number| number % KEYS);
    writes.dedup_by_key(|number| *number % KEYS);
    let key = |number: u64| keccak256((number % KEYS).to_be_bytes());
    let value = |number: u64| keccak256([number, version].map(u64::to_be_bytes).concat());
    let writes = writes.into_iter();
    writes
        .map(|number| KeyValueWrite::put(key(number), value(number)))
        .collect()
}

fn next(tree: &KeyValueTree) -> u64 {
    tree.version().map_or(0, |version| version.0 + 1)
}

/// The process that is killed: not a test of its own.
#[test]
#[ignore = "the process that the test below kills"]
fn writes_until_it_is_killed() {
    let (Some(folder), Ok(tree)) = (std::env::var_os(FOLDER), std::env::var(TREE)) else {
        return;
    };
    let mut tree = open(&tree, Path::new(&folder));
    loop {
        let version = next(&tree);
        tree.extend(&batch(version)).expect("extended");
        match version % 7 {
            // Back and forth, so that a kill meets rollbacks, too.
            5 => tree.rollback(Version(version - 2)).expect("rolled back"),
            _ if version.is_multiple_of(3) => tree.flush().expect("flushed"),
            _ => continue,
        }
        let durable = tree.version().expect("written").0;
        println!("durable {durable}");
        std::io::stdout().flush().expect("a pipe");
        // Over the versions that were rolled back.
        if version % 7 == 5 {
            for _ in 0..3 {
                tree.extend(&batch(next(&tree))).expect("extended");
            }
        }
    }
}

#[test]
fn a_killed_writer_of_keys_and_values_leaves_a_whole_database() {
    for kind in ["ar16mt", "eip8297"] {
        let folder = tempfile::tempdir().expect("made");
        let path = folder.path().join("db");
        let mut roots: Vec<B256> = Vec::new();
        let model = OpenOptions::new().tree(kind).key_value_in_memory();
        let mut model = model.expect("made");
        let mut killed_at = Vec::new();
        for kill in 0..KILLS {
            let program = std::env::current_exe().expect("known");
            let mut child = Command::new(program)
                .args(["--ignored", "--exact", "--nocapture"])
                .arg("killed::writes_until_it_is_killed")
                .env(FOLDER, &path)
                .env(TREE, kind)
                .stdout(Stdio::piped())
                .spawn()
                .expect("started");
            let output = child.stdout.take().expect("piped");
            let reader = std::thread::spawn(move || {
                let lines = BufReader::new(output).lines().map_while(Result::ok);
                let durable = lines.filter_map(|line| line.strip_prefix("durable ")?.parse().ok());
                durable.last()
            });
            std::thread::sleep(Duration::from_millis(120 + 37 * (kill * 7 % 11)));
            child.kill().expect("killed");
            child.wait().expect("ended");
            // What it said last is durable; the rollback after that may have begun.
            let durable: Option<u64> = reader.join().expect("read");
            let mut tree = open(kind, &path);
            let found = tree.version().map(|version| version.0);
            assert!(
                found >= durable.map(|durable| durable.saturating_sub(2)),
                "{kind}: {found:?} after {durable:?} was durable"
            );
            let report = tree.verify().expect("verified");
            assert!(report.is_ok(), "{kind}: {:?}", report.faults);
            if let Some(found) = found {
                while roots.len() as u64 <= found {
                    let version = roots.len() as u64;
                    roots.push(model.extend(&batch(version)).expect("extended"));
                }
                assert_eq!(
                    tree.root(),
                    roots[found as usize],
                    "{kind}, version {found}"
                );
            }
            killed_at.push(found);
        }
        assert!(killed_at.iter().any(Option::is_some), "{killed_at:?}");
    }
}

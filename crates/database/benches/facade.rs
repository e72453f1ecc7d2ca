//! What the facade costs: the same calls through `OpenOptions`, and through the crates below it by hand.
//!
//! `cargo bench -p arbor-database --bench facade [-- --rounds N]`: 9 rounds if not given, the sides
//! in turn. A key-value tree (EIP-8297's) of 100,000 entries in a folder: it is opened, extended by
//! a batch of 10,000 puts with root, commit and flush, 10,000 random keys are read, and 100 proven.
//! Both must come to the same roots. Prints the median of each step and the ratio.
#![allow(clippy::unwrap_used, reason = "a benchmark may end where it fails")]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arbor_database::primitives::{B256, keccak256};
use arbor_database::{Budget, KeyValueTree, KeyValueWrite, OpenOptions};
use arbor_store_fjall::FjallStore;
use arbor_trees::eip8297::EIP8297;
use arbor_versions::DirLock;

const ENTRIES: u64 = 100_000;
const BATCH: u64 = 10_000;
const READS: u64 = 10_000;
const PROOFS: u64 = 100;
const MEMORY: u64 = 256 << 20;
const STEPS: [&str; 4] = ["open", "batch of 10,000", "10,000 reads", "100 proofs"];

type Open = fn(&Path) -> KeyValueTree;

fn key(number: u64) -> B256 {
    keccak256(number.to_be_bytes())
}

fn batch(numbers: std::ops::Range<u64>) -> Vec<KeyValueWrite> {
    let write = |number| KeyValueWrite::put(key(number), key(!number));
    numbers.map(write).collect()
}

fn by_facade(dir: &Path) -> KeyValueTree {
    let options = OpenOptions::new().tree("eip8297").memory(MEMORY);
    options.open_key_value(dir).unwrap()
}

fn by_hand(dir: &Path) -> KeyValueTree {
    let lock = DirLock::acquire(dir).unwrap();
    let budget = Budget::new(MEMORY);
    let options = arbor_store_fjall::Options {
        cache_bytes: MEMORY / 16,
        ..Default::default()
    };
    let store = FjallStore::open(&dir.join("fjall"), &options).unwrap();
    KeyValueTree::open(
        Arc::new(store),
        Some(lock),
        EIP8297.tree(),
        budget.options(),
    )
    .unwrap()
}

/// Seconds of each step, and the root at the end.
fn round(open: Open, dir: &Path, number: u64) -> ([f64; 4], B256) {
    let mut seconds = [0.0; 4];
    let begin = Instant::now();
    let mut tree = open(dir);
    seconds[0] = begin.elapsed().as_secs_f64();

    let first = ENTRIES + number * BATCH;
    let writes = batch(first..first + BATCH);
    let begin = Instant::now();
    let root = tree.extend(&writes).unwrap();
    tree.flush().unwrap();
    seconds[1] = begin.elapsed().as_secs_f64();

    let chosen = |place: u64| key(place * 7_919 % (first + BATCH));
    let keys: Vec<B256> = (0..READS).map(chosen).collect();
    let begin = Instant::now();
    let found = keys.iter().filter(|key| tree.get(**key).unwrap().is_some());
    assert_eq!(found.count() as u64, READS);
    seconds[2] = begin.elapsed().as_secs_f64();

    let begin = Instant::now();
    for key in keys.iter().take(PROOFS as usize) {
        tree.prove(&[*key]).unwrap();
    }
    seconds[3] = begin.elapsed().as_secs_f64();
    (seconds, root)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut arguments = std::env::args().skip_while(|word| word != "--rounds");
    let rounds = arguments
        .nth(1)
        .map_or(9, |word| word.parse().expect("a number"));
    let sides: [Open; 2] = [by_facade, by_hand];
    let folders = sides.map(|_| tempfile::tempdir().unwrap());
    for folder in &folders {
        let mut tree = by_facade(folder.path());
        tree.extend(&batch(0..ENTRIES)).unwrap();
        tree.flush().unwrap();
    }
    let mut seconds = [Vec::new(), Vec::new()];
    for number in 0..rounds {
        let mut roots = Vec::new();
        // Who begins changes, too.
        for turn in 0..2 {
            let side = (turn + number as usize) % 2;
            let (taken, root) = round(sides[side], folders[side].path(), number);
            seconds[side].push(taken);
            roots.push(root);
        }
        assert_eq!(roots[0], roots[1], "the same entries");
    }
    println!("| step | facade, ms | by hand, ms | ratio |\n|---|---:|---:|---:|");
    for (place, step) in STEPS.iter().enumerate() {
        let [facade, by_hand] = [0, 1]
            .map(|side: usize| median(seconds[side].iter().map(|taken| taken[place]).collect()));
        let (ratio, facade, by_hand) = (facade / by_hand, facade * 1e3, by_hand * 1e3);
        println!("| {step} | {facade:.2} | {by_hand:.2} | {ratio:.3} |");
    }
}

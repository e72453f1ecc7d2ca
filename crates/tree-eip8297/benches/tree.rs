//! The tree in memory on one thread: random keys inserted in batches, then batches of new and of
//! changed keys, for each packing asked for.
//!
//! `cargo bench -p arbor-tree-eip8297 -- [--keys N] [--first N] [--levels N,...] [--inner] [--hash
//! NAME]`: 1,000,000 keys in batches of 10,000, levels 4, and BLAKE3 if not given.
//!
//! Prints for each batch size: time and hashes for each key, the part of the time that the hashes
//! alone take in one batch of as many messages, and records and bytes read and written for each
//! key; and the bytes of all records for each key. Half of the keys of the small batches are new,
//! half change. Roots of all packings are compared before anything is printed.

use std::time::{Duration, Instant};

use arbor_tree_eip8297::{
    Hash, Hasher, LeafUpdate, MemoryRecords, Packing, Path, TreeStats, apply,
};

struct Settings {
    keys: u64,
    first: u64,
    levels: Vec<u8>,
    inner_hashes: bool,
    hasher: Hasher,
}

fn settings() -> Settings {
    let mut settings = Settings {
        keys: 1_000_000,
        first: 10_000,
        levels: vec![4],
        inner_hashes: false,
        hasher: Hasher::blake3(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut next = || arguments.next().expect("a value");
        match argument.as_str() {
            "--keys" => settings.keys = next().parse().expect("a number"),
            "--first" => settings.first = next().parse().expect("a number"),
            "--levels" => {
                let levels = next();
                let levels = levels.split(',').map(|n| n.parse().expect("levels"));
                settings.levels = levels.collect();
            }
            "--inner" => settings.inner_hashes = true,
            "--hash" => settings.hasher = Hasher::named(&next()).expect("a hash function"),
            _ => {} // Cargo adds some of its own.
        }
    }
    settings
}

/// The key with a number: in the zone of accounts, and hashed.
fn key(number: u64) -> Path {
    let hash = Hasher::blake3().hash(&number.to_le_bytes());
    let mut bytes = [0; 34];
    bytes[1..33].copy_from_slice(&hash);
    Path::of_key(&bytes).expect("34 bytes")
}

fn updates(numbers: impl Iterator<Item = u64>, round: u64) -> Vec<LeafUpdate> {
    let mut value: Hash = [0; 32];
    value[16..24].copy_from_slice(&(round + 1).to_be_bytes());
    let mut updates: Vec<LeafUpdate> = numbers
        .map(|number| LeafUpdate {
            key: key(number),
            value,
        })
        .collect();
    updates.sort_unstable_by_key(|update| update.key);
    updates.dedup_by_key(|update| update.key);
    updates
}

/// The tree under one packing, and what batches took.
struct Tree {
    packing: Packing,
    records: MemoryRecords,
    root: Hash,
}

#[derive(Default)]
struct Sum {
    keys: u64,
    time: Duration,
    stats: TreeStats,
}

impl Tree {
    /// Applies a batch: reading, changing, hashing, and taking the records over.
    fn apply(&mut self, hasher: Hasher, updates: &[LeafUpdate], sum: &mut Sum) {
        let start = Instant::now();
        let update = apply(&self.records, hasher, self.packing, updates).expect("keys of a tree");
        self.root = update.root;
        self.records.change(update.nodes);
        sum.time += start.elapsed();
        sum.keys += updates.len() as u64;
        let (stats, more) = (&mut sum.stats, update.stats);
        stats.records_read += more.records_read;
        stats.bytes_read += more.bytes_read;
        stats.records_written += more.records_written;
        stats.bytes_written += more.bytes_written;
        stats.leaf_hashes += more.leaf_hashes;
        stats.branch_hashes += more.branch_hashes;
    }

    fn print(&self, hasher: Hasher, what: &str, sum: &Sum) {
        let Sum { keys, time, stats } = sum;
        let of_key = |number: u64| number as f64 / *keys as f64;
        let hashes = stats.leaf_hashes + stats.branch_hashes;
        let alone = hashes_alone(hasher, hashes);
        println!(
            "levels {} {what}: {:.0} ns and {:.1} hashes a key, {:.2} times the hashes alone; read {:.2} records, {:.0} bytes; written {:.2} records, {:.0} bytes",
            self.packing.levels,
            time.as_nanos() as f64 / *keys as f64,
            of_key(hashes),
            time.as_secs_f64() / alone.as_secs_f64(),
            of_key(stats.records_read),
            of_key(stats.bytes_read),
            of_key(stats.records_written),
            of_key(stats.bytes_written),
        );
    }
}

/// The time of as many hashes of branches, 67 bytes each, in batches.
fn hashes_alone(hasher: Hasher, hashes: u64) -> Duration {
    let messages: Vec<[u8; 67]> = (0..4096u32)
        .map(|number| {
            let mut message = [7; 67];
            message[..4].copy_from_slice(&number.to_le_bytes());
            message
        })
        .collect();
    let start = Instant::now();
    let rounds = 200;
    for _ in 0..rounds {
        std::hint::black_box(hasher.hash_fixed(std::hint::black_box(&messages)));
    }
    start
        .elapsed()
        .mul_f64(hashes as f64 / (rounds * messages.len()) as f64)
}

fn main() {
    let settings = settings();
    let hasher = settings.hasher;
    let inner_hashes = settings.inner_hashes;
    let mut trees: Vec<(Tree, Vec<(String, Sum)>)> = settings
        .levels
        .iter()
        .map(|levels| {
            let packing = Packing {
                levels: *levels,
                inner_hashes,
            };
            let records = MemoryRecords::default();
            let root = [0; 32];
            (
                Tree {
                    packing,
                    records,
                    root,
                },
                Vec::new(),
            )
        })
        .collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.expect("a thread").install(|| {
        for (tree, sums) in &mut trees {
            let mut sum = Sum::default();
            for begin in (0..settings.keys).step_by(settings.first as usize) {
                let end = settings.keys.min(begin + settings.first);
                tree.apply(hasher, &updates(begin..end, 0), &mut sum);
            }
            sums.push((format!("inserted in batches of {}", settings.first), sum));
            let mut next = settings.keys;
            for size in [1_000, 10_000] {
                let mut sum = Sum::default();
                for round in 1..=20 {
                    // Every other key is new.
                    let step = (settings.keys / size).max(1);
                    let changed = (0..size / 2).map(|at| (at * 2 * step + round) % settings.keys);
                    let new = next..next + size / 2;
                    next += size / 2;
                    tree.apply(hasher, &updates(changed.chain(new), round), &mut sum);
                }
                sums.push((format!("batches of {size}"), sum));
            }
        }
        let roots = trees.iter().map(|(tree, _)| tree.root);
        assert!(roots.clone().all(|root| Some(root) == roots.clone().next()));
        for (tree, sums) in &trees {
            for (what, sum) in sums {
                tree.print(hasher, what, sum);
            }
            let records = tree.records.records();
            let bytes: usize = records
                .iter()
                .map(|(path, record)| path.database_key().len() + record.len())
                .sum();
            println!(
                "levels {}: {} records, {:.0} bytes of keys and records for each key",
                tree.packing.levels,
                records.len(),
                bytes as f64 / settings.keys as f64
            );
        }
    });
}

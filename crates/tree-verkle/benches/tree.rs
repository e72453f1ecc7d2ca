//! A large tree of random keys: filled, built, changed in batches, proven. `cargo bench -p arbor-tree-verkle -- [--keys N] [--threads N] [--tables BYTES] [--json]`.
//!
//! bench-peers/verkle_tree.py runs it beside go-verkle, whose program makes the same keys and values; roots tell whether both did the same.

use arbor_cpu::prefetch;
use arbor_ipa::{Committer, ValueChange};
use arbor_tree::ReadError;
use arbor_tree_verkle::{
    NodeKey, NodeReader, Settings, Stem, StemUpdate, Value, ValueReader, Witness, apply, build,
    prove,
};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;
use std::time::Instant;

/// As `arbor` has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Keys of a batch, and how many batches of each kind are made.
const BATCHES: [(usize, usize); 2] = [(1_000, 5), (10_000, 3)];

/// Keys of a proof, and how many proofs are made.
const PROOFS: [(usize, usize); 2] = [(1_000, 3), (10_000, 3)];

/// Keys that are looked up side by side: more than fetches that a core has under way, few enough for its first cache.
const KEYS_LOOKED_UP_TOGETHER: usize = 24;

/// A hash of keys that nobody chooses: each word times a constant, both halves of the product folded into one.
#[derive(Default)]
struct Folded(u64);

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let product = u128::from(self.0 ^ u64::from_le_bytes(word)) * 0x9e37_79b9_7f4a_7c15;
            self.0 = product as u64 ^ (product >> 64) as u64;
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Entries by key. A tree's nodes lie anywhere in memory, and one that is asked for many at once need not wait for each.
struct Table<K, V> {
    /// Places in `all`, plus one, from where a key's hash says on; at most half in use.
    table: Vec<u32>,
    all: Vec<(K, V)>,
    hasher: BuildHasherDefault<Folded>,
}

impl<K: Copy + Eq + Hash, V> Table<K, V> {
    fn new() -> Self {
        Self {
            table: vec![0; 64],
            all: Vec::new(),
            hasher: BuildHasherDefault::default(),
        }
    }

    /// Makes room for so many more.
    fn reserve(&mut self, count: usize) {
        self.all.reserve(count);
        let count = self.all.len() + count;
        if self.table.len() <= 2 * count {
            self.table = vec![0; (2 * count + 1).next_power_of_two()];
            for (place, (key, _)) in (1..).zip(&self.all) {
                let at = self.find(key, self.start(key));
                self.table[at] = place;
            }
        }
    }

    fn start(&self, key: &K) -> usize {
        self.hasher.hash_one(key) as usize & (self.table.len() - 1)
    }

    /// Where in the table a key's place is, or where it would be.
    fn find(&self, key: &K, mut at: usize) -> usize {
        while let Some(place) = self.table[at].checked_sub(1) {
            if self.all[place as usize].0 == *key {
                break;
            }
            at = (at + 1) & (self.table.len() - 1);
        }
        at
    }

    /// There must be room.
    fn put(&mut self, key: K, value: V) {
        let at = self.find(&key, self.start(&key));
        match self.table[at].checked_sub(1) {
            Some(place) => self.all[place as usize].1 = value,
            None => {
                self.all.push((key, value));
                self.table[at] = self.all.len() as u32;
            }
        }
    }

    /// Gives `each` the values of keys, in their order.
    fn get_all(&self, keys: &[K], mut each: impl FnMut(&[Option<&V>])) {
        let mut starts = [0; KEYS_LOOKED_UP_TOGETHER];
        for keys in keys.chunks(KEYS_LOOKED_UP_TOGETHER) {
            for (start, key) in starts.iter_mut().zip(keys) {
                *start = self.start(key);
                prefetch(&self.table[*start]);
            }
            for start in &starts[..keys.len()] {
                if let Some(place) = self.table[*start].checked_sub(1) {
                    prefetch(&self.all[place as usize]);
                }
            }
            let mut found = [None; KEYS_LOOKED_UP_TOGETHER];
            for ((found, key), start) in found.iter_mut().zip(keys).zip(starts) {
                let place = self.table[self.find(key, start)].checked_sub(1);
                *found = place.map(|place| &self.all[place as usize].1);
            }
            each(&found[..keys.len()]);
        }
    }
}

/// Records, none where one was removed, and for each stem its only value.
struct Nodes {
    records: Table<NodeKey, Option<Arc<[u8]>>>,
    values: Table<Stem, (u8, Value)>,
}

impl NodeReader for Nodes {
    fn nodes(&self, keys: &[NodeKey]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        let mut all = Vec::with_capacity(keys.len());
        self.records.get_all(keys, |found| {
            let records = || found.iter().map(|record| record.and_then(Option::as_ref));
            for record in records().flatten() {
                // Its count of owners and its end, which is what most are asked for.
                let ends = record.first().into_iter().chain(record.last());
                ends.for_each(prefetch);
            }
            all.extend(records().map(Option::<&Arc<_>>::cloned));
        });
        Ok(all)
    }
}

impl ValueReader for Nodes {
    fn values(&self, stems: &[Stem]) -> Result<Vec<Vec<(u8, Value)>>, ReadError> {
        let mut all = Vec::with_capacity(stems.len());
        self.values.get_all(stems, |found| {
            let values = found
                .iter()
                .map(|value| value.copied().into_iter().collect());
            all.extend(values);
        });
        Ok(all)
    }
}

/// Pseudo-random bytes number `i` of some kind.
fn bytes(kind: &str, i: u64) -> [u8; 32] {
    let hash = Sha256::new()
        .chain_update(kind)
        .chain_update(i.to_le_bytes());
    hash.finalize().into()
}

/// The keys with these numbers, sorted, each with its number.
fn keys(numbers: impl Iterator<Item = u64>) -> Vec<(Stem, u8, u64)> {
    let key = |i| {
        let key = bytes("key", i);
        let mut stem = [0; 31];
        stem.copy_from_slice(&key[..31]);
        (stem, key[31], i)
    };
    let mut keys: Vec<_> = numbers.map(key).collect();
    keys.sort_unstable();
    keys
}

/// Sets keys to their value of some generation, from the one before (none if it is 0).
fn updates(keys: &[(Stem, u8, u64)], old: Option<&str>, new: &str) -> Vec<StemUpdate> {
    let update = |(stem, suffix, i): &(Stem, u8, u64)| StemUpdate {
        stem: *stem,
        changes: vec![ValueChange {
            suffix: *suffix,
            old: old.map(|old| bytes(old, *i)),
            new: Some(bytes(new, *i)),
        }],
    };
    keys.iter().map(update).collect()
}

struct Bench {
    committer: Committer,
    settings: Settings,
    nodes: Nodes,
    root: [u8; 32],
    insert_peak: u64,
    rows: Vec<Json>,
}

impl Bench {
    fn row(&mut self, name: &str, keys: usize, wall: f64, root: [u8; 32]) {
        eprintln!(
            "{name:12} {keys:8} keys {:9.2} us/key",
            wall / keys as f64 * 1e6
        );
        self.rows
            .push(json!({ "name": name, "keys": keys, "s": wall, "root": hex::encode(root) }));
    }

    fn apply(&mut self, name: &str, updates: &[StemUpdate]) {
        let start = Instant::now();
        let done = apply(&self.nodes, &self.committer, updates, &self.settings).expect("applies");
        let root = done.root_hash();
        self.row(name, updates.len(), start.elapsed().as_secs_f64(), root);
        let Nodes { records, values } = &mut self.nodes;
        records.reserve(done.nodes.len());
        for change in done.nodes {
            records.put(change.key, change.record);
        }
        values.reserve(updates.len());
        for update in updates {
            if let Some(value) = update.changes[0].new {
                values.put(update.stem, (update.changes[0].suffix, value));
            }
        }
        self.root = root;
    }

    /// Proves the keys with these numbers and verifies the proof, both from and to bytes.
    fn prove(&mut self, size: usize, numbers: impl Iterator<Item = u64>) {
        let asked: Vec<_> = keys(numbers)
            .into_iter()
            .map(|(stem, suffix, _)| (stem, suffix))
            .collect();
        let start = Instant::now();
        let witness = prove(&self.nodes, &self.committer, &asked).expect("proves");
        let bytes = witness.to_bytes();
        self.row(
            &format!("prove/{size}"),
            size,
            start.elapsed().as_secs_f64(),
            self.root,
        );
        let start = Instant::now();
        let witness = Witness::from_bytes(&bytes).expect("reads");
        let verified = witness
            .verify(&self.committer, &self.root)
            .expect("well formed");
        let after = verified
            .expect("holds")
            .root_after(&self.committer)
            .expect("computes");
        self.row(
            &format!("verify/{size}"),
            size,
            start.elapsed().as_secs_f64(),
            after,
        );
        eprintln!("{} bytes", bytes.len());
    }

    /// Bytes of all nodes with their keys.
    fn stored(&self) -> usize {
        let bytes = |(key, record): &(NodeKey, Option<Arc<[u8]>>)| {
            let record = record.as_ref();
            record.map_or(0, |record| 1 + key.depth() + record.len())
        };
        self.nodes.records.all.iter().map(bytes).sum()
    }

    fn run(&mut self, count: u64) {
        let all = keys(0..count);
        let leaves = all
            .iter()
            .map(|(stem, suffix, i)| (*stem, vec![(*suffix, bytes("value", *i))]));
        let leaves: Vec<_> = leaves.collect();
        let mut records = 0;
        let start = Instant::now();
        let root = build(&self.committer, &self.settings, leaves, &mut |_, record| {
            records += record.len();
        });
        let wall = start.elapsed().as_secs_f64();
        self.row("build", all.len(), wall, root.expect("builds").to_bytes());

        let first = updates(&all, None, "value");
        drop(all);
        self.apply("insert", &first);
        drop(first);
        assert!(self.stored() > records);
        self.insert_peak = peak_memory();
        let mut next = count;
        for (size, times) in BATCHES {
            for _ in 0..times {
                let new = keys(next..next + size as u64);
                self.apply(&format!("new/{size}"), &updates(&new, None, "value"));
                next += size as u64;
            }
            for _ in 0..times {
                // Keys that were just added are updated, so that old values are those of the first generation.
                next -= size as u64;
                let old = keys(next..next + size as u64);
                self.apply(
                    &format!("updated/{size}"),
                    &updates(&old, Some("value"), "second"),
                );
            }
            next += (size * times) as u64;
        }
        for (size, times) in PROOFS {
            for i in 0..times as u64 {
                // Every so many of the first keys.
                let step = count / size as u64;
                self.prove(size, (0..size as u64).map(|at| at * step + i));
            }
        }
    }
}

/// As in a replay: the tables lie in large pages if they can, everything else does not.
#[cfg(target_os = "linux")]
fn use_small_pages() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        eprintln!("large pages stay: {error}");
    }
}

#[cfg(not(target_os = "linux"))]
fn use_small_pages() {}

fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

fn main() {
    let (mut count, mut threads, mut tables, mut json) = (100_000, 1, 150_000_000, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || -> usize {
            let number = arguments.next().and_then(|number| number.parse().ok());
            number.expect("a number behind the option")
        };
        match argument.as_str() {
            // What cargo adds.
            "--bench" => {}
            "--keys" => count = number(),
            "--threads" => threads = number(),
            "--tables" => tables = number(),
            "--json" => json = true,
            other => panic!("no such option: {other}"),
        }
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("threads");
    let bench = pool.install(|| {
        let committer = Committer::within(tables);
        use_small_pages();
        let mut bench = Bench {
            committer,
            settings: Settings::default(),
            nodes: Nodes {
                records: Table::new(),
                values: Table::new(),
            },
            root: [0; 32],
            insert_peak: 0,
            rows: Vec::new(),
        };
        bench.run(count as u64);
        bench
    });
    let keys = bench.nodes.values.all.len();
    // Values are stored beside the nodes, which have their stems and suffixes.
    let stored = bench.stored() + 32 * keys;
    let result = json!({
        "threads": threads,
        "rows": bench.rows,
        "insert_peak_bytes": bench.insert_peak,
        "peak_bytes": peak_memory(),
        "stored_bytes": stored,
        "stored_keys": keys,
    });
    if json {
        println!("{result}");
    } else {
        eprintln!(
            "peak memory {} MB; {:.1} bytes per key",
            peak_memory() / 1_000_000,
            stored as f64 / keys as f64
        );
    }
}

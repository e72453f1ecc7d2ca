//! The tree in memory on one thread: random slots inserted in batches of 10,000, then batches of
//! new and of changed ones.
//!
//! `cargo bench -p arbor-tree-eip7864 -- [--keys N] [--levels N] [--inner] [--hash NAME] [--json]`:
//! 1,000,000 keys, levels 4 and SHA-256 if not given.
//!
//! A key is that of a random slot of a random address under the revision of 9 March 2026, so that
//! `bench-peers/bintrie.py` can run go-ethereum's tree on the same. Times include names, reading,
//! changing, hashing, and taking the records over. Prints for each row the time and the calls of the
//! hash function for each key, and the part of the time that the calls alone take; and the memory
//! for each key. `--json` prints one object with the root after every step instead.

use std::time::Instant;

use arbor_tree_eip7864::{
    Hash, HashFunction, Hasher, LeafUpdate, MemoryRecords, Packing, Stem, apply, key,
};

struct Settings {
    keys: u64,
    packing: Packing,
    hasher: Hasher,
    json: bool,
}

fn settings() -> Settings {
    let mut settings = Settings {
        keys: 1_000_000,
        packing: Packing::default(),
        hasher: Hasher::named("sha256").expect("one of the functions"),
        json: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut next = || arguments.next().expect("a value");
        match argument.as_str() {
            "--keys" => settings.keys = next().parse().expect("a number"),
            "--levels" => settings.packing.levels = next().parse().expect("levels"),
            "--inner" => settings.packing.inner_hashes = true,
            "--hash" => settings.hasher = Hasher::named(&next()).expect("a hash function"),
            "--json" => settings.json = true,
            _ => {} // Cargo adds some of its own.
        }
    }
    settings
}

/// Pseudo-random bytes of some kind, the same as the peer's.
fn random(kind: &str, number: u64) -> Hash {
    let sha256 = HashFunction::named("sha256").expect("one of the functions");
    sha256.hash(&[kind.as_bytes(), &number.to_le_bytes()].concat())
}

/// A slot of an account, and its value.
struct Slot {
    address: [u8; 20],
    slot: Hash,
    value: Hash,
}

fn slots(from: u64, count: u64, kind: &str) -> Vec<Slot> {
    let slot = |number| {
        let mut address = [0; 20];
        address.copy_from_slice(&random("address", number)[..20]);
        Slot {
            address,
            slot: random("slot", number),
            value: random(kind, number),
        }
    };
    (from..from + count).map(slot).collect()
}

/// The updates of slots, all of which are outside the header: names hashed together, sorted.
fn updates(hasher: Hasher, slots: &[Slot]) -> Vec<LeafUpdate> {
    let name = |of: &Slot| {
        let mut name = [0; 64];
        name[12..32].copy_from_slice(&of.address);
        // The position is 256^31 more than the slot's number, and the index without its last byte.
        let (first, carry) = of.slot[0].overflowing_add(1);
        name[32] = carry.into();
        name[33] = first;
        name[34..].copy_from_slice(&of.slot[1..31]);
        name
    };
    let names: Vec<[u8; 64]> = slots.iter().map(name).collect();
    let stems = hasher.hash_fixed(&names);
    let updates = stems.iter().zip(slots).map(|(hash, of)| {
        let stem: &Stem = hash.first_chunk().expect("32 bytes");
        LeafUpdate {
            key: key(stem, of.slot[31]),
            value: Some(of.value),
        }
    });
    let mut updates: Vec<LeafUpdate> = updates.collect();
    updates.sort_unstable_by_key(|update| update.key);
    updates
}

struct Row {
    name: String,
    keys: u64,
    seconds: f64,
    calls: u64,
    root: Hash,
}

struct Bench {
    settings: Settings,
    records: MemoryRecords,
    rows: Vec<Row>,
}

impl Bench {
    fn step(&mut self, name: &str, slots: &[Slot]) {
        let Settings {
            hasher, packing, ..
        } = self.settings;
        let start = Instant::now();
        let updates = updates(hasher, slots);
        let update = apply(&self.records, hasher, packing, &updates).expect("keys of a tree");
        self.records.change(update.nodes);
        self.rows.push(Row {
            name: name.to_owned(),
            keys: slots.len() as u64,
            seconds: start.elapsed().as_secs_f64(),
            calls: update.stats.calls + slots.len() as u64,
            root: update.root,
        });
    }

    fn run(&mut self) {
        let keys = self.settings.keys;
        for begin in (0..keys).step_by(10_000) {
            self.step("insert", &slots(begin, 10_000.min(keys - begin), "value"));
        }
        let mut next = keys;
        for (size, times) in [(1_000, 5), (10_000, 3)] {
            for _ in 0..times {
                self.step(&format!("new/{size}"), &slots(next, size, "value"));
                next += size;
            }
            for round in 1..=times {
                let from = next - round * size;
                self.step(&format!("changed/{size}"), &slots(from, size, "second"));
            }
        }
    }

    /// Bytes of keys and records.
    fn stored(&self) -> usize {
        let records = self.records.records().iter();
        records
            .map(|(path, record)| path.database_key().len() + record.len())
            .sum()
    }

    fn print(&self) {
        let per_call = seconds_of_call(self.settings.hasher);
        let mut names: Vec<&str> = self.rows.iter().map(|row| &*row.name).collect();
        names.dedup();
        for name in names {
            let rows = || self.rows.iter().filter(|row| row.name == name);
            let keys: u64 = rows().map(|row| row.keys).sum();
            let calls: u64 = rows().map(|row| row.calls).sum();
            let seconds: f64 = rows().map(|row| row.seconds).sum();
            println!(
                "{name}: {:.2} us and {:.1} hashes a key, {:.2} times the hashes alone",
                seconds * 1e6 / keys as f64,
                calls as f64 / keys as f64,
                seconds / (per_call * calls as f64),
            );
        }
        let keys = self.settings.keys as f64;
        println!(
            "{} records, {:.0} bytes of keys and records a key; peak memory of the process {:.0} bytes a key",
            self.records.records().len(),
            self.stored() as f64 / keys,
            peak_memory() as f64 / keys
        );
    }

    fn print_json(&self) {
        let hex = |root: &Hash| -> String { root.iter().map(|b| format!("{b:02x}")).collect() };
        let rows = self.rows.iter().map(|row| {
            let Row {
                name,
                keys,
                seconds,
                calls,
                root,
            } = row;
            let root = hex(root);
            format!(
                r#"{{"name":"{name}","keys":{keys},"s":{seconds},"calls":{calls},"root":"{root}"}}"#
            )
        });
        let rows: Vec<String> = rows.collect();
        println!(
            r#"{{"rows":[{}],"peak_bytes":{},"stored_bytes":{},"seconds_of_call":{:e}}}"#,
            rows.join(","),
            peak_memory(),
            self.stored(),
            seconds_of_call(self.settings.hasher)
        );
    }
}

/// The time of one of many hashes of 64 bytes.
fn seconds_of_call(hasher: Hasher) -> f64 {
    let messages: Vec<[u8; 64]> = (0..4096u32)
        .map(|number| {
            let mut message = [7; 64];
            message[..4].copy_from_slice(&number.to_le_bytes());
            message
        })
        .collect();
    let (start, rounds) = (Instant::now(), 200);
    for _ in 0..rounds {
        std::hint::black_box(hasher.hash_fixed(std::hint::black_box(&messages)));
    }
    start.elapsed().as_secs_f64() / (rounds * messages.len()) as f64
}

/// The largest resident set so far, in bytes; 0 if the system does not say.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    1024 * kib.unwrap_or_default()
}

fn main() {
    let mut bench = Bench {
        settings: settings(),
        records: MemoryRecords::default(),
        rows: Vec::new(),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.expect("a thread").install(|| bench.run());
    match bench.settings.json {
        true => bench.print_json(),
        false => bench.print(),
    }
}

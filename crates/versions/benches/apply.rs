//! Time to apply a version of 800 flat changes and 1,500 changes of nodes, over a memory store, with
//! 64 MiB of unflushed data: the overhead of this crate for each block, its flushes included.
//!
//! `foreground` makes flushes a part of `apply`; `background` runs them on a second thread; `without
//! flushes` is `foreground` less the time in flushes.

use std::collections::{BTreeSet, HashMap};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arbor_store::{MemoryStore, Table};
use arbor_versions::{
    Change, Changes, Identity, Meta, Options, TableKind, TableSpec, Version, Versions,
};
use criterion::{Criterion, criterion_group, criterion_main};

const SLOTS: Table = Table(1);
const NODES: Table = Table(2);
const FLAT_CHANGES: u64 = 800;
const NODE_CHANGES: u64 = 1500;
/// Flat keys that exist at most: 2,000 owners with 250 slots each.
const KEYS: u64 = 500_000;

/// A sequence of versions like those of a busy chain: half of the changes fall on a hundredth of
/// the keys.
struct Chain {
    versions: Versions,
    values: HashMap<Box<[u8]>, Vec<u8>>,
    random: u64,
    next: u64,
}

impl Chain {
    fn new(options: Options) -> Self {
        let spec = |table, name, kind| TableSpec { table, name, kind };
        let tables = [
            spec(SLOTS, "slots", TableKind::Flat),
            spec(NODES, "nodes", TableKind::Nodes),
        ];
        let identity = Identity {
            tree: "bench".into(),
            revision: "1".into(),
            hash: "none".into(),
            layout: 1,
            chain_id: 1,
            genesis: [0; 32],
            space: 0,
            moves_to: None,
            since: None,
        };
        let store = Arc::new(MemoryStore::default());
        let versions = Versions::create(store, None, &identity, &tables, options);
        Self {
            versions: versions.expect("created"),
            values: HashMap::new(),
            random: 1,
            next: 0,
        }
    }

    /// SplitMix64.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.random)
    }

    fn pick(&mut self, of: u64) -> u64 {
        let number = self.random();
        if number & 1 == 0 {
            (number >> 1) % (of / 100)
        } else {
            (number >> 1) % of
        }
    }

    fn changes(&mut self) -> Changes {
        let mut changes = Changes::default();
        let numbers = 0..FLAT_CHANGES;
        let keys: BTreeSet<Box<[u8]>> = numbers.map(|_| slot_key(self.pick(KEYS))).collect();
        for key in keys {
            let new = self.random().to_be_bytes().repeat(4);
            changes.put_flat(Change {
                table: SLOTS,
                key: &key,
                old: self.values.get(&key).map(|old| &old[..]),
                new: Some(&new),
            });
            self.values.insert(key, new);
        }
        for _ in 0..NODE_CHANGES {
            let number = self.pick(2 * KEYS);
            let bytes = 60 + (mix(number) % 8) as usize * 60;
            let fill = self.random() as u8;
            let record = (fill > 20).then(|| vec![fill; bytes]);
            changes.put_node(NODES, &slot_key(number)[..40], record.as_deref());
        }
        changes
    }

    /// Applies versions and returns the time that `apply` took.
    fn run(&mut self, count: u64) -> Duration {
        let mut time = Duration::ZERO;
        for _ in 0..count {
            let changes = self.changes();
            let meta = Meta {
                version: Version(self.next),
                block_number: self.next,
                block_hash: [0; 32],
                root: [0; 32],
                extra: Vec::new(),
            };
            self.next += 1;
            let start = Instant::now();
            self.versions
                .apply(black_box(meta), black_box(changes))
                .expect("applies");
            time += start.elapsed();
        }
        time
    }

    /// What was applied must be what is read, before any of it is timed.
    fn check(&mut self) {
        self.run(50);
        for (key, value) in &self.values {
            let read = self.versions.view().get(SLOTS, key).expect("reads");
            assert_eq!(read.as_deref(), Some(&value[..]));
        }
    }
}

fn mix(number: u64) -> u64 {
    let a = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let b = (a ^ (a >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    b ^ (b >> 31)
}

/// 32 bytes of the owner, 32 of the slot, both spread like hashes.
fn slot_key(number: u64) -> Box<[u8]> {
    let (owner, slot) = (mix(number / 250), mix(number));
    let half = |seed: u64| (0..4).flat_map(move |lane| mix(seed ^ lane).to_be_bytes());
    half(owner).chain(half(slot)).collect()
}

fn apply(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("apply a version");
    group.sample_size(10);
    group.measurement_time(Duration::from_secs(5));
    for (name, background, with_flushes) in [
        ("without flushes", false, false),
        ("foreground", false, true),
        ("background", true, true),
    ] {
        let mut chain = Chain::new(Options {
            background,
            ..Options::default()
        });
        chain.check();
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|count| {
                let before = chain.versions.stats().flush_wait;
                let time = chain.run(count);
                let flushes = chain.versions.stats().flush_wait - before;
                if with_flushes { time } else { time - flushes }
            });
        });
        let stats = chain.versions.stats();
        println!(
            "{name}: {} versions, {} flushes, {:?}",
            chain.next, stats.flush.flushes, stats.flush.bytes
        );
        println!(
            "flush time {:?}, waited {:?}",
            stats.flush.time, stats.flush_wait
        );
    }
    group.finish();
}

criterion_group!(benches, apply);
criterion_main!(benches);

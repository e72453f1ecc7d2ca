//! Measures settings of the fjall store on what a replay does to it: ingestions of some 50 MB of
//! random keys of tables by owner, half of which exist already, then point reads.
//!
//! `cargo run --release -p arbor-store-fjall --example settings -- [ROUNDS [KEYS-PER-ROUND]]`
//!
//! Written bytes are the kernel's count for this process (`write_bytes` in /proc/self/io, Linux only).

use std::path::Path;
use std::time::Instant;

use arbor_store::{Reader, Store, StoreError, Table, Write};
use arbor_store_fjall::{FjallStore, Options};

const ACCOUNTS: Table = Table(0x80);
const SLOTS: Table = Table(0x81);
const READS: u64 = 200_000;

/// SplitMix64: key number to bytes, so that no key need be kept.
fn mixed(seed: u64) -> u64 {
    let z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn bytes(seed: u64, length: usize) -> Vec<u8> {
    (0..length.div_ceil(8) as u64)
        .flat_map(|n| mixed(seed.wrapping_mul(31).wrapping_add(n)).to_be_bytes())
        .take(length)
        .collect()
}

/// A hash, which is an account's, or (every second one) the hash of one of the first thousand accounts followed by a hash: a slot's.
fn key(number: u64) -> (Table, Vec<u8>) {
    if number.is_multiple_of(2) {
        return (ACCOUNTS, bytes(number, 32));
    }
    let owner = bytes(number / 2 % 1_000 * 2, 32);
    (SLOTS, [owner, bytes(number, 32)].concat())
}

/// Keys of a round: half new, half from all earlier ones.
fn round_writes(round: u64, size: u64) -> Vec<Write> {
    let fresh = if round == 0 { size } else { size / 2 };
    let known = if round == 0 {
        0
    } else {
        size + (round - 1) * size / 2
    };
    let new = known..known + fresh;
    let old = (fresh..size).map(|n| mixed(round << 32 | n) % known);
    let mut writes: Vec<_> = new
        .chain(old)
        .map(|number| {
            let (table, key) = key(number);
            let value = bytes(number ^ round << 48, 60 + (number % 80) as usize);
            Write::put(table, &key, &value)
        })
        .collect();
    writes.sort_by(Write::cmp_place);
    writes.dedup_by(|a, b| a.cmp_place(b).is_eq());
    writes
}

fn process_count(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok())
        .unwrap_or(0)
}

fn reads_per_second(store: &FjallStore, first: u64, known: u64) -> Result<f64, StoreError> {
    let start = Instant::now();
    for n in 0..READS {
        let (table, key) = key(first + mixed(n) % known);
        let found = store.get(table, &key)?;
        assert_eq!(found.is_some(), first == 0, "a wrong answer");
    }
    Ok(READS as f64 / start.elapsed().as_secs_f64())
}

fn measure(
    name: &str,
    options: &Options,
    rounds: u64,
    size: u64,
    folder: &Path,
) -> Result<(), StoreError> {
    let path = folder.join(name);
    let known = size + (rounds - 1) * size / 2;
    let mut logical = 0;
    let mut ingesting = 0.0;
    let written = process_count("write_bytes");
    let (hits, misses);
    {
        let store = FjallStore::open(&path, options)?;
        for round in 0..rounds {
            let writes = round_writes(round, size);
            logical += writes
                .iter()
                .map(|write| write.key.len() + write.value.as_ref().map_or(0, |value| value.len()))
                .sum::<usize>();
            let start = Instant::now();
            store.ingest(&mut writes.into_iter())?;
            ingesting += start.elapsed().as_secs_f64();
        }
        hits = reads_per_second(&store, 0, known)?;
        misses = reads_per_second(&store, 1 << 50, known)?;
    }
    let written = process_count("write_bytes") - written;
    let store = FjallStore::open(&path, options)?;
    let disk = store.disk_bytes()?.unwrap_or(0);
    let start = Instant::now();
    store.compact()?;
    let compacting = start.elapsed().as_secs_f64();
    let compacted = store.disk_bytes()?.unwrap_or(0);
    let (hits_after, misses_after) = (
        reads_per_second(&store, 0, known)?,
        reads_per_second(&store, 1 << 50, known)?,
    );
    drop(store);
    let mb = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "{name:<18} {:>8.0} {:>8.0} {:>6.2} {:>8.1} {:>8.0} {:>8.0} {:>8.0} {:>8.1} {:>8.0} {:>8.0} {:>8.0}",
        mb(logical as u64),
        mb(written),
        written as f64 / logical as f64,
        ingesting,
        mb(disk),
        hits / 1e3,
        misses / 1e3,
        compacting,
        mb(compacted),
        hits_after / 1e3,
        misses_after / 1e3,
    );
    std::fs::remove_dir_all(&path).map_err(|cause| StoreError::from_io(&path, "remove", cause))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let size = arguments.next().map_or(Ok(400_000), |text| text.parse())?;
    let only = arguments.next();
    let folder = tempfile::tempdir()?;
    let base = Options::default();
    let variants = [
        ("default", base.clone()),
        (
            "level0-4",
            Options {
                level0_files: 4,
                ..base.clone()
            },
        ),
        (
            "level0-8",
            Options {
                level0_files: 8,
                ..base.clone()
            },
        ),
        (
            "level0-16",
            Options {
                level0_files: 16,
                ..base.clone()
            },
        ),
        (
            "block-8k",
            Options {
                block_bytes: 8 << 10,
                ..base.clone()
            },
        ),
        (
            "block-16k",
            Options {
                block_bytes: 16 << 10,
                ..base.clone()
            },
        ),
        (
            "lz4",
            Options {
                compress: true,
                ..base.clone()
            },
        ),
        (
            "filter-16",
            Options {
                filter_bits: 16.0,
                last_filter_bits: 14.0,
                ..base.clone()
            },
        ),
        (
            "cache-1g",
            Options {
                cache_bytes: 1 << 30,
                ..base.clone()
            },
        ),
    ];
    println!(
        "{:<18} {:>8} {:>8} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "",
        "logical",
        "written",
        "ratio",
        "ingest s",
        "disk MB",
        "hit k/s",
        "miss k/s",
        "merge s",
        "disk MB",
        "hit k/s",
        "miss k/s"
    );
    for (name, options) in &variants {
        if only
            .as_deref()
            .is_none_or(|only| only.split(',').any(|only| only == *name))
        {
            measure(name, options, rounds, size, folder.path())?;
        }
    }
    Ok(())
}

//! The original's load test in memory: blocks of inserts. `cargo bench -p arbor-tree-ar16mt -- [--blocks N] [--writes N] [--threads N] [--proofs READS] [--no-hash]`.
//!
//! Prints for each block what applying took (reading from memory included, storing not), the rate, and hashes by kind for each written leaf.

use std::time::Instant;

use arbor_hashing::Blake2s as Keys;
use arbor_tree_ar16mt::{
    Blake2s, Entry, Hash, Hasher, LeafUpdate, MemoryTree, NoOp, Operation, apply, apply_with_proofs,
};

struct Settings {
    blocks: u64,
    writes: u64,
    threads: usize,
    hashing: bool,
    /// Reads beside the writes; with them operations are proven.
    reads: Option<u64>,
}

fn settings() -> Settings {
    let mut settings = Settings {
        blocks: 5,
        writes: 20_000,
        threads: 1,
        hashing: true,
        reads: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            arguments
                .next()
                .and_then(|text| text.parse().ok())
                .expect("a number")
        };
        match argument.as_str() {
            "--blocks" => settings.blocks = number(),
            "--writes" => settings.writes = number(),
            "--threads" => settings.threads = number() as usize,
            "--proofs" => settings.reads = Some(number()),
            "--no-hash" => settings.hashing = false,
            _ => {} // Cargo adds some of its own.
        }
    }
    settings
}

/// Block number `block` of inserts, ascending by key.
fn updates(settings: &Settings, block: u64) -> Vec<LeafUpdate> {
    let address = [
        0x4b, 0x3a, 0xf7, 0x4f, 0x66, 0xab, 0x1f, 0x0d, 0xa3, 0xf2, 0xe4, 0xec, 0x7a, 0x3c, 0xb9,
        0x9b, 0xaf, 0x1a, 0xf7, 0xb2,
    ];
    let mut messages = vec![[0; 64]; settings.writes as usize];
    for (j, message) in (0..).zip(&mut messages) {
        message[12..32].copy_from_slice(&address);
        message[56..].copy_from_slice(&(block * settings.writes + j).to_be_bytes());
    }
    let mut keys = vec![[0; 32]; messages.len()];
    Keys::new().hash_fixed(&messages, &mut keys);
    let update = |(j, mut key): (u64, Hash)| {
        key.reverse();
        let index = (block + 1) * settings.writes + j;
        let mut value = [0; 32];
        value[24..].copy_from_slice(&index.to_be_bytes());
        LeafUpdate {
            key,
            existed: false,
            new: Some(Entry { index, value }),
        }
    };
    let mut updates: Vec<_> = (0..).zip(keys).map(update).collect();
    updates.sort_unstable_by_key(|update| update.key);
    updates
}

/// The block's inserts in their order, and reads of what blocks before it wrote.
fn operations(memory: &MemoryTree, updates: &[LeafUpdate], reads: u64) -> Vec<Operation> {
    let insert = |update: &LeafUpdate| Operation {
        key: update.key,
        new: update.new,
    };
    let mut operations: Vec<Operation> = updates.iter().map(insert).collect();
    operations.sort_by_key(|operation| operation.new.map(|entry| entry.index));
    let step = memory.leaves().len() / (reads as usize + 1) + 1;
    let read = memory.leaves().iter().step_by(step).take(reads as usize);
    operations.extend(read.map(|(key, _)| Operation {
        key: *key,
        new: None,
    }));
    operations
}

fn run(hasher: impl Hasher, settings: &Settings) {
    let mut memory = MemoryTree::default();
    let (mut total, mut root) = (0.0, [0; 32]);
    for block in 0..settings.blocks {
        let updates = updates(settings, block);
        let operations = operations(&memory, &updates, settings.reads.unwrap_or(0));
        let start = Instant::now();
        let done = match settings.reads {
            None => apply(&memory, hasher, &updates).expect("applies"),
            Some(_) => {
                apply_with_proofs(&memory, hasher, &operations)
                    .expect("applies")
                    .0
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        total += seconds;
        root = done.root;
        let stats = done.stats;
        let per_leaf = |count: u64| count as f64 / settings.writes as f64;
        println!(
            "block {block}: {seconds:.3} s, {:.0} inserts/s; hashes per leaf {:.2} to its checkpoint, {:.2} from it, {:.2} in nodes; {} moved, {} new nodes, {} read, {} written, level {:.2}, at most {}",
            settings.writes as f64 / seconds,
            per_leaf(stats.fold_hashes),
            per_leaf(stats.rise_hashes),
            per_leaf(stats.node_hashes),
            stats.moved_leaves,
            stats.new_internals,
            stats.nodes_read,
            stats.nodes_written,
            per_leaf(stats.level_sum),
            stats.level_max
        );
        memory.change(&done, &updates);
    }
    let hex: String = root.iter().map(|byte| format!("{byte:02x}")).collect();
    println!(
        "{} leaves in {total:.3} s, {:.0} inserts/s, root {hex}",
        memory.leaves().len(),
        memory.leaves().len() as f64 / total
    );
}

fn main() {
    let settings = settings();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(settings.threads)
        .build()
        .expect("threads");
    pool.install(|| {
        if settings.hashing {
            run(Blake2s::new(), &settings);
        } else {
            run(NoOp, &settings);
        }
    });
}

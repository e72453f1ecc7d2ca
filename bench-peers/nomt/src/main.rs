//! NOMT, given the load of `arbor loadtest`: new keys block by block, then changes alone. Prints what it took as one line of JSON.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use nomt::hasher::Blake3Hasher;
use nomt::{KeyReadWrite, Nomt, Options, SessionParams};
use serde_json::{Value, json};

/// The load: as `arbor loadtest` has it.
#[derive(Parser)]
struct Load {
    /// Commits that bring leaves.
    blocks: u64,
    /// New leaves in each.
    writes: u64,
    /// Commits after those, which change as many leaves each and bring none.
    #[arg(long, default_value_t = 0)]
    update_blocks: u64,
    /// Pages of 4 KiB in the table of nodes, allocated at the start.
    #[arg(long, default_value_t = 1_000_000)]
    buckets: u32,
    /// Threads that hash.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

/// The numbers of SplitMix64, by which arbor draws what is changed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn key(slot: u64) -> [u8; 32] {
    *blake3::hash(&slot.to_be_bytes()).as_bytes()
}

fn value(number: u64) -> Vec<u8> {
    let mut value = vec![0; 32];
    value[24..].copy_from_slice(&number.to_be_bytes());
    value
}

/// Commits the slots with running numbers from `first` on.
fn commit(tree: &Nomt<Blake3Hasher>, slots: impl Iterator<Item = u64>, first: u64) -> Result<()> {
    let writes = slots.zip(first..).map(|(slot, number)| (key(slot), value(number)));
    let writes: BTreeMap<_, _> = writes.collect();
    let session = tree.begin_session(SessionParams::default());
    let writes = writes
        .into_iter()
        .map(|(key, value)| (key, KeyReadWrite::Write(Some(value))));
    session.finish(writes.collect())?.commit(tree)
}

fn written() -> Result<u64> {
    let io = std::fs::read_to_string("/proc/self/io")?;
    let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    Ok(line.context("no write_bytes")?.parse()?)
}

/// Bytes that a folder's files occupy.
fn occupied(folder: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        bytes += 512 * entry?.metadata()?.blocks();
    }
    Ok(bytes)
}

fn main() -> Result<()> {
    let load = Load::parse();
    let folder = tempfile::tempdir()?;
    let mut options = Options::new();
    options.path(folder.path());
    options.hashtable_buckets(load.buckets);
    options.commit_concurrency(load.threads);
    let tree = Nomt::<Blake3Hasher>::open(options)?;
    let allocated = written()?;

    let measured = |leaves: u64, run: &mut dyn FnMut() -> Result<()>| -> Result<Value> {
        let (start, before) = (Instant::now(), written()?);
        run()?;
        let wall = start.elapsed().as_secs_f64();
        Ok(json!({
            "wall_s": wall,
            "writes_per_second": leaves as f64 / wall,
            "written_bytes": written()? - before,
        }))
    };
    let known = load.blocks * load.writes;
    let new = measured(known, &mut || {
        (0..load.blocks).try_for_each(|block| {
            let slots = block * load.writes..(block + 1) * load.writes;
            commit(&tree, slots, (block + 1) * load.writes)
        })
    })?;
    let mut random = Random(0);
    let mut last = None;
    let updates = measured(load.update_blocks * load.writes, &mut || {
        (load.blocks..load.blocks + load.update_blocks).try_for_each(|block| {
            let mut slots = std::collections::BTreeSet::new();
            while (slots.len() as u64) < load.writes.min(known) {
                slots.insert(random.next() % known);
            }
            let first = (block + 1) * load.writes;
            last = slots.first().map(|slot| (*slot, first));
            commit(&tree, slots.into_iter(), first)
        })
    })?;
    if let Some((slot, number)) = last {
        ensure!(tree.read(key(slot))? == Some(value(number)), "slot {slot} does not hold {number}");
    }
    ensure!(tree.read(key(known))?.is_none(), "a key that was never written is there");
    let root = tree.root().into_inner();
    drop(tree);
    let root: String = root.iter().map(|byte| format!("{byte:02x}")).collect();
    println!(
        "{}",
        json!({
            "leaves": known,
            "root": root,
            "new": new,
            "updates": (load.update_blocks > 0).then_some(updates),
            "allocated_bytes": allocated,
            "disk_bytes": occupied(folder.path())?,
        })
    );
    Ok(())
}

//! QMDB, given the load of `arbor loadtest`: new keys block by block, then changes alone. Prints what it took as one line of JSON.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use commonware_cryptography::{DigestOf, Hasher as _, Sha256};
use commonware_parallel::Rayon;
use commonware_runtime::buffer::paged::{CacheRef, page_size};
use commonware_runtime::tokio::{Config, Context, Runner};
use commonware_runtime::{BLOB_PAGE_SIZE, Runner as _, Strategizer, Supervisor};
use commonware_storage::journal::contiguous::fixed::Config as LogConfig;
use commonware_storage::merkle::full::Config as MerkleConfig;
use commonware_storage::merkle::mmb::Family;
use commonware_storage::qmdb::any::FixedConfig;
use commonware_storage::qmdb::any::unordered::fixed::partitioned::p64k;
use commonware_storage::qmdb::floor::Proportional;
use commonware_storage::translator::EightCap;
use commonware_utils::{NZU64, NZUsize};
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
    /// Pages of 4 KiB in memory, each, of the log and of the nodes.
    #[arg(long, default_value = "65536")]
    pages: NonZeroUsize,
    /// Threads that hash.
    #[arg(long, default_value = "2")]
    threads: NonZeroUsize,
}

type Digest = DigestOf<Sha256>;
/// Keys by their first two bytes, which are hashed: its index for many keys.
type Tree = p64k::Db<Family, Context, Digest, Digest, Sha256, EightCap, Rayon>;

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

fn key(slot: u64) -> Digest {
    Sha256::hash(&[&slot.to_be_bytes()])
}

fn value(number: u64) -> Digest {
    let mut value = [0; 32];
    value[24..].copy_from_slice(&number.to_be_bytes());
    value.into()
}

/// Commits the slots with running numbers from `first` on, durably, and gives back the log before what is alive.
async fn commit(tree: Tree, slots: impl Iterator<Item = u64>, first: u64) -> Result<Tree> {
    let mut batch = tree.new_batch();
    for (slot, number) in slots.zip(first..) {
        batch = batch.write(key(slot), Some(value(number)));
    }
    let batch = batch.merkleize(&tree, None, &mut Proportional).await?;
    let tree = tree.apply_batch(batch).await?.commit().await?;
    let alive = tree.sync_boundary();
    Ok(tree.prune(alive).await?)
}

fn written() -> Result<u64> {
    let io = std::fs::read_to_string("/proc/self/io")?;
    let line = io
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes: "));
    Ok(line.context("no write_bytes")?.parse()?)
}

/// Bytes that a folder's files occupy, those of folders in it included.
fn occupied(folder: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => occupied(&entry.path())?,
            false => 512 * entry.metadata()?.blocks(),
        };
    }
    Ok(bytes)
}

async fn open(context: &Context, load: &Load) -> Result<Tree> {
    let cache = || CacheRef::new(page_size(BLOB_PAGE_SIZE), load.pages);
    let (items_per_blob, buffer) = (NZU64!(1_000_000), NZUsize!(2 << 20));
    let config = FixedConfig {
        merkle_config: MerkleConfig {
            journal_partition: "nodes".into(),
            metadata_partition: "metadata".into(),
            items_per_blob,
            write_buffer: buffer,
            replay_buffer: buffer,
            strategy: context.strategy(load.threads),
            page_cache: cache(),
        },
        journal_config: LogConfig {
            partition: "log".into(),
            items_per_blob,
            page_cache: cache(),
            write_buffer: buffer,
            replay_buffer: buffer,
        },
        translator: EightCap,
        init_cache: None,
        init_buffer: buffer,
        init_concurrency: load.threads,
    };
    Ok(Tree::init(context.child("tree"), config, None).await?)
}

/// Returns time, rate and written bytes of a part of the load that began at `start`.
fn took(start: Instant, before: u64, leaves: u64) -> Result<Value> {
    let wall = start.elapsed().as_secs_f64();
    Ok(json!({
        "wall_s": wall,
        "writes_per_second": leaves as f64 / wall,
        "written_bytes": written()? - before,
    }))
}

async fn run(context: Context, load: &Load, folder: &Path) -> Result<Value> {
    let mut tree = open(&context, load).await?;
    let known = load.blocks * load.writes;
    let (start, before) = (Instant::now(), written()?);
    for block in 0..load.blocks {
        let slots = block * load.writes..(block + 1) * load.writes;
        tree = commit(tree, slots, (block + 1) * load.writes).await?;
    }
    let new = took(start, before, known)?;
    let (start, before) = (Instant::now(), written()?);
    let mut random = Random(0);
    let mut last = None;
    for block in load.blocks..load.blocks + load.update_blocks {
        let mut slots = BTreeSet::new();
        while (slots.len() as u64) < load.writes.min(known) {
            slots.insert(random.next() % known);
        }
        let first = (block + 1) * load.writes;
        last = slots.first().map(|slot| (*slot, first));
        tree = commit(tree, slots.into_iter(), first).await?;
    }
    let updates = took(start, before, load.update_blocks * load.writes)?;
    if let Some((slot, number)) = last {
        let found = tree.get(&key(slot)).await?;
        ensure!(
            found == Some(value(number)),
            "slot {slot} does not hold {number}"
        );
    }
    ensure!(
        tree.get(&key(known)).await?.is_none(),
        "a key that was never written is there"
    );
    let root = tree.root().to_string();
    drop(tree);
    Ok(json!({
        "leaves": known,
        "root": root,
        "new": new,
        "updates": (load.update_blocks > 0).then_some(updates),
        "disk_bytes": occupied(folder)?,
    }))
}

fn main() -> Result<()> {
    let load = Load::parse();
    let folder = tempfile::tempdir()?;
    let config = Config::new()
        .with_storage_directory(folder.path())
        .with_worker_threads(load.threads.get());
    let results = Runner::new(config).start(|context| run(context, &load, folder.path()))?;
    println!("{results}");
    Ok(())
}

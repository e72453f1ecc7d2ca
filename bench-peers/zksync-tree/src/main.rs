//! zkSync's Merkle tree, given the load of `arbor loadtest`: prints what it took as one line of JSON.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use clap::Parser;
use zksync_crypto_primitives::hasher::blake2::Blake2Hasher;
use zksync_merkle_tree::{
    Database, MerkleTree, MerkleTreePruner, PatchSet, RocksDBWrapper, TreeEntry, TreeInstruction,
};
use zksync_storage::RocksDB;
use zksync_types::{AccountTreeId, Address, H256, StorageKey, U256};

/// The load: as `arbor loadtest` has it.
#[derive(Parser)]
struct Load {
    /// Versions.
    blocks: u64,
    /// New leaves in each.
    writes: u64,
    /// Leaves of earlier blocks that each reads, with proofs of everything.
    #[arg(long, default_value_t = 0)]
    reads: u64,
    /// Prove every operation.
    #[arg(long)]
    proofs: bool,
    /// Keep the nodes in memory.
    #[arg(long)]
    in_memory: bool,
    /// Keep the latest version alone.
    #[arg(long)]
    prune: bool,
    /// Nodes read together.
    #[arg(long, default_value_t = 500)]
    chunk_size: usize,
    /// Check the whole tree at the end.
    #[arg(long)]
    verify: bool,
}

fn key(slot: u64) -> U256 {
    let contract: Address = "4b3af74f66ab1f0da3f2e4ec7a3cb99baf1af7b2"
        .parse()
        .expect("an address");
    let slot = H256::from_low_u64_be(slot);
    StorageKey::new(AccountTreeId::new(contract), slot).hashed_key_u256()
}

/// The numbers of SplitMix64, by which arbor draws what is read.
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

fn main() -> Result<()> {
    let load = Load::parse();
    if load.in_memory {
        let (seconds, root, verify) = run(&load, &mut PatchSet::default(), &mut |_| Ok(()))?;
        return print(&load, seconds, root, verify, None);
    }
    let folder = tempfile::tempdir()?;
    let mut database = RocksDBWrapper::from(RocksDB::new(folder.path())?);
    database.set_multi_get_chunk_size(load.chunk_size);
    let pruner = load.prune.then(|| {
        let (mut pruner, handle) = MerkleTreePruner::new(database.clone());
        pruner.set_poll_interval(Duration::from_secs(1));
        (handle, thread::spawn(move || pruner.run()))
    });
    let mut done = |version| match &pruner {
        Some((handle, _)) => handle
            .set_target_retained_version(version)
            .map(drop)
            .map_err(|_| anyhow!("the pruner has stopped")),
        None => Ok(()),
    };
    let (seconds, root, verify) = run(&load, &mut database, &mut done)?;
    if let Some((handle, thread)) = pruner {
        drop(handle);
        thread
            .join()
            .map_err(|_| anyhow!("the pruner panicked"))??;
    }
    drop(database);
    print(&load, seconds, root, verify, Some(folder.path()))
}

type Outcome = (f64, H256, Option<f64>);

fn run(
    load: &Load,
    database: &mut dyn Database,
    done: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Outcome> {
    let mut tree = MerkleTree::with_hasher(database, Blake2Hasher)?;
    let mut random = Random(0);
    let start = Instant::now();
    let mut root = H256::zero();
    for block in 0..load.blocks {
        let (known, first) = (block * load.writes, (block + 1) * load.writes);
        let entries = (known..known + load.writes).zip(first..).map(|(slot, number)| {
            TreeEntry::new(key(slot), slot + 1, H256::from_low_u64_be(number))
        });
        if load.proofs {
            let reads = load.reads.min(known);
            let reads: Vec<u64> = (0..reads).map(|_| random.next() % known).collect();
            let reads = reads.into_iter().map(|slot| TreeInstruction::Read(key(slot)));
            let output = tree
                .extend_with_proofs(entries.map(TreeInstruction::Write).chain(reads).collect())?;
            root = output.root_hash().context("nothing written")?;
        } else {
            root = tree.extend(entries.collect())?.root_hash;
        }
        done(block)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let verifying = Instant::now();
    if load.verify {
        tree.verify_consistency(load.blocks - 1, false)?;
    }
    let verify = load.verify.then(|| verifying.elapsed().as_secs_f64());
    Ok((seconds, root, verify))
}

fn print(
    load: &Load,
    seconds: f64,
    root: H256,
    verify: Option<f64>,
    folder: Option<&std::path::Path>,
) -> Result<()> {
    let disk = folder.map(|folder| -> Result<u64> {
        let mut bytes = 0;
        for entry in std::fs::read_dir(folder)? {
            bytes += entry?.metadata()?.len();
        }
        Ok(bytes)
    });
    println!(
        "{}",
        serde_json::json!({
            "leaves": load.blocks * load.writes,
            "root": format!("{root:?}"),
            "wall_s": seconds,
            "verify_s": verify,
            "disk_bytes": disk.transpose()?,
        })
    );
    Ok(())
}

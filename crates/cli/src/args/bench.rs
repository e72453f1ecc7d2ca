//! `arbor bench` and its commands, and `arbor loadtest`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use arbor_database::StoreKind;
use arbor_evm384::Interface;
use arbor_lab::senders;
use arbor_state::TreeKind;
use clap::{Args, Subcommand, ValueEnum};

use super::compare::parse_repeat;
use super::{Database, OUTPUT, examples, parse_disk, parse_threads};
use crate::bytes;
use crate::metrics_server;
use crate::names::parse_chain_block;
use crate::trees;

/// What is measured.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Measure what Pedersen commitments cost, in units of one Keccak-256: leaves, updates, keys, points, proofs
    Commitments(BenchCommitments),
    /// Measure how fast a database answers: random accounts, slots and proofs, from the disk and from memory, now and in the past
    Reads(BenchReads),
    /// Measure what each technique of a tree is worth: replay the same blocks with all of them, and without each in turn
    Ablation(BenchAblation),
    /// Measure proofs and updates of random slots of a database, by their size. `arbor inspect` counts its records
    Database(BenchDatabase),
    /// Measure how large the witnesses of a chain's blocks are under several trees. Every witness is checked
    Witnesses(BenchWitnesses),
    /// Execute a chain's blocks with EVM384's engine and with revm alone, in turn, and compare results and times
    Engine(BenchEngine),
    /// Simulate how much faster a chain's blocks would run on several cores, from what their transactions read and write
    Parallel(BenchParallel),
    /// Compare the recovery of senders in lanes with libsecp256k1, on one thread, in batches of several sizes
    Senders(BenchSenders),
}

/// `arbor bench ablation`.
#[derive(Debug, Args)]
#[command(after_help = examples::BENCH_ABLATION)]
pub(crate) struct BenchAblation {
    /// The blocks: exports of geth (`geth export`), era1 files, or folders with chain.rlp[.gz] or *.era1 (and genesis.json)
    #[arg(value_name = "CHAIN", required = true)]
    pub(crate) chain: Vec<PathBuf>,
    /// The tree whose techniques are switched off
    #[arg(long, value_name = "T", value_parser = trees::tree_parser())]
    pub(crate) tree: &'static TreeKind,
    /// Folder for the results. If it has an interrupted measurement with the same arguments, the command continues it
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Runs with all techniques, and runs without each; they take turns. If the runs of one of them differ by more than 5 %, all run once more
    #[arg(long, value_name = "N", default_value = "3", value_parser = parse_repeat)]
    pub(crate) repeat: usize,
    /// Genesis in geth's JSON form, or the name of a network (mainnet, sepolia, holesky or hoodi) [default: genesis.json next to the chain]
    #[arg(long, value_name = "FILE|PRESET")]
    pub(crate) genesis: Option<String>,
    /// Stop after this block
    #[arg(long, value_name = "BLOCK", value_parser = parse_chain_block)]
    pub(crate) to: Option<u64>,
    /// Memory of each run: caches, write-back and tables together
    #[arg(long, value_name = "BYTES", default_value = "512MiB", value_parser = bytes::parse_memory)]
    pub(crate) memory: u64,
    /// Threads of each run, except of those in turn. With 1, every run does everything in turn, and no side is without that technique [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = parse_threads)]
    pub(crate) threads: usize,
    /// Print the report as JSON instead of the table
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve metrics for Prometheus at this address: the part of the runs that is done. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
}

/// `arbor bench senders`.
#[derive(Debug, Args)]
#[command(after_help = examples::BENCH_SENDERS)]
pub(crate) struct BenchSenders {
    /// Signatures in a batch
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = senders::BATCHES, value_parser = parse_batch)]
    pub(crate) batches: Vec<usize>,
    /// Milliseconds to spend on each size
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    pub(crate) budget: u64,
    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Write all figures to this file, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) report: Option<PathBuf>,
}

fn parse_batch(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(batch @ 1..=1_000_000) => Ok(batch),
        _ => Err("a batch has 1 to 1000000 signatures".to_owned()),
    }
}

/// `arbor bench engine`.
#[derive(Debug, Args)]
#[command(after_help = examples::BENCH_ENGINE)]
pub(crate) struct BenchEngine {
    /// The blocks: exports of geth (`geth export`), era1 files, or folders with chain.rlp[.gz] or *.era1 (and genesis.json)
    #[arg(value_name = "CHAIN", required = true)]
    pub(crate) chain: Vec<PathBuf>,
    /// Genesis in geth's JSON form, or the name of a network (mainnet, sepolia, holesky or hoodi) [default: genesis.json next to the chain]
    #[arg(long, value_name = "FILE|PRESET")]
    pub(crate) genesis: Option<String>,
    /// Stop after this block
    #[arg(long, value_name = "BLOCK", value_parser = parse_chain_block)]
    pub(crate) to: Option<u64>,
    /// The form of EVM384's operations: v7, immediate, setmod or eip-6690
    #[arg(long, value_name = "I", default_value = "v7")]
    pub(crate) evm384: Interface,
    /// Executions of each block by each engine. The shortest one counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Write all figures to this file, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) report: Option<PathBuf>,
    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve metrics for Prometheus at this address. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
}

/// `arbor bench parallel`.
#[derive(Debug, Args)]
#[command(after_help = examples::BENCH_PARALLEL)]
pub(crate) struct BenchParallel {
    /// The blocks: exports of geth (`geth export`), era1 files, or folders with chain.rlp[.gz] or *.era1 (and genesis.json)
    #[arg(value_name = "CHAIN", required = true)]
    pub(crate) chain: Vec<PathBuf>,
    /// Genesis in geth's JSON form, or the name of a network (mainnet, sepolia, holesky or hoodi) [default: genesis.json next to the chain]
    #[arg(long, value_name = "FILE|PRESET")]
    pub(crate) genesis: Option<String>,
    /// Stop after this block
    #[arg(long, value_name = "BLOCK", value_parser = parse_chain_block)]
    pub(crate) to: Option<u64>,
    /// Write all figures to this file, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) report: Option<PathBuf>,
    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve metrics for Prometheus at this address. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
}

/// `arbor bench witnesses`.
#[derive(Debug, Args)]
#[command(after_help = examples::BENCH_WITNESSES)]
pub(crate) struct BenchWitnesses {
    /// The blocks: exports of geth (`geth export`), era1 files, or folders with chain.rlp[.gz] or *.era1 (and genesis.json)
    #[arg(value_name = "CHAIN", required = true)]
    pub(crate) chain: Vec<PathBuf>,
    /// The trees to compare
    #[arg(
        long,
        value_name = "T,...",
        value_delimiter = ',',
        default_value = trees::WITH_WITNESSES.as_str(),
        value_parser = trees::witness_parser()
    )]
    pub(crate) trees: Vec<&'static TreeKind>,
    /// Genesis in geth's JSON form, or the name of a network (mainnet, sepolia, holesky or hoodi) [default: genesis.json next to the chain]
    #[arg(long, value_name = "FILE|PRESET")]
    pub(crate) genesis: Option<String>,
    /// Stop after this block
    #[arg(long, value_name = "BLOCK", value_parser = parse_chain_block)]
    pub(crate) to: Option<u64>,
    /// Memory for caches and tables. The state itself is in memory, too, and comes on top
    #[arg(long, value_name = "BYTES", default_value = "2GiB", value_parser = bytes::parse_memory)]
    pub(crate) memory: u64,
    /// Write the figures of each block to this file, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) report: Option<PathBuf>,
    /// Draw the distribution of sizes to this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve metrics for Prometheus at this address. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
}

/// `arbor bench reads`.
#[derive(Debug, Args)]
#[command(after_help = examples::BENCH_READS)]
pub(crate) struct BenchReads {
    #[command(flatten)]
    pub(crate) database: Database,
    /// Accounts to read, and as many slots and as many absent accounts. If the state has fewer, all of them are read
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) reads: usize,
    /// Proofs to make, each of an account and a slot [default: 1000 if headers carry the tree's roots, else 0]
    #[arg(long, value_name = "N")]
    pub(crate) proofs: Option<usize>,
    /// How many blocks before the latest to read. Several numbers give a pass each; 0 is the latest block
    #[arg(long, value_name = "BLOCKS", num_args = 1.., default_values_t = [0])]
    pub(crate) back: Vec<u64>,
    /// Threads that share the reads
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) threads: NonZeroUsize,
    /// Seed of the random choice of accounts and slots
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write all figures to this file, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) report: Option<PathBuf>,
    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve metrics for Prometheus at this address. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
}

/// `arbor bench database`.
#[derive(Debug, Args)]
#[command(after_help = examples::BENCH_DATABASE)]
pub(crate) struct BenchDatabase {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The chain, for --witnesses: exports of geth, era1 files, or folders with them
    #[arg(value_name = "CHAIN")]
    pub(crate) chain: Vec<PathBuf>,
    /// Make and measure the witnesses of this many blocks at the end of the chain. The state before each must be retained
    #[arg(long, value_name = "N", default_value_t = 0, requires = "chain")]
    pub(crate) witnesses: u64,
    /// Sizes of proofs, in slots
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 3, 10, 30, 100, 300, 1000])]
    pub(crate) proofs: Vec<usize>,
    /// Sizes of updates, in slots
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000])]
    pub(crate) updates: Vec<usize>,
    /// How often each proof is made, of which the median counts, and each update at least, of which the fastest counts
    #[arg(long, value_name = "N", default_value = "3")]
    pub(crate) repeat: NonZeroUsize,
    /// Seed of the random choice of accounts and slots
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads to use; 0 for all cores [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = super::parse_threads)]
    pub(crate) threads: usize,
    /// Write all figures to this file, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) report: Option<PathBuf>,
    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve metrics for Prometheus at this address. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
}

/// How the load test numbers the leaves of an AR16MT tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NumberingChoice {
    /// 1, 2, 3, ... in the order of first writes. 75 blocks of 150,000 leaves then have the root that zksync-era publishes
    Published,
    /// (v + 1) W + j for leaf j of block v, both counted from 0, with W writes in a block. Roots are those of zksync-era's load test at commit 3e29e4a
    Upstream,
}

/// `arbor loadtest`.
///
/// Each block writes, reads and changes leaves with random keys, and gets a root and a version. A line for each block
/// has its times and counts. At the end the whole database is checked, and a summary is printed.
///
/// The columns `load`, `apply` and `hash` are seconds summed over all threads. The other times are by the clock, and
/// `tree` contains these three. Records of old versions are deleted by flushes, so most blocks have none in `pruned`.
#[derive(Debug, Args)]
#[command(after_help = examples::LOADTEST)]
pub(crate) struct Loadtest {
    /// Number of blocks
    #[arg(value_parser = clap::value_parser!(u64).range(..=1 << 24))]
    pub(crate) blocks: u64,
    /// New leaves in a block. All of them are in memory until the block is committed. A leaf takes about 640 bytes in the first block (mpt: 950; with --proofs: 1,700), and
    /// up to 2,300 bytes in later blocks (mpt: 3,900; with --proofs: 3,200)
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 26))]
    pub(crate) writes: u64,
    /// The tree to test
    #[arg(long, value_name = "T", default_value = "ar16mt", value_parser = trees::tree_parser())]
    pub(crate) tree: &'static TreeKind,
    /// Leaves of earlier blocks that each block reads
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1 << 26))]
    pub(crate) reads: u64,
    /// Leaves of earlier blocks that each block changes
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1 << 26))]
    pub(crate) updates: u64,
    /// Blocks to follow, each of which changes WRITES leaves and adds none
    #[arg(long, value_name = "BLOCKS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1 << 24))]
    pub(crate) update_blocks: u64,
    /// Seed of the random choice of leaves that are read and changed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) rng_seed: u64,
    /// How leaves are numbered. The root depends on the numbers, because they are hashed with the values (ar16mt only)
    #[arg(long, value_name = "RULE", default_value = "published")]
    pub(crate) numbering: NumberingChoice,
    /// Prove each write and read, with the root after it (ar16mt only)
    #[arg(long, conflicts_with = "no_hash")]
    pub(crate) proofs: bool,
    /// Leave out the hashing, to measure the rest. Roots then mean nothing (ar16mt only)
    #[arg(long)]
    pub(crate) no_hash: bool,
    /// Keep everything in memory and write nothing to a disk
    #[arg(long, short = 'M', conflicts_with_all = ["db", "store"])]
    pub(crate) in_memory: bool,
    /// Folder for the database, which must not have one yet. It is kept [default: a temporary folder, removed at the end]
    #[arg(long, value_name = "DIR")]
    pub(crate) db: Option<PathBuf>,
    /// The store on disk
    #[arg(long, value_name = "S", default_value = "fjall", value_parser = parse_disk)]
    pub(crate) store: StoreKind,
    /// Keep only the latest version. Records of earlier ones are deleted with each flush; only the time to find them is measured [default: keep all versions]
    #[arg(long)]
    pub(crate) prune: bool,
    /// Keys that a thread reads together (ar16mt only) [default: 512]
    #[arg(long, value_name = "KEYS")]
    pub(crate) chunk_size: Option<NonZeroUsize>,
    /// Memory for caches, write-back and tables together. The process, the block under way (see WRITES) and merges of files come on top
    #[arg(long, value_name = "BYTES", default_value = "2GiB", value_parser = bytes::parse_memory)]
    pub(crate) memory: u64,
    /// Unflushed changes kept in memory before they are written [default: a sixteenth of --memory, at least 4 MiB]
    #[arg(long, value_name = "BYTES", value_parser = bytes::parse)]
    pub(crate) write_back: Option<u64>,
    /// Threads to use; 0 for all cores [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = parse_threads)]
    pub(crate) threads: usize,
    /// Write all figures to this file, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) report: Option<PathBuf>,
    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve metrics for Prometheus at this address. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
}

/// `arbor bench commitments`.
#[derive(Debug, Args)]
#[command(after_help = examples::BENCH_COMMITMENTS)]
pub(crate) struct BenchCommitments {
    /// What to measure: keccak, vectors, leaves, updates, keys, points, proofs [default: all]
    #[arg(value_name = "GROUP")]
    pub(crate) groups: Vec<arbor_lab::commitments::Group>,
    /// Threads to compute with
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) threads: usize,
    /// Bytes for the precomputed multiples of the 256 points of the commitment scheme
    #[arg(long, value_name = "BYTES", default_value = "150MB", value_parser = bytes::parse)]
    pub(crate) tables: u64,
    /// Milliseconds to spend on each figure
    #[arg(long, value_name = "MS", default_value_t = 500)]
    pub(crate) budget: u64,
    /// Sizes of multiproofs, in openings
    #[arg(long, value_name = "N", num_args = 1.., default_values_t = arbor_lab::commitments::Settings::OPENINGS)]
    pub(crate) openings: Vec<usize>,
    /// Write all figures to this file, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) report: Option<PathBuf>,
    /// Draw leaves.svg and updates.svg in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,
    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

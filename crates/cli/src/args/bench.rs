//! `arbor bench` and its commands, and `arbor loadtest`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use arbor_database::StoreKind;
use arbor_evm384::Interface;
use arbor_lab::senders;
use arbor_state::TreeKind;
use clap::{Args, Subcommand, ValueEnum};

use super::{Database, OUTPUT, examples, parse_disk, parse_threads};
use crate::bytes;
use crate::metrics_server;
use crate::names::parse_chain_block;
use crate::trees;

/// What is measured.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Keccak against Pedersen commitments: leaves, updates, keys, points, proofs
    Commitments(BenchCommitments),
    /// Reads and proofs of a database: accounts and slots picked at random, from the disk and from memory, now and in the past
    Reads(BenchReads),
    /// What a database holds, table by table, and what proofs and updates cost over it
    Database(BenchDatabase),
    /// How large the witnesses of a chain's blocks are under several trees: each is made, and checked
    Witnesses(BenchWitnesses),
    /// A chain's blocks executed by EVM384's engine and by revm alone, in turns: the results compared, and the times
    Engine(BenchEngine),
    /// How much of a chain's blocks could run side by side: a simulation over what their transactions read and write
    Parallel(BenchParallel),
    /// Senders recovered in lanes and by libsecp256k1, in turn on one thread, in batches of several sizes
    Senders(BenchSenders),
}

/// `arbor bench senders`.
#[derive(Debug, Args)]
#[command(after_help = examples::BENCH_SENDERS)]
pub(crate) struct BenchSenders {
    /// Signatures in a batch
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = senders::BATCHES, value_parser = parse_batch)]
    pub(crate) batches: Vec<usize>,
    /// Milliseconds to measure each size for
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    pub(crate) budget: u64,
    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Write all figures here, as JSON
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
    /// Exports, era1 files, or folders with chain.rlp[.gz] or *.era1 (and genesis.json)
    #[arg(value_name = "CHAIN", required = true)]
    pub(crate) chain: Vec<PathBuf>,
    /// Genesis in geth's JSON form, or the name of a network [default: genesis.json beside the chain]
    #[arg(long, value_name = "FILE|PRESET")]
    pub(crate) genesis: Option<String>,
    /// Stop after this block
    #[arg(long, value_name = "BLOCK", value_parser = parse_chain_block)]
    pub(crate) to: Option<u64>,
    /// The interface that is switched on
    #[arg(long, value_name = "I", default_value = "v7")]
    pub(crate) evm384: Interface,
    /// How many times each executes a block; the shortest counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Write the figures here, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) report: Option<PathBuf>,
    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `arbor bench parallel`.
#[derive(Debug, Args)]
#[command(after_help = examples::BENCH_PARALLEL)]
pub(crate) struct BenchParallel {
    /// Exports, era1 files, or folders with chain.rlp[.gz] or *.era1 (and genesis.json)
    #[arg(value_name = "CHAIN", required = true)]
    pub(crate) chain: Vec<PathBuf>,
    /// Genesis in geth's JSON form, or the name of a network [default: genesis.json beside the chain]
    #[arg(long, value_name = "FILE|PRESET")]
    pub(crate) genesis: Option<String>,
    /// Stop after this block
    #[arg(long, value_name = "BLOCK", value_parser = parse_chain_block)]
    pub(crate) to: Option<u64>,
    /// Write the figures here, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) report: Option<PathBuf>,
    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `arbor bench witnesses`.
#[derive(Debug, Args)]
#[command(after_help = examples::BENCH_WITNESSES)]
pub(crate) struct BenchWitnesses {
    /// Exports, era1 files, or folders with chain.rlp[.gz] or *.era1 (and genesis.json)
    #[arg(value_name = "CHAIN", required = true)]
    pub(crate) chain: Vec<PathBuf>,
    /// The trees
    #[arg(
        long,
        value_name = "T,...",
        value_delimiter = ',',
        default_value = trees::WITH_WITNESSES.as_str(),
        value_parser = trees::witness_parser()
    )]
    pub(crate) trees: Vec<&'static TreeKind>,
    /// Genesis in geth's JSON form, or the name of a network [default: genesis.json beside the chain]
    #[arg(long, value_name = "FILE|PRESET")]
    pub(crate) genesis: Option<String>,
    /// Stop after this block
    #[arg(long, value_name = "BLOCK", value_parser = parse_chain_block)]
    pub(crate) to: Option<u64>,
    /// Memory for everything together; the state itself is kept in memory besides
    #[arg(long, value_name = "BYTES", default_value = "2GiB", value_parser = bytes::parse_memory)]
    pub(crate) memory: u64,
    /// Write each block's figures here, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) report: Option<PathBuf>,
    /// Draw the distribution into this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `arbor bench reads`.
#[derive(Debug, Args)]
#[command(after_help = examples::BENCH_READS)]
pub(crate) struct BenchReads {
    #[command(flatten)]
    pub(crate) database: Database,
    /// Accounts, and as many slots and absent accounts; fewer where the state has fewer
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) reads: usize,
    /// Proofs of an account and a slot, of Merkle-Patricia databases alone [default: 1000; else 0]
    #[arg(long, value_name = "N")]
    pub(crate) proofs: Option<usize>,
    /// Blocks behind the latest; 0 is the latest
    #[arg(long, value_name = "BLOCKS", num_args = 1.., default_values_t = [0])]
    pub(crate) back: Vec<u64>,
    /// Threads that share the reads
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) threads: NonZeroUsize,
    /// Which accounts and slots are picked
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write all figures here, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) report: Option<PathBuf>,
    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `arbor bench database`.
#[derive(Debug, Args)]
#[command(after_help = examples::BENCH_DATABASE)]
pub(crate) struct BenchDatabase {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The chain, for --witnesses: exports, era1 files, or folders with them
    #[arg(value_name = "CHAIN")]
    pub(crate) chain: Vec<PathBuf>,
    /// Blocks at the end of the chain whose witnesses are made and measured, as many as are retained at most
    #[arg(long, value_name = "N", default_value_t = 0, requires = "chain")]
    pub(crate) witnesses: u64,
    /// Slots in a proof
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 3, 10, 30, 100, 300, 1000])]
    pub(crate) proofs: Vec<usize>,
    /// Slots in an update
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000])]
    pub(crate) updates: Vec<usize>,
    /// How often each proof and update is made; the median counts
    #[arg(long, value_name = "N", default_value = "3")]
    pub(crate) repeat: NonZeroUsize,
    /// Which accounts and slots are picked
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads; 0 for all cores [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = super::parse_threads)]
    pub(crate) threads: usize,
    /// Write all figures here, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) report: Option<PathBuf>,
    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// How the load test numbers the leaves of an AR16MT tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NumberingChoice {
    /// 1, 2, 3, ... in the order in which leaves are first written; gives the root that zksync-era publishes for 75 blocks of 150,000
    Published,
    /// (v + 1) W + j for leaf j of block v with W writes, both counted from 0; gives the roots of zksync-era's load test at 3e29e4a
    Upstream,
}

/// `arbor loadtest`.
///
/// Prints what each block took, then the whole database's check and a summary. Of a block, `load`, `apply` and `hash` are seconds summed over all threads; the
/// other times are by the clock, and `tree` is all three. Pruning goes with the flushes: what a flush that ended meanwhile pruned stands beside the block, so most blocks have none.
#[derive(Debug, Args)]
#[command(after_help = examples::LOADTEST)]
pub(crate) struct Loadtest {
    /// Blocks, a version each
    #[arg(value_parser = clap::value_parser!(u64).range(..=1 << 24))]
    pub(crate) blocks: u64,
    /// New leaves in a block, all of which are in memory until it is in: some 640 bytes each in the first block, 950 under mpt, 1,700 with --proofs; later ones up to
    /// 2,300, 3,900 under mpt, 3,200 with --proofs
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 26))]
    pub(crate) writes: u64,
    /// The tree
    #[arg(long, value_name = "T", default_value = "ar16mt", value_parser = trees::tree_parser())]
    pub(crate) tree: &'static TreeKind,
    /// Leaves of earlier blocks that each block reads
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1 << 26))]
    pub(crate) reads: u64,
    /// Leaves of earlier blocks that each block changes
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1 << 26))]
    pub(crate) updates: u64,
    /// Blocks after those which bring no leaves, and change as many of them each
    #[arg(long, value_name = "BLOCKS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1 << 24))]
    pub(crate) update_blocks: u64,
    /// Which leaves are read and changed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) rng_seed: u64,
    /// How leaves are numbered; their numbers are hashed with their values, so the root depends on them (AR16MT alone)
    #[arg(long, value_name = "RULE", default_value = "published")]
    pub(crate) numbering: NumberingChoice,
    /// Prove each write and read, with the root after it (AR16MT alone)
    #[arg(long, conflicts_with = "no_hash")]
    pub(crate) proofs: bool,
    /// Leave the hashing out, so that the rest can be measured: roots mean nothing then (AR16MT alone)
    #[arg(long)]
    pub(crate) no_hash: bool,
    /// Keep nothing on disk
    #[arg(long, short = 'M', conflicts_with_all = ["db", "store"])]
    pub(crate) in_memory: bool,
    /// Directory of the database, which must not have one, and stays [default: one in the system's temporary directory, removed at the end]
    #[arg(long, value_name = "DIR")]
    pub(crate) db: Option<PathBuf>,
    /// The store on disk
    #[arg(long, value_name = "S", default_value = "fjall", value_parser = parse_disk)]
    pub(crate) store: StoreKind,
    /// Keep the latest version alone; what goes is deleted in the batches of flushes, so that pruning has no time of its own but for finding it [default: keep all of them]
    #[arg(long)]
    pub(crate) prune: bool,
    /// Keys that one thread reads together (AR16MT alone) [default: 512]
    #[arg(long, value_name = "KEYS")]
    pub(crate) chunk_size: Option<NonZeroUsize>,
    /// Memory for caches, write-back and tables together; the process, the blocks under way (see WRITES) and merges of files come on top
    #[arg(long, value_name = "BYTES", default_value = "2GiB", value_parser = bytes::parse_memory)]
    pub(crate) memory: u64,
    /// Unflushed changes kept in memory before they are written [default: a sixteenth of --memory, at least 4 MiB]
    #[arg(long, value_name = "BYTES", value_parser = bytes::parse)]
    pub(crate) write_back: Option<u64>,
    /// Threads; 0 for all cores [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = parse_threads)]
    pub(crate) threads: usize,
    /// Write all figures here, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) report: Option<PathBuf>,
    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve figures of the work for Prometheus at this address; a port alone is one of 127.0.0.1
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
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) threads: usize,
    /// Bytes for the tables of multiples of the 256 points
    #[arg(long, value_name = "BYTES", default_value = "150MB", value_parser = bytes::parse)]
    pub(crate) tables: u64,
    /// Milliseconds to spend on each figure
    #[arg(long, value_name = "MS", default_value_t = 500)]
    pub(crate) budget: u64,
    /// Openings of the multiproofs
    #[arg(long, value_name = "N", num_args = 1.., default_values_t = arbor_lab::commitments::Settings::OPENINGS)]
    pub(crate) openings: Vec<usize>,
    /// Write all figures here, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) report: Option<PathBuf>,
    /// Draw leaves.svg and updates.svg into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,
    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

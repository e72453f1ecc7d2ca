//! The words of `arbor compare`.

use std::net::SocketAddr;
use std::path::PathBuf;

use arbor_compare::Cache;
use arbor_generator::OverState;
use arbor_versions::Retain;
use clap::{Args, ValueEnum};

use super::{OUTPUT, examples, parse_limits, parse_retain, parse_threads};
use crate::bytes;
use crate::metrics_server;

/// `arbor compare`.
#[derive(Debug, Args)]
#[command(after_help = examples::COMPARE)]
pub(crate) struct Compare {
    /// The blocks of one chain: exports of geth (`geth export`), era1 files, or folders with chain.rlp[.gz] or *.era1 (and genesis.json)
    #[arg(value_name = "CHAIN", required_unless_present = "state")]
    pub(crate) chain: Vec<PathBuf>,
    /// The trees to compare; the first is the one that ratios refer to. Settings follow a colon, joined by plus signs: `arbor replay --help` lists those of each tree. Every tree also has `write-through` (flush every block at once), `portable` (use no wide instructions) and `in-turn` (execute, compute roots and flush in turn, on one thread). `WORD=1..8` stands for a side with each of the numbers
    #[arg(
        long,
        value_name = "TREE[:WORD+...],...",
        value_delimiter = ',',
        required = true
    )]
    pub(crate) trees: Vec<String>,
    /// Folder for the results. If it has an interrupted comparison with the same arguments, the command continues it
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Runs of each tree; the trees take turns. If the runs of a tree differ by more than 5 %, each tree runs once more
    #[arg(long, value_name = "N", default_value = "3", value_parser = parse_repeat)]
    pub(crate) repeat: usize,
    /// State of the operating system's file cache at the start of a run
    #[arg(long, value_name = "warm|cold", default_value = "warm")]
    pub(crate) cache: CacheChoice,
    /// Databases to start from instead of the genesis: one for each tree, all at the same block. Each run works on a copy
    #[arg(long, value_name = "DB,...", value_delimiter = ',')]
    pub(crate) start: Vec<PathBuf>,
    /// Begin with a large state that `arbor generate --state` made, and replay the blocks of one of its workloads. The state is loaded once for each tree and its settings, into DIR/databases
    #[arg(long, value_name = "DIR", requires = "workload", conflicts_with_all = ["chain", "start", "genesis"])]
    pub(crate) state: Option<PathBuf>,
    /// The workload of the blocks over the state. With read, each transaction reads a slot of an account that is chosen at random; with write, it writes one; mixed has half of each; erc20 has token transfers
    #[arg(long, value_name = "read|write|mixed|erc20", requires = "state")]
    pub(crate) workload: Option<OverState>,
    /// Compare with an earlier comparison: its folder, or its results.json. The command fails if a count (hashes, nodes, records) or the bytes handed to the store grew by more than --allow. Times are reported only. With --threads 1, counts are the same in every run
    #[arg(long, value_name = "OLD")]
    pub(crate) baseline: Option<PathBuf>,
    /// The growth since the baseline that is accepted for counts and bytes, in per cent
    #[arg(long, value_name = "PER CENT", default_value = "1", value_parser = parse_percent, requires = "baseline")]
    pub(crate) allow: f64,
    /// Genesis in geth's JSON form, or the name of a network (mainnet, sepolia, holesky or hoodi) [default: genesis.json next to the chain]
    #[arg(long, value_name = "FILE|PRESET")]
    pub(crate) genesis: Option<String>,
    /// Stop after this block
    #[arg(long, value_name = "BLOCK")]
    pub(crate) to: Option<u64>,
    /// Memory of each run: caches, write-back and tables together
    #[arg(long, value_name = "BYTES", default_value = "512MiB", value_parser = bytes::parse_memory)]
    pub(crate) memory: u64,
    /// Unflushed changes that each run keeps in memory, unless its tree writes through [default: a sixteenth of --memory, at least 4 MiB]
    #[arg(long, value_name = "BYTES", value_parser = bytes::parse)]
    pub(crate) write_back: Option<u64>,
    /// History that each run keeps: none, a number of versions, or all
    #[arg(long, value_name = "none|N|all", default_value = "128", value_parser = parse_retain)]
    pub(crate) retain: Retain,
    /// Threads of each run. With 1, one thread does everything, roots and flushes included, and counts are the same in every run [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = parse_threads)]
    pub(crate) threads: usize,
    /// Slow the store down to a disk with this many requests a second, each of which takes this many microseconds
    #[arg(long, value_name = "REQUESTS:US", value_parser = parse_throttle)]
    pub(crate) throttle: Option<String>,
    /// Make and measure the witnesses of this many blocks at the end of the chain, at most as many as --retain [default: 64]
    #[arg(long, value_name = "N")]
    pub(crate) witnesses: Option<u64>,
    /// Points along the chain at which tables are counted, for their growth. This takes one more replay of each tree, outside the times. 0: at the end only [default: 8]
    #[arg(long, value_name = "N", value_parser = parse_growth)]
    pub(crate) growth: Option<u64>,
    /// Replay and check only: no sizes of tables, depths, proofs, updates and witnesses
    #[arg(long)]
    pub(crate) no_survey: bool,
    /// Leave out the check of the whole database after the first run of each tree, which reads a large state once or several times. Headers and roots are checked all the same
    #[arg(long)]
    pub(crate) no_verify: bool,
    /// Print the report as JSON instead of the table
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve metrics for Prometheus at this address: the part of the runs that is done. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
}

/// The operating system's cache when a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CacheChoice {
    /// As the previous run left it. A start database is read once
    Warm,
    /// The files of the chain and of the start database are dropped from it
    Cold,
}

impl From<CacheChoice> for Cache {
    fn from(choice: CacheChoice) -> Self {
        match choice {
            CacheChoice::Warm => Self::Warm,
            CacheChoice::Cold => Self::Cold,
        }
    }
}

/// Limits of a disk, which runs are given as they were written.
fn parse_throttle(text: &str) -> Result<String, String> {
    parse_limits(text).map(|_| text.to_owned())
}

/// Parses the part by which counts and bytes may grow.
fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok();
    let percent = percent.filter(|percent: &f64| (0.0..=1e6).contains(percent));
    percent.ok_or_else(|| format!("'{text}' is not a percentage, such as 1 or 0.5"))
}

/// Parses a number of points, each of which is a bar of the report.
fn parse_growth(text: &str) -> Result<u64, String> {
    let points = text.parse().ok().filter(|points| *points <= 100);
    points.ok_or_else(|| format!("'{text}' is not a number up to 100"))
}

/// Parses a number of repetitions.
pub(super) fn parse_repeat(text: &str) -> Result<usize, String> {
    let runs = text.parse().ok().filter(|runs| (1..=1000).contains(runs));
    runs.ok_or_else(|| format!("'{text}' is not a number from 1 to 1000"))
}

//! The words of `arbor compare`.

use std::path::PathBuf;

use arbor_compare::Cache;
use arbor_versions::Retain;
use clap::{Args, ValueEnum};

use super::{parse_limits, parse_retain, parse_threads};
use crate::bytes;

/// The help text below the flags.
const AFTER: &str = "\
Every run is checked: all end at the same block, runs of one tree have the same roots, and `arbor verify` accepts each
database, outside the times. A run that fails is named with its log, its tree is left out, the others are compared, and
the exit code is 1. Ctrl-C keeps the runs that are done; the same command goes on.

Examples:
    arbor compare --trees mpt,verkle,ar16mt --out compared chain
    arbor compare --trees verkle,verkle:published,verkle:compressed+write-through --out layouts chain
    arbor compare --trees mpt,verkle --threads 1 --repeat 1 --baseline compared --out again chain";

/// `arbor compare`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Compare {
    /// Exports, era1 files, or folders with chain.rlp[.gz] or *.era1 (and genesis.json): one chain
    #[arg(value_name = "CHAIN", required = true)]
    pub(crate) chain: Vec<PathBuf>,
    /// The trees, each with its settings after a colon, joined by plus signs: see `arbor replay --help` for the settings of each tree. Every tree also has `write-through` (flush every block at once) and `portable` (no wide instructions). The others are compared with the first
    #[arg(
        long,
        value_name = "TREE[:WORD+...],...",
        value_delimiter = ',',
        required = true
    )]
    pub(crate) trees: Vec<String>,
    /// Folder for the results; an interrupted comparison in it goes on if all arguments are the same
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Runs of each tree, in turn; once more if they differ by more than 5 %
    #[arg(long, value_name = "N", default_value = "3", value_parser = parse_repeat)]
    pub(crate) repeat: usize,
    /// The operating system's cache when a run begins. cold: the files of the chain and of the start database are dropped from it
    #[arg(long, value_name = "warm|cold", default_value = "warm")]
    pub(crate) cache: CacheChoice,
    /// Databases to begin with instead of the genesis, one for each tree, all at the same block. Each run has a copy
    #[arg(long, value_name = "DB,...", value_delimiter = ',')]
    pub(crate) start: Vec<PathBuf>,
    /// Fail if counts (hashes, nodes, records) or bytes handed to the store grew since this earlier comparison: its folder, or its results.json. Times are only reported. Counts are exact with --threads 1
    #[arg(long, value_name = "OLD")]
    pub(crate) baseline: Option<PathBuf>,
    /// By how many percent counts and bytes may have grown since the baseline
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = parse_percent, requires = "baseline")]
    pub(crate) allow: f64,
    /// Genesis in geth's JSON form, or the name of a network [default: genesis.json beside the chain]
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
    /// Threads of each run; 1: one thread for everything [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = parse_threads)]
    pub(crate) threads: usize,
    /// Be as slow as a disk that takes so many requests a second, each of which lasts so many microseconds
    #[arg(long, value_name = "REQUESTS:US", value_parser = parse_throttle)]
    pub(crate) throttle: Option<String>,
    /// Blocks at the end of the chain whose witnesses are made and measured; as many as --retain at most
    #[arg(long, value_name = "N", default_value = "64")]
    pub(crate) witnesses: u64,
    /// Replay and check only: no sizes of tables, depths, proofs, updates and witnesses
    #[arg(long)]
    pub(crate) no_survey: bool,
}

/// The operating system's cache when a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CacheChoice {
    /// As the runs before left it
    Warm,
    /// Without the files that the run reads
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

/// Parses a number of repetitions.
fn parse_repeat(text: &str) -> Result<usize, String> {
    let runs = text.parse().ok().filter(|runs| (1..=1000).contains(runs));
    runs.ok_or_else(|| format!("'{text}' is not a number from 1 to 1000"))
}

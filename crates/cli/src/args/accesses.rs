//! `arbor accesses`.

use std::net::SocketAddr;
use std::path::PathBuf;

use arbor_state::TreeKind;
use clap::Args;

use super::{OUTPUT, RESOURCES, RULES, RuleFlags, examples};
use crate::names::parse_chain_block;
use crate::{bytes, metrics_server, trees};

/// `arbor accesses`.
///
/// The chain is replayed in memory from its genesis on, and every header field is verified. accesses.parquet has a row for
/// each account, slot and chunk of code that a block reads or changes; blocks.parquet has a row for each block.
#[derive(Debug, Args)]
#[command(after_help = examples::ACCESSES)]
pub(crate) struct Accesses {
    /// The blocks: exports of geth (`geth export`), era1 files, or folders with chain.rlp[.gz] or *.era1 (and genesis.json)
    #[arg(value_name = "CHAIN", required = true)]
    pub(crate) chain: Vec<PathBuf>,
    /// The tree whose witnesses and nodes are counted
    #[arg(long, value_name = "T", default_value = "mpt", value_parser = trees::tree_parser())]
    pub(crate) tree: &'static TreeKind,
    /// Hash function of the tree, if the tree lets choose [default: the tree's usual one]
    #[arg(long, value_name = "HASH", value_parser = trees::hash_parser())]
    pub(crate) hash: Option<String>,
    /// Folder for accesses.parquet and blocks.parquet. It must be new or empty
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub(crate) out: PathBuf,
    /// Write the accesses from this block on. The blocks before it are replayed
    #[arg(long, value_name = "BLOCK", default_value_t = 1, value_parser = parse_chain_block)]
    pub(crate) from: u64,
    /// Stop after this block
    #[arg(long, value_name = "BLOCK", value_parser = parse_chain_block)]
    pub(crate) to: Option<u64>,
    /// Genesis in geth's JSON form, or the name of a network (mainnet, sepolia, holesky or hoodi) [default: genesis.json next to the chain]
    #[arg(long, value_name = "FILE|PRESET", help_heading = RULES)]
    pub(crate) genesis: Option<String>,
    #[command(flatten)]
    pub(crate) rules: RuleFlags,
    /// Memory for caches and tables. The state itself is in memory, too, and comes on top
    #[arg(long, value_name = "BYTES", default_value = "2GiB", value_parser = bytes::parse_memory, help_heading = RESOURCES)]
    pub(crate) memory: u64,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve metrics for Prometheus at this address. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
}

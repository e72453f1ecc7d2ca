//! Flags of the commands that change or copy a database as a whole: `arbor repair`, `rollback`, `prune`, `backup`, `history-proofs`, `compact`, `inspect`, `snapshot` and `recover`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use alloy_primitives::B256;
use arbor_database::{StoreKind, parse_retain};
use arbor_state::recovery::MOST_TOGETHER;
use arbor_versions::Retain;
use clap::{ArgGroup, Args, ValueEnum};

use super::{Database, OUTPUT, RuleFlags, examples, parse_disk, parse_threads};
use crate::block_choice::BlockChoice;
use crate::metrics_server;
use crate::names::parse_hash;

/// `arbor repair`.
#[derive(Debug, Args)]
#[command(after_help = examples::REPAIR)]
pub(crate) struct Repair {
    #[command(flatten)]
    pub(crate) database: Database,
    /// Accept the store even if HEAD names a later version or another database, for example after a restore from a backup
    #[arg(long)]
    pub(crate) accept_store: bool,
    /// Threads that check; 0 for all cores [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = parse_threads)]
    pub(crate) threads: usize,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `arbor rollback`.
#[derive(Debug, Args)]
#[command(after_help = examples::ROLLBACK)]
pub(crate) struct Rollback {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The block to return to: a number, a hash, or -N for N blocks before the latest
    #[arg(long, value_name = "BLOCK", value_parser = BlockChoice::parse, allow_hyphen_values = true)]
    pub(crate) to: BlockChoice,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `arbor prune`.
#[derive(Debug, Args)]
#[command(after_help = examples::PRUNE, group = ArgGroup::new("kept").args(["retain", "before"]).required(true))]
pub(crate) struct Prune {
    #[command(flatten)]
    pub(crate) database: Database,
    /// History to keep: none, or a number of versions
    #[arg(long, value_name = "none|N", value_parser = parse_retain)]
    pub(crate) retain: Option<Retain>,
    /// Delete the states of the blocks before this one: a number, a hash, or -N for N blocks before the latest
    #[arg(long, value_name = "BLOCK", value_parser = BlockChoice::parse, allow_hyphen_values = true, conflicts_with = "retain")]
    pub(crate) before: Option<BlockChoice>,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve metrics for Prometheus at this address. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
}

/// `arbor backup`.
#[derive(Debug, Args)]
#[command(after_help = examples::BACKUP)]
pub(crate) struct Backup {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The new folder of the copy. Until the copy is checked, the folder's name ends in `.unfinished`
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// Threads that check; 0 for all cores [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = parse_threads)]
    pub(crate) threads: usize,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve metrics for Prometheus at this address. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
}

/// `arbor history-proofs`.
#[derive(Debug, Args)]
#[command(after_help = examples::HISTORY_PROOFS)]
pub(crate) struct HistoryProofs {
    #[command(flatten)]
    pub(crate) database: Database,
    /// Drop the nodes of older states, and keep none any more
    #[arg(long)]
    pub(crate) drop: bool,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve metrics for Prometheus at this address. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
}

/// `arbor compact`.
#[derive(Debug, Args)]
#[command(after_help = examples::COMPACT)]
pub(crate) struct Compact {
    #[command(flatten)]
    pub(crate) database: Database,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve metrics for Prometheus at this address. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
}

/// `arbor inspect`.
#[derive(Debug, Args)]
#[command(after_help = examples::INSPECT)]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(crate) database: Database,
    /// How many of the largest accounts and codes to name
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = parse_top)]
    pub(crate) top: usize,
    /// Also write a page for a browser, with a plot and a table of each part, which opens without a network
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) html: Option<PathBuf>,
    /// Also write a file of comma-separated values for each part into this folder
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve metrics for Prometheus at this address. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
}

/// Parses how many of the largest things to name; all of these are in memory.
fn parse_top(text: &str) -> Result<usize, String> {
    let top = text.parse().ok().filter(|top| *top <= 100_000);
    top.ok_or_else(|| format!("'{text}' is not a number up to 100000"))
}

/// `arbor snapshot`.
#[derive(Debug, Args)]
#[command(after_help = examples::SNAPSHOT)]
pub(crate) struct Snapshot {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The new file to write
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// At this retained block: a number, a hash, 'latest', or -N for N blocks before the latest
    #[arg(long, value_name = "BLOCK", default_value = "latest", value_parser = BlockChoice::parse, allow_hyphen_values = true)]
    pub(crate) at: BlockChoice,
    /// The order of an ar16mt database's leaves. Accounts have the order of their keys
    #[arg(long, value_name = "O", default_value = "key")]
    pub(crate) order: OrderChoice,
    /// Leaves, or accounts and slots, in a chunk. A recovery takes in one chunk at a time
    #[arg(long, value_name = "LEAVES", default_value = "100000", value_parser = parse_chunk)]
    pub(crate) chunk_size: NonZeroUsize,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// An order of leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderChoice {
    /// Ascending by key
    Key,
    /// By index, the order in which leaves were first written. This takes memory for all leaves
    Index,
}

/// Leaves of a chunk, all of which a reader holds.
fn parse_chunk(text: &str) -> Result<NonZeroUsize, String> {
    let leaves = text
        .parse()
        .ok()
        .filter(|leaves: &NonZeroUsize| leaves.get() <= MOST_TOGETHER);
    leaves.ok_or_else(|| format!("'{text}' is not a number from 1 to {MOST_TOGETHER}"))
}

/// `arbor recover`.
#[derive(Debug, Args)]
#[command(after_help = examples::RECOVER)]
pub(crate) struct Recover {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The file that `arbor snapshot` wrote
    pub(crate) file: PathBuf,
    /// The root that the state must have [default: the root in the file, which proves nothing if the file is not trusted]
    #[arg(long, value_name = "R", value_parser = parse_hash)]
    pub(crate) root: Option<B256>,
    /// Genesis of the snapshot's chain, in geth's JSON form, or the name of a network. The genesis in the snapshot must be the same in every field, because the root does not cover it [default: that of the known network with the snapshot's chain id, else the one in the snapshot]
    #[arg(long, value_name = "FILE|PRESET")]
    pub(crate) genesis: Option<String>,
    #[command(flatten)]
    pub(crate) rules: RuleFlags,
    /// The store of a new database
    #[arg(long, value_name = "S", default_value = "fjall", value_parser = parse_disk)]
    pub(crate) store: StoreKind,
    /// Threads to use; 0 for all cores [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = parse_threads)]
    pub(crate) threads: usize,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve metrics for Prometheus at this address. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
}

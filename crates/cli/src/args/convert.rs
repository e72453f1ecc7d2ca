//! `arbor convert`.

use std::net::SocketAddr;
use std::path::PathBuf;

use arbor_database::StoreKind;
use arbor_state::TreeKind;
use clap::Args;

use super::{DATABASE, MEMORY_VARIABLE, OUTPUT, RESOURCES, examples, parse_disk, parse_threads};
use crate::block_choice::BlockChoice;
use crate::{bytes, metrics_server, trees};

/// Heading of the flags that say more about the source.
const SOURCE: &str = "Source";

/// `arbor convert`.
///
/// The source is read, and never written. After a kill, a full disk or Ctrl-C, the same command goes on. Every account, slot and code of
/// the new database is read again and compared with the source.
#[derive(Debug, Args)]
#[command(after_help = examples::CONVERT)]
pub(crate) struct Convert {
    /// The state to convert: the folder of a database, a dump in JSON lines (`-` is standard input), a genesis file, or the name of a network
    #[arg(long, value_name = "SOURCE", help_heading = SOURCE)]
    pub(crate) from: PathBuf,
    /// The block of the state: of a database, a retained block; of a dump, the number of its block in --ancestors [default: the latest]
    #[arg(long, value_name = "BLOCK", value_parser = BlockChoice::parse, allow_hyphen_values = true, help_heading = SOURCE)]
    pub(crate) at: Option<BlockChoice>,
    /// The chain of a dump, as exports, era1 files or folders: it gives the header of the dump's block and the 256 blocks before it. Without it no blocks can be replayed over the new database
    #[arg(long, value_name = "CHAIN", num_args = 1.., help_heading = SOURCE)]
    pub(crate) ancestors: Vec<PathBuf>,
    /// Genesis of a dump's chain, in geth's JSON form, or the name of a network [default: genesis.json next to --ancestors]
    #[arg(long, value_name = "FILE|PRESET", help_heading = SOURCE)]
    pub(crate) genesis: Option<String>,
    /// Files with the preimages of a dump of hashed keys (geth snapshot dump), in any form that `arbor preimages` reads
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = SOURCE)]
    pub(crate) preimages: Vec<PathBuf>,
    /// Folder of the new database
    #[arg(long, value_name = "DIR", help_heading = DATABASE)]
    pub(crate) to: PathBuf,
    /// The tree of the new database
    #[arg(long, value_name = "T", value_parser = trees::tree_parser(), help_heading = DATABASE)]
    pub(crate) tree: &'static TreeKind,
    /// How the tree is stored and computed
    #[arg(long, value_name = "WORD,...", value_delimiter = ',', value_parser = trees::parse_setting, help_heading = DATABASE)]
    pub(crate) tree_settings: Vec<String>,
    /// The store of the new database
    #[arg(long, value_name = "S", default_value = "fjall", value_parser = parse_disk, help_heading = DATABASE)]
    pub(crate) store: StoreKind,
    /// Memory for sorting, caches and tables together
    #[arg(long, value_name = "BYTES", default_value = "2GiB", env = MEMORY_VARIABLE, value_parser = bytes::parse_memory, help_heading = RESOURCES)]
    pub(crate) memory: u64,
    /// Threads; 0 for all cores [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = parse_threads, help_heading = RESOURCES)]
    pub(crate) threads: usize,
    /// Begin without an estimate of the disk space that is needed
    #[arg(long, help_heading = RESOURCES)]
    pub(crate) skip_disk_check: bool,
    /// Write measurements to this file, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) report: Option<PathBuf>,
    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve figures of the work for Prometheus at this address; a port alone is one of 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
}

//! `arbor convert`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use arbor_convert::PartOf;
use arbor_database::StoreKind;
use clap::{Args, Subcommand};

use super::{
    DATABASE, MEMORY_VARIABLE, OUTPUT, RESOURCES, examples, parse_disk, parse_threads,
    tree_settings_help,
};
use crate::block_choice::BlockChoice;
use crate::trees::TreeWord;
use crate::{bytes, metrics_server, trees};

/// Heading of the flags that say more about the source.
const SOURCE: &str = "Source";

/// `arbor convert`.
///
/// The source is read, and never written. After a kill, a full disk or Ctrl-C, the same command goes on. Every account, slot and code of
/// the new database is read again and compared with the source.
#[derive(Debug, Args)]
#[command(after_help = examples::CONVERT, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Convert {
    #[command(subcommand)]
    pub(crate) joining: Option<Joining>,
    #[command(flatten)]
    pub(crate) one: Conversion,
}

/// What else is done with conversions.
#[derive(Debug, Subcommand)]
pub(crate) enum Joining {
    /// Make a database of all parts of a conversion
    Join(ConvertJoin),
}

/// `arbor convert join`.
#[derive(Debug, Args)]
#[command(after_help = examples::CONVERT_JOIN)]
pub(crate) struct ConvertJoin {
    /// The folders of all parts
    #[arg(value_name = "PART", required = true)]
    pub(crate) parts: Vec<PathBuf>,
    /// Folder of the new database
    #[arg(long, value_name = "DIR", help_heading = DATABASE)]
    pub(crate) to: PathBuf,
    /// The store of the new database
    #[arg(long, value_name = "S", default_value = "fjall", value_parser = parse_disk, help_heading = DATABASE)]
    pub(crate) store: StoreKind,
    #[command(flatten)]
    pub(crate) work: Work,
}

/// Memory, threads and output of a conversion.
#[derive(Debug, Args)]
pub(crate) struct Work {
    /// Memory for sorting, caches and tables together
    #[arg(long, value_name = "BYTES", default_value = "2GiB", env = MEMORY_VARIABLE, value_parser = bytes::parse_memory, help_heading = RESOURCES)]
    pub(crate) memory: u64,
    /// Threads; 0 for all cores [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = parse_threads, help_heading = RESOURCES)]
    pub(crate) threads: usize,
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

/// A conversion, or one part of it.
#[derive(Debug, Args)]
pub(crate) struct Conversion {
    /// The state to convert: the folder of a database, a dump in JSON lines (`-` is standard input), a genesis file, or the name of a network
    #[arg(long, value_name = "SOURCE", required = true, help_heading = SOURCE)]
    pub(crate) from: Option<PathBuf>,
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
    #[arg(long, value_name = "DIR", required = true, help_heading = DATABASE)]
    pub(crate) to: Option<PathBuf>,
    /// The tree of the new database, with settings if they follow a colon (`eip8297:levels=4`)
    #[arg(long, value_name = "T[:WORD+...]", required = true, value_parser = trees::TreeWordParser, help_heading = DATABASE)]
    pub(crate) tree: Option<TreeWord>,
    /// Hash function of the tree, if the tree lets choose [default: the tree's usual one]
    #[arg(long, value_name = "HASH", value_parser = trees::hash_parser(), help_heading = DATABASE)]
    pub(crate) hash: Option<String>,
    /// How the tree is stored and computed
    #[arg(long, value_name = "WORD,...", value_delimiter = ',', value_parser = trees::parse_setting, long_help = tree_settings_help(), help_heading = DATABASE)]
    pub(crate) tree_settings: Vec<String>,
    /// The store of the new database
    #[arg(long, value_name = "S", default_value = "fjall", value_parser = parse_disk, help_heading = DATABASE)]
    pub(crate) store: StoreKind,
    /// Go on after the conversion: take over what later blocks of the source database change, without executing them, until Ctrl-C. The source may be written meanwhile
    #[arg(long, conflicts_with = "part", help_heading = SOURCE)]
    pub(crate) follow: bool,
    /// Make one part only: those accounts whose keys are in the I-th of N ranges. --to names the part's folder, and `arbor convert join` makes the database of all N parts
    #[arg(long, value_name = "I/N", value_parser = |text: &str| text.parse::<PartOf>(), help_heading = DATABASE)]
    pub(crate) part: Option<PartOf>,
    /// Begin without an estimate of the disk space that is needed
    #[arg(long, help_heading = RESOURCES)]
    pub(crate) skip_disk_check: bool,
    #[command(flatten)]
    pub(crate) work: Work,
}

impl Conversion {
    /// The settings of the tree, from `--tree` and `--tree-settings`.
    pub(crate) fn setting_words(&self) -> Vec<String> {
        [&self.tree().settings[..], &self.tree_settings].concat()
    }

    /// The source.
    pub(crate) fn from(&self) -> &Path {
        self.from.as_deref().expect(REQUIRED)
    }

    /// The target's folder.
    pub(crate) fn to(&self) -> &Path {
        self.to.as_deref().expect(REQUIRED)
    }

    /// The target's tree.
    pub(crate) fn tree(&self) -> &TreeWord {
        self.tree.as_ref().expect(REQUIRED)
    }
}

/// Why an option that a subcommand does without is there.
const REQUIRED: &str = "invariant: the option is required if there is no subcommand";

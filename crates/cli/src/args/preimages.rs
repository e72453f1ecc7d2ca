//! `arbor preimages`.

use std::path::PathBuf;

use arbor_convert::WrittenForm;
use clap::{Args, Subcommand, ValueEnum};

use super::{Database, OUTPUT, RESOURCES, examples, parse_threads};
use crate::block_choice::BlockChoice;
use crate::bytes;

/// `arbor preimages`.
#[derive(Debug, Subcommand)]
pub(crate) enum Preimages {
    /// Count the hashed keys that have no preimage, and list them by account
    Audit(PreimagesAudit),
    /// Write the preimages of a database to a file
    Export(PreimagesExport),
    /// Sort files of preimages into one file
    Import(PreimagesImport),
}

/// Scratch space and threads.
#[derive(Debug, Args)]
pub(crate) struct Scratch {
    /// Folder for files on the way, which are removed at the end [default: that of --out; the system's temporary folder]
    #[arg(long, value_name = "DIR", help_heading = RESOURCES)]
    pub(crate) scratch: Option<PathBuf>,
    /// Threads; 0 for all cores [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = parse_threads, help_heading = RESOURCES)]
    pub(crate) threads: usize,
}

/// `arbor preimages audit`.
#[derive(Debug, Args)]
#[command(after_help = examples::PREIMAGES_AUDIT)]
pub(crate) struct PreimagesAudit {
    /// The hashed keys: a dump of `geth snapshot dump` (`-` is standard input), or the folder of a database
    #[arg(long, value_name = "SOURCE")]
    pub(crate) from: PathBuf,
    /// Files of preimages
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    pub(crate) preimages: Vec<PathBuf>,
    /// Memory for caches
    #[arg(long, value_name = "BYTES", default_value = "2GiB", value_parser = bytes::parse_memory, help_heading = RESOURCES)]
    pub(crate) memory: u64,
    #[command(flatten)]
    pub(crate) work: Scratch,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `arbor preimages export`.
#[derive(Debug, Args)]
#[command(after_help = examples::PREIMAGES_EXPORT)]
pub(crate) struct PreimagesExport {
    #[command(flatten)]
    pub(crate) database: Database,
    /// At this retained block: a number, a hash, 'latest', or -N for N blocks before the latest
    #[arg(long, value_name = "BLOCK", default_value = "latest", value_parser = BlockChoice::parse, allow_hyphen_values = true)]
    pub(crate) at: BlockChoice,
    /// The new file to write
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// The form of the file
    #[arg(long, value_name = "F", default_value = "eip8347")]
    pub(crate) form: WrittenFormChoice,
    #[command(flatten)]
    pub(crate) work: Scratch,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `arbor preimages import`.
#[derive(Debug, Args)]
#[command(after_help = examples::PREIMAGES_IMPORT)]
pub(crate) struct PreimagesImport {
    /// Files of preimages
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// A dump of hashed keys, which says what slots each account has: needed for files that do not
    #[arg(long, value_name = "DUMP")]
    pub(crate) from: Option<PathBuf>,
    /// The new file to write
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// The form of the file
    #[arg(long, value_name = "F", default_value = "eip8347")]
    pub(crate) form: WrittenFormChoice,
    /// Memory for sorting
    #[arg(long, value_name = "BYTES", default_value = "2GiB", value_parser = bytes::parse_memory, help_heading = RESOURCES)]
    pub(crate) memory: u64,
    #[command(flatten)]
    pub(crate) work: Scratch,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// The form of a written file of preimages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WrittenFormChoice {
    /// EIP-8347's records
    Eip8347,
    /// RLP strings, as geth exports preimages
    Strings,
}

impl From<WrittenFormChoice> for WrittenForm {
    fn from(choice: WrittenFormChoice) -> Self {
        match choice {
            WrittenFormChoice::Eip8347 => Self::Eip8347,
            WrittenFormChoice::Strings => Self::Strings,
        }
    }
}

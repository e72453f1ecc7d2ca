//! The leaves of a state: `arbor oracle` and `diff`.

use std::path::PathBuf;

use arbor_state::{AccountSlots, TreeKind};
use clap::Args;

use super::proofs::parse_account;
use super::{OUTPUT, examples};
use crate::trees;

/// `arbor oracle`.
#[derive(Debug, Args)]
#[command(after_help = examples::ORACLE)]
pub(crate) struct Oracle {
    /// A genesis, a dump (`arbor dump`, `geth dump`), the alloc of a state test, `-` for one of these from standard input, a database
    /// (its latest block), a snapshot of one, or the name of a network. Files may be compressed with gzip or zstd
    #[arg(value_name = "STATE")]
    pub(crate) state: String,
    /// The tree [default: a database's own; other states need this option]
    #[arg(long, value_name = "T", value_parser = trees::tree_parser())]
    pub(crate) tree: Option<&'static TreeKind>,
    /// Hash function of the tree, if it lets choose [default: that of a database with this tree, else the usual one]
    #[arg(long, value_name = "HASH", value_parser = trees::hash_parser())]
    pub(crate) hash: Option<String>,
    /// Prove this account and slots, too. May be given several times
    #[arg(long, value_name = "ADDRESS[:SLOT,...]", value_parser = parse_account)]
    pub(crate) prove: Vec<AccountSlots>,
    /// Print one JSON object
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `arbor diff`.
#[derive(Debug, Args)]
#[command(after_help = examples::DIFF)]
pub(crate) struct Diff {
    /// Leaves: output of `arbor oracle`, lines with a key and a value in hexadecimal, JSON with values by keys (`evm t8n --output.vkt`),
    /// `-` for one of these from standard input, or a database (its latest block). Files may be compressed with gzip or zstd
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// The other leaves
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    /// The tree whose leaves databases are compared by [default: the database's own]
    #[arg(long, value_name = "T", value_parser = trees::leaves_parser())]
    pub(crate) tree: Option<&'static TreeKind>,
    /// Hash function of that tree, if it lets choose [default: that of the first database with this tree, else the usual one]
    #[arg(long, value_name = "HASH", value_parser = trees::hash_parser(), requires = "tree")]
    pub(crate) hash: Option<String>,
    /// Print a JSON object for each leaf that differs, a line each
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

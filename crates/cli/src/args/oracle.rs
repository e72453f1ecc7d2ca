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
    /// A genesis, a dump (`arbor dump`, `geth dump`), the alloc of a state test, or the name of a network
    #[arg(value_name = "STATE")]
    pub(crate) state: String,
    /// The tree
    #[arg(long, value_name = "T", value_parser = trees::leaves_parser())]
    pub(crate) tree: &'static TreeKind,
    /// Hash function of the tree, if it lets choose [default: the usual one]
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
    /// A list of leaves: output of `arbor oracle`, or lines with a key and a value in hexadecimal
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// The other list
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    /// Print a JSON object for each leaf that differs, a line each
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

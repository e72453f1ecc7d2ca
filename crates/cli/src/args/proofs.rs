//! Proofs and witnesses: `arbor prove`, `verify-proof`, `witness` and `verify-witness`.

use std::path::PathBuf;

use alloy_primitives::{Address, B256, U256, hex};
use arbor_state::AccountSlots;
use arbor_state::TreeKind;
use clap::{Args, Subcommand, ValueEnum};

use super::{DATABASE, DB_VARIABLE, Database, MEMORY_VARIABLE, NODE, OUTPUT, RuleFlags, examples};
use crate::block_choice::BlockChoice;
use crate::names::{parse_address, parse_hash, parse_slot};
use crate::{bytes, trees};

/// `arbor prove`.
#[derive(Debug, Args)]
#[command(after_help = examples::PROVE)]
pub(crate) struct Prove {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The account
    #[arg(required_unless_present_any = ["range", "storage_logs"], value_parser = parse_address)]
    pub(crate) address: Option<Address>,
    /// Slots of the account: decimal or 0x-hex
    #[arg(value_parser = parse_slot)]
    pub(crate) slots: Vec<U256>,
    /// At this retained block: a number, a hash, 'latest', or -N for N blocks before the latest
    #[arg(long, value_name = "BLOCK", default_value = "latest", value_parser = BlockChoice::parse, allow_hyphen_values = true)]
    pub(crate) at: BlockChoice,
    /// The file to write: gzipped if the name ends in .gz, and of a Verkle tree in the binary form, without names, if it ends in .ssz [default: standard output, as JSON]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Prove the account and its slots by one proof: under AR16MT a multiproof, in which no hash occurs twice
    #[arg(long)]
    pub(crate) together: bool,
    /// Another account and its slots, in the same proof. May be given several times
    #[arg(long, value_name = "ADDRESS[:SLOT,...]", value_parser = parse_account)]
    pub(crate) also: Vec<AccountSlots>,
    /// Prove all leaves between two keys: 0x20..0x2f covers keys that begin with 0x20 to 0x2f. Each leaf takes 72 bytes of memory (for trees with leaves by key: AR16MT)
    #[arg(long, value_name = "KEY..KEY", value_parser = parse_range, conflicts_with_all = ["address", "together", "also"])]
    pub(crate) range: Option<(B256, B256)>,
    /// Write the block's changes to this file in the form of zkSync's prover: each write with its path and the root after it, in bytes (for trees with leaves by key: AR16MT)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["address", "together", "also", "range", "out"])]
    pub(crate) storage_logs: Option<PathBuf>,
    /// Accepted like everywhere else: a proof is JSON with or without it. With --storage-logs, print what was written as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// An account and slots of it: `ADDRESS:SLOT,SLOT`.
pub(super) fn parse_account(text: &str) -> Result<AccountSlots, String> {
    let (address, slots) = text.split_once(':').unwrap_or((text, ""));
    let slots = slots.split(',').filter(|slot| !slot.is_empty());
    let slots = slots.map(parse_slot);
    Ok(AccountSlots {
        address: parse_address(address)?,
        slots: slots.collect::<Result<_, _>>()?,
    })
}

/// Two keys of leaves, of each its first bytes: the first is filled up with zeros, the second with ones.
fn parse_range(text: &str) -> Result<(B256, B256), String> {
    let (from, to) = text
        .split_once("..")
        .ok_or_else(|| format!("'{text}' is not of the form KEY..KEY"))?;
    let key = |text: &str, fill: u8| {
        let bytes = hex::decode(text).ok();
        let bytes = bytes.filter(|bytes| text.starts_with("0x") && bytes.len() <= 32);
        let bytes = bytes.ok_or_else(|| format!("'{text}' is not 0x and up to 32 bytes in hex"))?;
        let mut key = B256::repeat_byte(fill);
        key[..bytes.len()].copy_from_slice(&bytes);
        Ok::<_, String>(key)
    };
    let (from, to) = (key(from, 0)?, key(to, 0xff)?);
    match from <= to {
        true => Ok((from, to)),
        false => Err(format!("'{text}' ends before it begins")),
    }
}

/// `arbor verify-proof`.
#[derive(Debug, Args)]
#[command(after_help = examples::VERIFY_PROOF)]
pub(crate) struct VerifyProof {
    /// A proof of `arbor prove` or eth_getProof in JSON, or a Verkle proof in the binary form if the name ends in .ssz. It may be gzipped. `-` reads standard input
    pub(crate) file: PathBuf,
    /// The state root. With --storage-logs, the root before the block
    #[arg(long, value_name = "R", value_parser = parse_hash)]
    pub(crate) root: B256,
    /// An account, and slots, that the proof must cover. May be given several times. A witness of the Verkle testnets contains keys without names: it shows an account only with this and --tree
    #[arg(long, value_name = "ADDRESS[:SLOT,...]", value_parser = parse_account, conflicts_with = "storage_logs")]
    pub(crate) of: Vec<AccountSlots>,
    /// The tree of the root. A Verkle proof contains keys, and no root shows which accounts they belong to: without this the keys are printed
    #[arg(long, value_name = "T", hide_possible_values = true, value_parser = trees::tree_parser())]
    pub(crate) tree: Option<&'static TreeKind>,
    /// The file is one of `arbor prove --storage-logs`: check that each log leads from the root before it to the root after it
    #[arg(long)]
    pub(crate) storage_logs: bool,
    /// The index of the first new leaf: one more than there were leaves. The root does not determine it
    #[arg(long, value_name = "N", requires = "storage_logs")]
    pub(crate) next_index: Option<u64>,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `arbor witness`.
#[derive(Debug, Args)]
#[command(
    after_help = examples::WITNESS,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
)]
pub(crate) struct Witness {
    /// What else to do with witnesses.
    #[command(subcommand)]
    pub(crate) word: Option<WitnessWord>,
    /// Folder of the database
    #[arg(long, value_name = "DIR", env = DB_VARIABLE, required_unless_present = "rpc", help_heading = DATABASE)]
    pub(crate) db: Option<PathBuf>,
    /// Memory for caches and tables together
    #[arg(long, value_name = "BYTES", default_value = "2GiB", env = MEMORY_VARIABLE, value_parser = bytes::parse_memory, help_heading = DATABASE)]
    pub(crate) memory: u64,
    /// The chain with the block: exports of geth, era1 files, or folders with them
    #[arg(value_name = "CHAIN", required_unless_present = "rpc")]
    pub(crate) chain: Vec<PathBuf>,
    /// The block: a number, a hash, 'latest', or -N for N blocks before the latest. The state before it must be retained
    #[arg(long, value_name = "BLOCK", required = true, value_parser = BlockChoice::parse, allow_hyphen_values = true)]
    pub(crate) block: Option<BlockChoice>,
    /// Write the witnesses of the blocks up to this one, too, in a file each
    #[arg(long, value_name = "BLOCK", requires = "out", value_parser = BlockChoice::parse, allow_hyphen_values = true)]
    pub(crate) to: Option<BlockChoice>,
    /// The file to write: gzipped if the name ends in .gz, and of a Verkle tree in the binary form if it ends in .ssz. With --to it is a folder, for
    /// files named by block and form [default: standard output, as JSON]
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Under Verkle: add keys, so that no leaf can be presented as an internal node to hide values that are present
    #[arg(long)]
    pub(crate) guarded: bool,
    /// The form of the files in the folder
    #[arg(long, value_name = "F", default_value = "json", requires = "to")]
    pub(crate) form: WitnessForm,
    /// Take the witness from a node instead, without a database: its debug_executionWitness, or, if the node does not have that, eth_getProof and the block. The block is executed over the witness before it is written
    #[arg(long, value_name = "URL", conflicts_with_all = ["chain", "guarded"], help_heading = NODE)]
    pub(crate) rpc: Option<String>,
    /// Build the witness from eth_getProof even if the node has debug_executionWitness: the result has the canonical nodes
    #[arg(long, requires = "rpc", help_heading = NODE)]
    pub(crate) from_proofs: bool,
    /// Genesis of the node's chain, in geth's JSON form, or the name of a network [default: the network with the node's chain id]
    #[arg(long, value_name = "FILE|PRESET", requires = "rpc", help_heading = NODE)]
    pub(crate) genesis: Option<String>,
    #[command(flatten)]
    pub(crate) rules: RuleFlags,
    /// Print as JSON what was written with --out, a line for each block
    #[arg(long, requires = "out", help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// Words after `arbor witness`.
#[derive(Debug, Subcommand)]
pub(crate) enum WitnessWord {
    /// Compare two witnesses of a block: which nodes, codes and headers only one of them has, and which account and slot each node serves
    Diff(WitnessDiff),
}

/// `arbor witness diff`.
#[derive(Debug, Args)]
#[command(after_help = examples::WITNESS_DIFF)]
pub(crate) struct WitnessDiff {
    /// A witness: of `arbor witness`, or an answer of debug_executionWitness. It may be gzipped. `-` reads standard input
    #[arg(value_name = "A")]
    pub(crate) first: PathBuf,
    /// Another witness of the same block
    #[arg(value_name = "B")]
    pub(crate) second: PathBuf,
    /// The chain with the block, if no witness has it: exports, era1 files, or folders with them. Without the block, nodes have paths and no names
    #[arg(long, value_name = "CHAIN", num_args = 1..)]
    pub(crate) witness_chain: Vec<PathBuf>,
    /// Genesis of the chain, in geth's JSON form, or the name of a network [default: as for `arbor replay --witness`]
    #[arg(long, value_name = "FILE|PRESET")]
    pub(crate) genesis: Option<String>,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// Forms of witness files, by their extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WitnessForm {
    /// JSON
    Json,
    /// JSON, gzipped
    #[value(name = "json.gz")]
    JsonGz,
    /// The binary form, which Verkle witnesses have
    Ssz,
    /// The binary form, gzipped
    #[value(name = "ssz.gz")]
    SszGz,
}

impl WitnessForm {
    /// The extension, as given on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::JsonGz => "json.gz",
            Self::Ssz => "ssz",
            Self::SszGz => "ssz.gz",
        }
    }

    /// Whether it is not JSON.
    pub(crate) const fn is_binary(self) -> bool {
        matches!(self, Self::Ssz | Self::SszGz)
    }
}

/// `arbor verify-witness`.
#[derive(Debug, Args)]
#[command(after_help = examples::VERIFY_WITNESS)]
pub(crate) struct VerifyWitness {
    /// Witness files of any tree, or blocks of the Verkle testnets with their witnesses. `-` reads standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The state root before the block: if a Verkle witness does not contain it, or to compare the
    /// root of a witness amid a move to another tree
    #[arg(long, value_name = "R", value_parser = parse_hash)]
    pub(crate) root: Option<B256>,
    /// The state root after the block, if a Verkle witness does not contain it
    #[arg(long, value_name = "R", value_parser = parse_hash)]
    pub(crate) root_after: Option<B256>,
    /// Refuse Verkle witnesses that prove an absence only if the prover was honest. Witnesses of the testnets may do so
    #[arg(long)]
    pub(crate) guarded: bool,
    /// Print a JSON object for each witness, a line each
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

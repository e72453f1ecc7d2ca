//! Proofs and witnesses: `arbor prove`, `verify-proof`, `witness` and `verify-witness`.

use std::path::PathBuf;

use alloy_primitives::{Address, B256, U256, hex};
use arbor_state::AccountSlots;
use arbor_state::TreeKind;
use clap::{Args, ValueEnum};

use super::{Database, parse_slot};
use crate::trees;

/// `arbor prove`.
#[derive(Debug, Args)]
pub(crate) struct Prove {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The account
    #[arg(required_unless_present_any = ["range", "storage_logs"])]
    pub(crate) address: Option<Address>,
    /// Slots of it: decimal or 0x-hex
    #[arg(value_parser = parse_slot)]
    pub(crate) slots: Vec<U256>,
    /// At this retained block [default: the latest]
    #[arg(long, value_name = "BLOCK")]
    pub(crate) at: Option<u64>,
    /// Where to write it; of a Verkle tree in the binary form, without names, if the name ends in .ssz [default: standard output, as JSON]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Prove all by one proof, as several accounts are: under AR16MT a multiproof, in which no hash stands twice
    #[arg(long)]
    pub(crate) together: bool,
    /// Another account and slots of it, in the same proof; may be given again
    #[arg(long, value_name = "ADDRESS[:SLOT,...]", value_parser = parse_account)]
    pub(crate) also: Vec<AccountSlots>,
    /// All leaves between two keys and no others: 0x20..0x2f has those whose keys begin with these bytes or lie between, all held in memory: 72 bytes each (for trees with leaves by key: AR16MT)
    #[arg(long, value_name = "KEY..KEY", value_parser = parse_range, conflicts_with_all = ["address", "together", "also"])]
    pub(crate) range: Option<(B256, B256)>,
    /// Write what the block changes to this file, as zkSync's prover is given it: each write with its path and the root after it, in bytes (for trees with leaves by key: AR16MT)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["address", "together", "also", "range", "out"])]
    pub(crate) storage_logs: Option<PathBuf>,
}

/// An account and slots of it: `ADDRESS:SLOT,SLOT`.
fn parse_account(text: &str) -> Result<AccountSlots, String> {
    let (address, slots) = text.split_once(':').unwrap_or((text, ""));
    let slots = slots.split(',').filter(|slot| !slot.is_empty());
    let slots = slots.map(parse_slot);
    Ok(AccountSlots {
        address: address
            .parse()
            .map_err(|_| format!("'{address}' is no address"))?,
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
pub(crate) struct VerifyProof {
    /// A proof as `arbor prove` or eth_getProof gives it; of a Verkle tree in the binary form if the name ends in .ssz; gzipped or not; `-` reads standard input
    pub(crate) file: PathBuf,
    /// The state root; of what `arbor prove --storage-logs` wrote that before the block
    #[arg(long, value_name = "R")]
    pub(crate) root: B256,
    /// An account, and slots of it, of which the proof must say what they hold; may be given again. A witness as the Verkle testnets write it has keys and no names, and shows nothing of an account without this and --tree
    #[arg(long, value_name = "ADDRESS[:SLOT,...]", value_parser = parse_account, conflicts_with = "storage_logs")]
    pub(crate) of: Vec<AccountSlots>,
    /// The tree that the root is of. A proof of a Verkle tree has keys, and what accounts they are no root shows: without this they are printed as keys
    #[arg(long, value_name = "T", hide_possible_values = true, value_parser = trees::tree_parser())]
    pub(crate) tree: Option<&'static TreeKind>,
    /// The file is what `arbor prove --storage-logs` writes: check that each of its logs leads from the root before it to the root after it
    #[arg(long)]
    pub(crate) storage_logs: bool,
    /// The index that the first new leaf has to take, which no root shows: one more than there were leaves
    #[arg(long, value_name = "N", requires = "storage_logs")]
    pub(crate) next_index: Option<u64>,
}

/// `arbor witness`.
#[derive(Debug, Args)]
pub(crate) struct Witness {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The chain that holds the block
    #[arg(value_name = "CHAIN", required = true)]
    pub(crate) chain: Vec<PathBuf>,
    /// The block; the state before it must be retained
    #[arg(long, value_name = "BLOCK")]
    pub(crate) block: u64,
    /// Also the blocks after it up to this one, a file each
    #[arg(long, value_name = "BLOCK", requires = "out")]
    pub(crate) to: Option<u64>,
    /// Where to write it: gzipped if the name ends in .gz; of a Verkle tree in the binary form if it ends in .ssz; with --to a folder, for
    /// files named by block and form [default: standard output, as JSON]
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Under Verkle: with further keys where a prover could otherwise pass a leaf for an internal node, and what is there for absent
    #[arg(long)]
    pub(crate) guarded: bool,
    /// The form of the files in the folder
    #[arg(long, value_name = "F", default_value = "json", requires = "to")]
    pub(crate) form: WitnessForm,
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
    /// The same, gzipped
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
pub(crate) struct VerifyWitness {
    /// Witness files of any tree, or blocks of the Verkle testnets with their witnesses; - for standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The state root before the block, where a Verkle witness does not have it
    #[arg(long, value_name = "R")]
    pub(crate) root: Option<B256>,
    /// The state root after the block, likewise
    #[arg(long, value_name = "R")]
    pub(crate) root_after: Option<B256>,
    /// Refuse Verkle witnesses, as the testnets' may be, that show stems to be absent only if they were made honestly
    #[arg(long)]
    pub(crate) guarded: bool,
}

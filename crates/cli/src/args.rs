//! The words of the command line.

use arbor_state::Tree;
use arbor_state::recovery::MOST_TOGETHER;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use alloy_primitives::{Address, B256, U256};
use arbor_chain::genesis::{ChainSpec, WitnessGas};
use arbor_evm384::{GasSchedule, Interface};
use arbor_generator::{Mix, Preset};
use arbor_store::disk::Limits;
use arbor_versions::Retain;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::bytes;
use crate::trees::{self, TreeChoice};

mod bench;
mod compare;
mod evm384;
mod proofs;

pub(crate) use bench::{
    Bench, BenchCommitments, BenchDatabase, BenchEngine, BenchParallel, BenchReads, BenchSenders,
    BenchWitnesses, Loadtest, NumberingChoice,
};
pub(crate) use compare::Compare;
pub(crate) use evm384::{
    Evm384, Evm384Asm, Evm384Bench, Evm384Call, Evm384Debug, Evm384Gas, Evm384Includes,
    Evm384Rules, Evm384Run, Evm384Text, Evm384Vectors, GoalChoice,
};
pub(crate) use proofs::{Prove, VerifyProof, VerifyWitness, Witness, WitnessForm};

/// The codes of docs/exit-codes.md, which says what they mean for each command.
const EXIT_CODES: &str = "\
Exit codes:
    0  done; what was checked holds
    1  failed; what was checked does not hold, or cannot be read: see standard error
    2  the command line is not understood
    3  a verdict is partial: nothing checked is at fault, but not everything could be checked
  130  stopped by Ctrl-C or SIGTERM; what was done until then is kept";

/// An engine for Ethereum state in which the tree is a choice.
///
/// Start with a chain to try things on:
///
///     arbor generate --preset demo --out chain
///     arbor replay --db db chain
///     arbor status --db db
#[derive(Debug, Parser)]
#[command(
    name = "arbor",
    version,
    propagate_version = true,
    max_term_width = 110,
    verbatim_doc_comment,
    after_help = EXIT_CODES
)]
pub(crate) struct Arbor {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// More log lines on stderr: -v info, -vv debug. RUST_LOG is honoured too.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

/// What `arbor` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a small chain in a folder, replay it, look at it, and compare all trees on it: a first taste
    Demo(Demo),
    /// Make a chain: deterministic, valid, with a genesis beside it
    Generate(Generate),
    /// Import, execute and verify blocks; resumes where the database stands
    Replay(Replay),
    /// Say what a database is and where it stands
    Status(Status),
    /// Print an account, a slot or code, now or at a retained block
    Get(Get),
    /// Print the whole state as JSON lines in geth's dump format
    Dump(Dump),
    /// Print the root after each block: of all blocks, if headers do not carry the tree's roots, else of the retained ones
    Roots(Roots),
    /// Prove an account and slots, present or absent: as eth_getProof does, or in the form that the database's tree has
    Prove(Prove),
    /// Check a proof against a state root
    VerifyProof(VerifyProof),
    /// Write the complete pre-state witness of a block, or of each block of a range
    Witness(Witness),
    /// Check witnesses: nodes and codes, or leaves, against their roots, without execution; all of them, whichever are bad
    VerifyWitness(VerifyWitness),
    /// Check the whole database: nodes against flat state, root against the one verified at the last block
    Verify(Verify),
    /// Write the HEAD file of a database anew where it was lost or damaged, after a check of all the rest
    Repair(Repair),
    /// Return to an earlier retained block
    Rollback(Rollback),
    /// Forget history
    Prune(Prune),
    /// Write all leaves of an ar16mt database into a file, from which `recover` makes a database
    Snapshot(Snapshot),
    /// Make an ar16mt database from such a file; goes on where an earlier recovery ended
    Recover(Recover),
    /// Write, update and read many leaves, block by block, and check the whole database: zkSync's load test, for every tree
    Loadtest(Loadtest),
    /// Replay a chain under several trees, each in a process of its own, and put their figures next to each other
    Compare(Compare),
    /// Measure what single operations cost, each result checked before it is timed
    #[command(subcommand)]
    Bench(Bench),
    /// Modular arithmetic of 384 bits as EVM opcodes: run, measure, assemble
    Evm384 {
        /// What to do.
        #[command(subcommand)]
        word: Evm384,
    },
    /// Print shell completions
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// A store that keeps what is put into it.
fn parse_disk(name: &str) -> Result<StoreChoice, String> {
    let kept = StoreChoice::value_variants().iter();
    let kept = kept.filter(|store| **store != StoreChoice::Memory);
    let mut found = kept.clone().filter(|store| store.name() == name);
    found.next().copied().ok_or_else(|| {
        let names: Vec<&str> = kept.map(|store| store.name()).collect();
        format!(
            "stores on disk: {}; a load test in memory is asked for with -M",
            names.join(", ")
        )
    })
}

/// Threads: more than a machine has are of no use, and very many bring it down.
fn parse_threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok().filter(|threads| *threads <= 1024);
    threads.ok_or_else(|| format!("'{text}' is not a number up to 1024"))
}

fn parse_limits(text: &str) -> Result<Limits, String> {
    let limits = || {
        let (requests, latency) = text.split_once(':')?;
        let per_second = requests.parse().ok().filter(|requests| *requests > 0)?;
        let micros = latency
            .parse()
            .ok()
            .filter(|micros| *micros <= 10_000_000)?;
        let latency = Duration::from_micros(micros);
        Some(Limits {
            per_second,
            latency,
        })
    };
    let why = "is not REQUESTS:US, requests a second (at least 1) and the microseconds of each (at most 10 seconds)";
    limits().ok_or_else(|| format!("'{text}' {why}"))
}

fn parse_schedule(name: &str) -> Result<GasSchedule, String> {
    let named = GasSchedule::NAMED.into_iter();
    let mut found = named.filter(|(known, _)| *known == name);
    let (_, schedule) = found
        .next()
        .ok_or_else(|| format!("'{name}' is not draft, a or b"))?;
    Ok(schedule)
}

/// Where a database lies and how it is opened.
#[derive(Debug, Clone, Args)]
pub(crate) struct Database {
    /// Directory of the database
    #[arg(long, value_name = "DIR")]
    pub(crate) db: PathBuf,
    /// Memory for caches, write-back and tables together; the process, blocks on their way and merges of files take up to 100 MiB besides
    #[arg(long, value_name = "BYTES", default_value = "2GiB", value_parser = bytes::parse_memory)]
    pub(crate) memory: u64,
    /// Unflushed changes kept in memory before they are written; below 4 MiB merging the many small files takes more memory than that saves [default: a sixteenth of --memory, at least 4 MiB]
    #[arg(long, value_name = "BYTES", value_parser = bytes::parse)]
    pub(crate) write_back: Option<u64>,
}

/// `arbor replay`.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Exports, era1 files, or folders with chain.rlp[.gz] or *.era1 (and genesis.json)
    #[arg(value_name = "CHAIN", required_unless_present = "witness")]
    pub(crate) chain: Vec<PathBuf>,
    /// Replay blocks with their pre-state witnesses instead, without a database. They are judged by the rules of the network with their chain id, or of --genesis; seals and membership in the canonical chain are not checked. Exit code 3: a verdict is partial
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = [
        "chain", "db", "to", "tree", "tree_settings", "store", "write_back", "retain", "verify", "check_state", "roots", "blocks", "report",
        "failure_dump", "durable", "compact",
    ])]
    pub(crate) witness: Vec<PathBuf>,
    /// Take accounts that a witness cannot show as absent, as geth does; enough only if the header is trusted
    #[arg(long)]
    pub(crate) assume_absent: bool,
    /// Exit with 0, and not with 3, if no witness has a fault but a verdict is partial: the output names what was not checked
    #[arg(long)]
    pub(crate) accept_partial: bool,
    /// Directory of the database; made if absent
    #[arg(long, value_name = "DIR", required_unless_present_any = ["witness", "tree", "store"])]
    pub(crate) db: Option<PathBuf>,
    /// The tree that commits to the state; `none` executes alone, in memory, and needs no database [default: the database's; mpt for a
    /// new one]
    #[arg(long, value_name = "T", value_parser = trees::choice_parser())]
    pub(crate) tree: Option<TreeChoice>,
    /// How the tree is stored and computed, to measure the effect of each setting [default: as before; none, for a new database]
    #[arg(long, value_name = "WORD,...", value_delimiter = ',', value_parser = trees::parse_setting, long_help = tree_settings_help())]
    pub(crate) tree_settings: Vec<String>,
    /// Genesis in geth's JSON form, or the name of a network [default: genesis.json beside the chain]
    #[arg(long, value_name = "FILE|PRESET")]
    pub(crate) genesis: Option<String>,
    #[command(flatten)]
    pub(crate) rules: RuleFlags,
    /// Stop after this block
    #[arg(long, value_name = "BLOCK")]
    pub(crate) to: Option<u64>,
    /// Execute no block whose transactions may use more gas together: a hostile one would take too long
    #[arg(long, value_name = "GAS", default_value = "1000000000")]
    pub(crate) max_gas: u64,
    /// The store of a new database
    #[arg(long, value_name = "S", default_value = "fjall")]
    pub(crate) store: StoreChoice,
    /// Memory for caches, write-back and tables together; the process, blocks on their way and merges of files take up to 100 MiB besides
    #[arg(long, value_name = "BYTES", default_value = "2GiB", value_parser = bytes::parse_memory)]
    pub(crate) memory: u64,
    /// Unflushed changes kept in memory before they are written; below 4 MiB merging the many small files takes more memory than that saves [default: a sixteenth of --memory, at least 4 MiB]
    #[arg(long, value_name = "BYTES", value_parser = bytes::parse)]
    pub(crate) write_back: Option<u64>,
    /// Threads that decode blocks and recover senders; 1: one thread for everything, roots too [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = parse_threads)]
    pub(crate) threads: usize,
    /// History to keep: none, a number of versions, or all [default: as before; 128 for a new database]
    #[arg(long, value_name = "none|N|all", value_parser = parse_retain)]
    pub(crate) retain: Option<Retain>,
    /// State roots to compute and compare: every block's, or the last of each run of blocks that need not be retained
    #[arg(long, value_name = "every|last", default_value = "every")]
    pub(crate) verify: VerifyChoice,
    /// Write the root after each block to this file at the end, as `arbor roots` prints them
    #[arg(long, value_name = "FILE")]
    pub(crate) roots: Option<PathBuf>,
    /// Write a row for each block to this file, as comma-separated values: gas, times, delay of its root, bytes, memory
    #[arg(long, value_name = "FILE")]
    pub(crate) blocks: Option<PathBuf>,
    /// After every N-th block compute the Merkle-Patricia root from the flat tables alone, and compare it with the header
    #[arg(long, value_name = "N")]
    pub(crate) check_state: Option<NonZeroU64>,
    /// Write measurements here, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write what is known of a block that does not hold here, as JSON: field, receipts, state changes, touched nodes
    #[arg(long, value_name = "FILE")]
    pub(crate) failure_dump: Option<PathBuf>,
    /// Make every version durable before the next block
    #[arg(long)]
    pub(crate) durable: bool,
    /// Merge the store's files at the end, so that sizes are those of the contents
    #[arg(long)]
    pub(crate) compact: bool,
    /// Be as slow as a disk that takes so many requests a second, each of which lasts so many microseconds: to measure what a slow disk makes of a replay
    #[arg(long, value_name = "REQUESTS:US", value_parser = parse_limits, conflicts_with = "witness")]
    pub(crate) throttle: Option<Limits>,
}

fn tree_settings_help() -> String {
    format!(
        "How the tree is stored and computed, to measure the effect of each setting [default: as before; none, for a new database]{}",
        trees::settings_by_tree()
    )
}

impl Replay {
    /// Unflushed bytes kept in memory; none if the tree is to be written through.
    pub(crate) fn write_back(&self, tree: Option<&Tree>) -> u64 {
        let usual = match tree.is_some_and(|tree| tree.writes_through()) {
            true => 0,
            false => bytes::usual_write_back(self.memory),
        };
        self.write_back.unwrap_or(usual)
    }

    /// Threads, where `--threads` does not say: as many as rayon would start.
    pub(crate) fn thread_count(&self) -> usize {
        match self.threads {
            0 => rayon::current_num_threads(),
            threads => threads,
        }
    }
}

/// Rules that no genesis has.
#[derive(Debug, Clone, Args)]
pub(crate) struct RuleFlags {
    /// Charge gas for witnesses of a Verkle tree, as chains that have EIP-4762 do from their first block on [default: as before; not, for a new database]
    #[arg(long, value_name = "TEXT")]
    pub(crate) gas: Option<GasChoice>,
    /// Execute in EVM384's engine, with these opcodes switched on for all of the chain: v7, immediate, setmod or eip-6690 [default: as before]
    #[arg(long, value_name = "I")]
    pub(crate) evm384: Option<Interface>,
    /// What EVM384's operations cost: draft (3, 3, 6), a (2, 2, 6) or b (1, 1, 3)
    #[arg(long, value_name = "S", default_value = "draft", value_parser = parse_schedule, requires = "evm384")]
    pub(crate) evm384_schedule: GasSchedule,
}

/// Which state roots a replay computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyChoice {
    /// Every block's
    Every,
    /// One for each run of blocks of which no version is to be retained
    Last,
}

impl VerifyChoice {
    /// The name as given on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Every => "every",
            Self::Last => "last",
        }
    }
}

/// Texts of EIP-4762.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GasChoice {
    /// EIP-4762 since accounts have a leaf of basic data
    #[value(name = "eip4762")]
    Eip4762,
    /// As the testnets kaustinen-4 to kaustinen-6 charged it
    #[value(name = "kaustinen-6")]
    Kaustinen6,
}

impl GasChoice {
    /// Has a chain charge gas in that way.
    pub(crate) fn set(choice: Option<Self>, spec: &mut ChainSpec) {
        spec.set_witness_gas(choice.map(|choice| match choice {
            Self::Eip4762 => WitnessGas::Eip4762,
            Self::Kaustinen6 => WitnessGas::Kaustinen6,
        }));
    }
}

/// The stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreChoice {
    /// Files through fjall
    Fjall,
    /// Files through RocksDB
    #[cfg(feature = "rocksdb")]
    Rocksdb,
    /// Nothing on disk: gone at the end
    Memory,
}

impl StoreChoice {
    /// Its name on the command line and in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fjall => "fjall",
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => "rocksdb",
            Self::Memory => "memory",
        }
    }
}

/// `arbor status`.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Directory of the database
    #[arg(long, value_name = "DIR")]
    pub(crate) db: PathBuf,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `arbor get`.
#[derive(Debug, Args)]
pub(crate) struct Get {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The account
    pub(crate) address: Address,
    /// A slot of it: decimal or 0x-hex
    #[arg(value_parser = parse_slot)]
    pub(crate) slot: Option<U256>,
    /// Print its code
    #[arg(long, conflicts_with = "slot")]
    pub(crate) code: bool,
    /// At this retained block [default: the latest]
    #[arg(long, value_name = "BLOCK")]
    pub(crate) at: Option<u64>,
}

/// A slot's number. What parses it elsewhere takes nothing for zero, and knows other bases.
fn parse_slot(text: &str) -> Result<U256, String> {
    let (digits, base) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let number = match digits.chars().all(|digit| digit.is_digit(base)) && !digits.is_empty() {
        true => U256::from_str_radix(digits, base.into()).ok(),
        false => None,
    };
    number.ok_or_else(|| format!("'{text}' is no slot: decimal or 0x-hex, of 256 bits"))
}

/// `arbor roots`.
#[derive(Debug, Args)]
pub(crate) struct Roots {
    #[command(flatten)]
    pub(crate) database: Database,
    /// From this block on [default: the first]
    #[arg(
        long,
        value_name = "BLOCK",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub(crate) from: u64,
    /// To this block [default: the last]
    #[arg(long, value_name = "BLOCK", default_value_t = u64::MAX, hide_default_value = true)]
    pub(crate) to: u64,
    /// Print comma-separated values, with a line that names the columns
    #[arg(long)]
    pub(crate) csv: bool,
}

/// `arbor dump`.
#[derive(Debug, Args)]
pub(crate) struct Dump {
    #[command(flatten)]
    pub(crate) database: Database,
    /// At this retained block [default: the latest]
    #[arg(long, value_name = "BLOCK")]
    pub(crate) at: Option<u64>,
}

/// `arbor verify`.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) database: Database,
    /// Threads, which share the keys by ranges; 0 for all cores [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = parse_threads)]
    pub(crate) threads: usize,
}

/// `arbor repair`.
#[derive(Debug, Args)]
pub(crate) struct Repair {
    #[command(flatten)]
    pub(crate) database: Database,
    /// Take the store as it is though HEAD knows of a later version or another one: a copy from a backup
    #[arg(long)]
    pub(crate) accept_store: bool,
    /// Threads that check; 0 for all cores [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = parse_threads)]
    pub(crate) threads: usize,
}

/// `arbor rollback`.
#[derive(Debug, Args)]
pub(crate) struct Rollback {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The block to return to
    #[arg(long, value_name = "BLOCK")]
    pub(crate) to: u64,
}

/// `arbor prune`.
#[derive(Debug, Args)]
pub(crate) struct Prune {
    #[command(flatten)]
    pub(crate) database: Database,
    /// History to keep: none, or a number of versions
    #[arg(long, value_name = "none|N", value_parser = parse_retain)]
    pub(crate) retain: Retain,
}

/// `arbor snapshot`.
#[derive(Debug, Args)]
pub(crate) struct Snapshot {
    #[command(flatten)]
    pub(crate) database: Database,
    /// Where to write it: a new file
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// At this retained block [default: the latest]
    #[arg(long, value_name = "BLOCK")]
    pub(crate) at: Option<u64>,
    /// The order of the leaves
    #[arg(long, value_name = "O", default_value = "key")]
    pub(crate) order: OrderChoice,
    /// Leaves in a chunk, which is what a recovery takes in at a time
    #[arg(long, value_name = "LEAVES", default_value = "100000", value_parser = parse_chunk)]
    pub(crate) chunk_size: NonZeroUsize,
}

/// An order of leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderChoice {
    /// Ascending by key
    Key,
    /// As they came, which is at random among the keys; takes memory for all of them
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
pub(crate) struct Recover {
    #[command(flatten)]
    pub(crate) database: Database,
    /// What `arbor snapshot` wrote
    pub(crate) file: PathBuf,
    /// The root that it must have; without it, the one in the file, which is no better than whoever the file is from
    #[arg(long, value_name = "R")]
    pub(crate) root: Option<B256>,
    /// Genesis of the snapshot's chain, in geth's JSON form, or the name of a network: the root does not cover the one in the snapshot, which must be the same in every field [default: the known network's with its chain id, else the snapshot's]
    #[arg(long, value_name = "FILE|PRESET")]
    pub(crate) genesis: Option<String>,
    #[command(flatten)]
    pub(crate) rules: RuleFlags,
    /// The store of a new database, which has to keep it
    #[arg(long, value_name = "S", default_value = "fjall", value_parser = parse_disk)]
    pub(crate) store: StoreChoice,
    /// Threads; 0 for all cores [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = parse_threads)]
    pub(crate) threads: usize,
}

/// `arbor demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Folder for the chain, the database and the comparison of all trees
    #[arg(long, value_name = "DIR", default_value = "arbor-demo")]
    pub(crate) out: PathBuf,
}

/// `arbor generate`.
#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// Folder for chain.rlp and genesis.json; a generation cut short there is continued
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Settings to start from: tiny, demo or replay-500k
    #[arg(long, default_value = "demo")]
    pub(crate) preset: Preset,
    /// Same seed and settings, same chain
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Chain id of the genesis and of every transaction
    #[arg(long)]
    pub(crate) chain_id: Option<u64>,
    /// Number of blocks
    #[arg(long)]
    pub(crate) blocks: Option<u64>,
    /// Accounts funded at genesis, which send the transactions
    #[arg(long)]
    pub(crate) accounts: Option<u64>,
    /// Contracts with two slots each, besides: a large state, which `visit` transactions touch
    #[arg(long, value_name = "ACCOUNTS")]
    pub(crate) population: Option<u64>,
    /// Transactions in a block
    #[arg(long)]
    pub(crate) txs: Option<u64>,
    /// Gas limit of every block
    #[arg(long)]
    pub(crate) gas_limit: Option<u64>,
    /// Weights of the kinds of transaction: transfer, erc20, swap, create, wide, sparse, delete, visit
    #[arg(long, value_name = "KIND=W,...")]
    pub(crate) mix: Option<Mix>,
    /// Exponent of Zipf's law for the popularity of accounts and contracts; 0: all alike
    #[arg(long)]
    pub(crate) zipf: Option<f64>,
    /// Part of the transfers that go to an address never used before, 0 to 1
    #[arg(long)]
    pub(crate) new_accounts: Option<f64>,
    /// Write chain.rlp.gz
    #[arg(long)]
    pub(crate) gzip: bool,
}

/// History to keep, as it is written on the command line.
pub(crate) fn show_retain(retain: Retain) -> String {
    match retain {
        Retain::None => "none".into(),
        Retain::Last(versions) => versions.to_string(),
        Retain::All => "all".into(),
    }
}

pub(crate) fn parse_retain(text: &str) -> Result<Retain, String> {
    match text {
        "none" => Ok(Retain::None),
        "all" => Ok(Retain::All),
        number => number
            .parse()
            .map(Retain::Last)
            .map_err(|_| format!("'{text}' is not none, all or a number")),
    }
}

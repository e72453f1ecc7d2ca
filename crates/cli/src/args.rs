//! The words of the command line.

use arbor_chain::genesis::Population;
use arbor_state::{PartOf, Tree, TreeKind};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use alloy_primitives::{Address, U256};
use arbor_chain::genesis::WitnessGas;
use arbor_database::{Limits, StoreKind, parse_retain};
use arbor_evm384::{GasSchedule, Interface};
use arbor_generator::{Mix, Preset};
use arbor_versions::Retain;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::block_choice::BlockChoice;
use crate::bytes;
use crate::logging::LogFormat;
use crate::metrics_server;
use crate::names::{parse_address, parse_chain_block, parse_slot};
use crate::trees::{self, TreeChoice};

mod accesses;
mod bench;
mod compare;
mod convert;
mod evm384;
mod examples;
mod oracle;
mod preimages;
mod proofs;
mod serve;
mod upkeep;

pub(crate) use accesses::Accesses;
pub(crate) use bench::{
    Bench, BenchAblation, BenchCommitments, BenchDatabase, BenchEngine, BenchParallel, BenchReads,
    BenchSenders, BenchWitnesses, Loadtest, NumberingChoice,
};
pub(crate) use compare::Compare;
pub(crate) use convert::{Conversion, Convert, ConvertJoin, Joining};
pub(crate) use evm384::{
    Evm384, Evm384Asm, Evm384Bench, Evm384Call, Evm384Debug, Evm384Gas, Evm384Includes,
    Evm384Rules, Evm384Run, Evm384Text, Evm384Vectors, GoalChoice,
};
pub(crate) use oracle::{Diff, Oracle};
pub(crate) use preimages::{Preimages, PreimagesAudit, PreimagesExport, PreimagesImport};
pub(crate) use proofs::{Prove, VerifyProof, VerifyWitness, Witness, WitnessDiff, WitnessWord};
pub(crate) use serve::Serve;
pub(crate) use upkeep::{
    Backup, Compact, HistoryProofs, Inspect, OrderChoice, Prune, Recover, Repair, Rollback,
    Snapshot,
};

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
    version = crate::version::text(),
    propagate_version = true,
    max_term_width = 110,
    verbatim_doc_comment,
    after_help = EXIT_CODES
)]
pub(crate) struct Arbor {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// More log lines on standard error: -v info, -vv debug, -vvv all. RUST_LOG overrides it
    #[arg(short, long, action = clap::ArgAction::Count, global = true, help_heading = LOGGING)]
    pub(crate) verbose: u8,
    /// The form of log lines
    #[arg(long, value_name = "F", default_value = "text", global = true, help_heading = LOGGING)]
    pub(crate) log_format: LogFormat,
}

/// Headings of flags.
const DATABASE: &str = "Database";
const HISTORY: &str = "History";
const LOGGING: &str = "Log";
const MOVE: &str = "Another tree";
const NODE: &str = "A node";
const OUTPUT: &str = "Output";
const RESOURCES: &str = "Resources";
const RULES: &str = "Rules of the chain";
const CHECKS: &str = "Checks";
const WITNESSES: &str = "Blocks with witnesses";

/// What `arbor` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a small chain, replay it, query it, and compare all trees on it: a first look
    Demo(Demo),
    /// Make a valid chain and its genesis; the same settings make the same chain
    Generate(Generate),
    /// Import, execute and verify blocks, from the latest block of the database on
    Replay(Box<Replay>),
    /// Describe a database: tree, chain, size, latest block, retained blocks
    Status(Status),
    /// Print an account, a slot or code, now or at a retained block
    Get(Get),
    /// Print the whole state as JSON lines in geth's dump format
    Dump(Dump),
    /// Print the root after each retained block, or after every block if headers do not carry the tree's roots
    Roots(Roots),
    /// Print the root of a state (genesis, dump, database), and every leaf with what it stands for if the tree lists them
    Oracle(Oracle),
    /// Compare two lists of leaves, or two databases, and name the leaves that differ
    Diff(Diff),
    /// Prove an account and slots, present or absent, in the form of the database's tree (eth_getProof for mpt)
    Prove(Prove),
    /// Check a proof against a state root
    VerifyProof(VerifyProof),
    /// Write the complete pre-state witness of a block, or of each block of a range
    Witness(Witness),
    /// Check witnesses against their roots without executing the blocks. A false witness does not stop the check of the others
    ///
    /// Of a witness of leaves (Verkle), the proof and the root after the block are checked. Of a witness of nodes, hashes are checked, the
    /// chain of headers, and which nodes and codes the state root leads to. A witness that lacks something that the block needs passes.
    /// `arbor replay --witness` executes the block, and finds that
    VerifyWitness(VerifyWitness),
    /// Check the whole database: nodes against the flat state, and the root against the latest block's
    Verify(Verify),
    /// Restore a lost or damaged HEAD file, after a check of the whole database
    Repair(Repair),
    /// Return to an earlier retained block
    Rollback(Rollback),
    /// Delete history, that is, the states of earlier blocks
    Prune(Prune),
    /// Copy a whole database into a new folder, also while another process writes it, and check the copy
    Backup(Backup),
    /// Keep the nodes of all retained states, so that proofs of them are look-ups, or drop them
    HistoryProofs(HistoryProofs),
    /// Merge the store's files, which frees the space of deleted records
    Compact(Compact),
    /// Serve a database over JSON-RPC: states, proofs, calls and, with the chain's files, blocks
    Serve(Box<Serve>),
    /// Count the records, nodes, slots, codes and history of a database
    Inspect(Inspect),
    /// Convert a whole state into a database with another tree
    Convert(Convert),
    /// Addresses and slot numbers behind hashed keys: check that none is missing, write them to a file, sort files of them
    #[command(subcommand, after_help = examples::PREIMAGES)]
    Preimages(Preimages),
    /// Write a whole state into a file for `recover` and `convert`: all accounts, or all leaves of an ar16mt database
    Snapshot(Snapshot),
    /// Make a database from a file of `snapshot`, or continue an interrupted recovery
    Recover(Recover),
    /// Write, change and read many random leaves, block by block, and check the database: zkSync's load test, for every tree
    Loadtest(Loadtest),
    /// Replay a chain under several trees, and compare their figures in a table, in files and on a page
    Compare(Compare),
    /// Write what each block of a chain reads and changes into Parquet files: accounts, slots, chunks of code, sizes of witnesses
    Accesses(Accesses),
    /// Measure single operations. Each result is checked before it is timed
    #[command(subcommand, after_help = examples::BENCH)]
    Bench(Bench),
    /// Run, measure and assemble contracts with 384-bit modular arithmetic as EVM opcodes
    #[command(after_help = examples::EVM384)]
    Evm384 {
        /// What to do.
        #[command(subcommand)]
        word: Evm384,
    },
    /// Write the man pages of all commands into a folder
    Man(Man),
    /// Print shell completions
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Forgets the database that ARBOR_DB names, if the command line asks for work without one.
    pub(crate) fn ignore_unused_environment(&mut self) {
        let named = std::env::var_os(DB_VARIABLE).map(PathBuf::from);
        if let Self::Witness(witness) = self
            && witness.rpc.is_some()
            && witness.db == named
        {
            witness.db = None;
        }
        if let Self::Replay(replay) = self {
            let without = !replay.witness.is_empty()
                || matches!(replay.tree, Some(TreeChoice::None))
                || replay.store == StoreKind::Memory;
            if without && replay.db == named {
                replay.db = None;
            }
        }
    }
}

/// Names the database of commands without `--db`.
const DB_VARIABLE: &str = "ARBOR_DB";
/// Gives the memory of commands without `--memory`.
pub(crate) const MEMORY_VARIABLE: &str = "ARBOR_MEMORY";

/// `arbor man`.
#[derive(Debug, Args)]
#[command(after_help = examples::MAN)]
pub(crate) struct Man {
    /// Folder for the pages, a file for each command
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// Parses the name of a store.
fn store_parser() -> impl TypedValueParser<Value = StoreKind> {
    let values = StoreKind::ALL.iter();
    let values = values.map(|store| PossibleValue::new(store.name()).help(store.summary()));
    PossibleValuesParser::new(values.collect::<Vec<_>>()).map(|name| {
        let mut stores = StoreKind::ALL.iter();
        let found = stores.find(|store| store.name() == name);
        *found.expect("invariant: it is one of them")
    })
}

/// A store that keeps what is put into it.
fn parse_disk(name: &str) -> Result<StoreKind, String> {
    let kept = StoreKind::ALL.iter();
    let kept = kept.filter(|store| **store != StoreKind::Memory);
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
    /// Folder of the database
    #[arg(long, value_name = "DIR", env = DB_VARIABLE, help_heading = DATABASE)]
    pub(crate) db: PathBuf,
    /// Memory for caches, write-back and tables together. The process, blocks under way and merges of files take up to 100 MiB on top
    #[arg(long, value_name = "BYTES", default_value = "2GiB", env = MEMORY_VARIABLE, value_parser = bytes::parse_memory, help_heading = DATABASE)]
    pub(crate) memory: u64,
    /// Unflushed changes kept in memory before they are written. Below 4 MiB, merging the many small files takes more memory than this saves [default: a sixteenth of --memory, at least 4 MiB]
    #[arg(long, value_name = "BYTES", value_parser = bytes::parse, help_heading = DATABASE)]
    pub(crate) write_back: Option<u64>,
}

/// `arbor replay`.
///
/// Replays go on from the latest block of the database. Every header field is verified.
#[derive(Debug, Args)]
#[command(after_help = examples::REPLAY)]
pub(crate) struct Replay {
    /// The blocks: exports of geth (`geth export`), era1 files, or folders with chain.rlp[.gz] or *.era1 (and genesis.json)
    #[arg(value_name = "CHAIN", required_unless_present_any = ["witness", "rpc", "convert_abort"])]
    pub(crate) chain: Vec<PathBuf>,
    /// Take the blocks from a node, and follow its head: other branches are taken as far back as --retain keeps states. It ends with --to, or when it is asked to stop
    #[arg(long, value_name = "URL", conflicts_with_all = ["chain", "witness"], help_heading = NODE)]
    pub(crate) rpc: Option<String>,
    /// Replay blocks with their pre-state witnesses instead, without a database. The rules are those of the network with the chain id, or of --genesis. Seals and membership in the canonical chain are not checked. Exit code 3: a verdict is partial
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = WITNESSES, conflicts_with_all = [
        "chain", "to", "tree", "hash", "tree_settings", "store", "write_back", "retain", "verify", "check_state", "roots", "blocks", "report",
        "failure_dump", "durable", "compact", "history_proofs",
    ])]
    pub(crate) witness: Vec<PathBuf>,
    /// The chain with the blocks of witnesses that have none, such as answers of debug_executionWitness: exports, era1 files, or folders with them
    #[arg(long, value_name = "CHAIN", num_args = 1.., requires = "witness", help_heading = WITNESSES)]
    pub(crate) witness_chain: Vec<PathBuf>,
    /// Take accounts that a witness cannot show as absent, as geth does. Use it only if the header is trusted
    #[arg(long, help_heading = WITNESSES)]
    pub(crate) assume_absent: bool,
    /// Exit with 0 instead of 3 if no witness has a fault but a verdict is partial. The output names the missing checks
    #[arg(long, help_heading = WITNESSES)]
    pub(crate) accept_partial: bool,
    /// Folder of the database, which is made if it is absent
    #[arg(long, value_name = "DIR", env = DB_VARIABLE, required_unless_present_any = ["witness", "tree", "store"], help_heading = DATABASE)]
    pub(crate) db: Option<PathBuf>,
    /// The tree that commits to the state. `none` only executes, in memory, without a database [default: the database's; mpt for a new one]
    #[arg(long, value_name = "T", value_parser = trees::choice_parser(), help_heading = DATABASE)]
    pub(crate) tree: Option<TreeChoice>,
    /// Hash function of a new database's tree, if the tree lets choose [default: the database's; the tree's usual one, for a new database]
    #[arg(long, value_name = "HASH", value_parser = trees::hash_parser(), help_heading = DATABASE)]
    pub(crate) hash: Option<String>,
    /// How the tree is stored and computed, to measure the effect of each setting [default: as before; none, for a new database]
    #[arg(long, value_name = "WORD,...", value_delimiter = ',', value_parser = trees::parse_setting, long_help = tree_settings_help(), help_heading = DATABASE)]
    pub(crate) tree_settings: Vec<String>,
    /// Genesis in geth's JSON form, or the name of a network (mainnet, sepolia, holesky or hoodi) [default: genesis.json next to the chain]
    #[arg(long, value_name = "FILE|PRESET", help_heading = RULES)]
    pub(crate) genesis: Option<String>,
    #[command(flatten)]
    pub(crate) rules: RuleFlags,
    /// Stop after this block
    #[arg(long, value_name = "BLOCK", value_parser = parse_chain_block)]
    pub(crate) to: Option<u64>,
    /// Refuse a block whose transactions may use more gas than this: a hostile block would take too long
    #[arg(long, value_name = "GAS", default_value = "1000000000", help_heading = CHECKS)]
    pub(crate) max_gas: u64,
    /// The store of a new database
    #[arg(long, value_name = "S", default_value = "fjall", value_parser = store_parser(), help_heading = DATABASE)]
    pub(crate) store: StoreKind,
    /// Memory for caches, write-back and tables together. The process, blocks under way and merges of files take up to 100 MiB on top
    #[arg(long, value_name = "BYTES", default_value = "2GiB", env = MEMORY_VARIABLE, value_parser = bytes::parse_memory, help_heading = RESOURCES)]
    pub(crate) memory: u64,
    /// Unflushed changes kept in memory before they are written. Below 4 MiB, merging the many small files takes more memory than this saves [default: a sixteenth of --memory, at least 4 MiB]
    #[arg(long, value_name = "BYTES", value_parser = bytes::parse, help_heading = RESOURCES)]
    pub(crate) write_back: Option<u64>,
    /// Threads that decode blocks and recover senders. With 1, one thread does everything, roots and flushes included, and counts are the same in every run [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = parse_threads, help_heading = RESOURCES)]
    pub(crate) threads: usize,
    /// History to keep: none, a number of versions, or all [default: as before; 128 for a new database]
    #[arg(long, value_name = "none|N|all", value_parser = parse_retain, help_heading = HISTORY)]
    pub(crate) retain: Option<Retain>,
    /// Keep the nodes of the states from the latest on, too, so that their proofs are look-ups. A database that keeps them goes on to; `arbor history-proofs` ends it, and makes those of before
    #[arg(long, help_heading = HISTORY)]
    pub(crate) history_proofs: bool,
    /// State roots to compute. A computed root is compared with the header's, if headers carry the tree's roots
    #[arg(long, value_name = "every|last", default_value = "every", help_heading = CHECKS)]
    pub(crate) verify: VerifyChoice,
    /// Write the root after each block to this file at the end, as `arbor roots` prints them
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) roots: Option<PathBuf>,
    /// Write a row for each block to this file, as comma-separated values: gas, times, delay of its root, bytes, memory
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) blocks: Option<PathBuf>,
    /// After every N-th block, compute the Merkle-Patricia root of the flat tables alone and compare it with the header
    #[arg(long, value_name = "N", help_heading = CHECKS)]
    pub(crate) check_state: Option<NonZeroU64>,
    /// Write measurements to this file, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) report: Option<PathBuf>,
    /// Write what is known of an invalid block to this file, as JSON: field, receipts, state changes, touched nodes
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) failure_dump: Option<PathBuf>,
    /// Make every version durable before the next block
    #[arg(long, help_heading = HISTORY)]
    pub(crate) durable: bool,
    /// Merge the store's files at the end, so that sizes are those of the contents
    #[arg(long, help_heading = HISTORY)]
    pub(crate) compact: bool,
    /// Move the state to this tree while blocks go on: from block --at on the tree so far stands still, each block moves --stride accounts and slots, and what blocks write goes to the new
    /// tree. Later replays of the database go on with it
    #[arg(long, value_name = "T", value_parser = trees::tree_parser(), requires_all = ["at", "stride"], conflicts_with = "witness", help_heading = MOVE)]
    pub(crate) convert_to: Option<&'static TreeKind>,
    /// Hash function of the tree that the state moves to, if the tree lets choose [default: the tree's usual one]
    #[arg(long, value_name = "HASH", value_parser = trees::hash_parser(), requires = "convert_to", help_heading = MOVE)]
    pub(crate) convert_hash: Option<String>,
    /// The first block that moves something
    #[arg(long, value_name = "BLOCK", value_parser = parse_chain_block, requires = "convert_to", help_heading = MOVE)]
    pub(crate) at: Option<u64>,
    /// Accounts and slots that a block moves; an account comes with its code
    #[arg(long, value_name = "N", requires = "convert_to", help_heading = MOVE)]
    pub(crate) stride: Option<NonZeroU64>,
    /// Give up the move: go back to the block before its first one, which must still be retained, and drop the new tree. Nothing is replayed
    #[arg(long, conflicts_with_all = ["chain", "rpc", "witness", "convert_to", "to", "report", "blocks", "roots", "json"], requires = "db", help_heading = MOVE)]
    pub(crate) convert_abort: bool,
    /// Slow the store down to a disk with this many requests a second, each of which takes this many microseconds
    #[arg(long, value_name = "REQUESTS:US", value_parser = parse_limits, conflicts_with = "witness", help_heading = RESOURCES)]
    pub(crate) throttle: Option<Limits>,
    /// Print the report as JSON instead of the summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve metrics for Prometheus at this address. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Serve each version over JSON-RPC as it is committed, at this address, until the replay ends. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, conflicts_with = "witness", help_heading = OUTPUT)]
    pub(crate) serve: Option<SocketAddr>,
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
            false => arbor_database::usual_write_back(self.memory),
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
    /// Charge gas for what transactions add to a block's witness (EIP-4762), from the first block on [default: as before; off for a new database]
    #[arg(long, value_name = "TEXT", value_parser = gas_parser(), help_heading = RULES)]
    pub(crate) gas: Option<WitnessGas>,
    /// Execute in EVM384's engine with these opcodes, from the first block on: v7, immediate, setmod or eip-6690 [default: as before]
    #[arg(long, value_name = "I", help_heading = RULES)]
    pub(crate) evm384: Option<Interface>,
    /// Gas of EVM384's operations (add, subtract, multiply): draft (3, 3, 6), a (2, 2, 6) or b (1, 1, 3)
    #[arg(long, value_name = "S", default_value = "draft", value_parser = parse_schedule, requires = "evm384", help_heading = RULES)]
    pub(crate) evm384_schedule: GasSchedule,
}

/// Which state roots a replay computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyChoice {
    /// The root of every block
    Every,
    /// One root for up to 64 blocks together, as long as their versions are not retained; for trees that forget cleared slots
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

/// Parses the name of a text of EIP-4762.
fn gas_parser() -> impl TypedValueParser<Value = WitnessGas> {
    let values = WitnessGas::ALL.map(|text| {
        PossibleValue::new(text.name()).help(match text {
            WitnessGas::Eip4762 => {
                "The present text of EIP-4762, for accounts with a leaf of basic data"
            }
            WitnessGas::Kaustinen6 => {
                "The text that the testnets kaustinen-4 to kaustinen-6 followed"
            }
        })
    });
    PossibleValuesParser::new(values).map(|name| {
        let found = WitnessGas::from_name(&name);
        found.expect("invariant: it is one of them")
    })
}

/// `arbor status`.
#[derive(Debug, Args)]
#[command(after_help = examples::STATUS)]
pub(crate) struct Status {
    /// Folder of the database
    #[arg(long, value_name = "DIR", env = DB_VARIABLE, help_heading = DATABASE)]
    pub(crate) db: PathBuf,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `arbor get`.
#[derive(Debug, Args)]
#[command(after_help = examples::GET)]
pub(crate) struct Get {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The account
    #[arg(value_parser = parse_address)]
    pub(crate) address: Address,
    /// A slot of the account: decimal or 0x-hex
    #[arg(value_parser = parse_slot)]
    pub(crate) slot: Option<U256>,
    /// Print the account's code
    #[arg(long, conflicts_with = "slot")]
    pub(crate) code: bool,
    /// At this retained block: a number, a hash, 'latest', or -N for N blocks before the latest
    #[arg(long, value_name = "BLOCK", default_value = "latest", value_parser = BlockChoice::parse, allow_hyphen_values = true)]
    pub(crate) at: BlockChoice,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `arbor roots`.
#[derive(Debug, Args)]
#[command(after_help = examples::ROOTS)]
pub(crate) struct Roots {
    #[command(flatten)]
    pub(crate) database: Database,
    /// From this block on: a number, a hash, or -N for N blocks before the latest
    #[arg(long, value_name = "BLOCK", default_value = "0", value_parser = BlockChoice::parse, allow_hyphen_values = true)]
    pub(crate) from: BlockChoice,
    /// To this block: a number, a hash, or -N for N blocks before the latest
    #[arg(long, value_name = "BLOCK", default_value = "latest", value_parser = BlockChoice::parse, allow_hyphen_values = true)]
    pub(crate) to: BlockChoice,
    /// Print comma-separated values, with a line that names the columns
    #[arg(long)]
    pub(crate) csv: bool,
    /// Print a JSON object for each block, a line each
    #[arg(long, conflicts_with = "csv", help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `arbor dump`.
#[derive(Debug, Args)]
#[command(after_help = examples::DUMP)]
pub(crate) struct Dump {
    #[command(flatten)]
    pub(crate) database: Database,
    /// At this retained block: a number, a hash, 'latest', or -N for N blocks before the latest
    #[arg(long, value_name = "BLOCK", default_value = "latest", value_parser = BlockChoice::parse, allow_hyphen_values = true)]
    pub(crate) at: BlockChoice,
    /// Accepted like everywhere else: the output is JSON with or without it
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Serve metrics for Prometheus at this address. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", value_parser = metrics_server::parse_address, help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
}

/// `arbor verify`.
#[derive(Debug, Args)]
#[command(after_help = examples::VERIFY)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) database: Database,
    /// Check one part only: the I-th of N ranges of keys. --join checks what all N parts together must give
    #[arg(long, value_name = "I/N", value_parser = |text: &str| text.parse::<PartOf>(), requires = "to")]
    pub(crate) part: Option<PartOf>,
    /// File for the results of the part
    #[arg(long, value_name = "FILE", requires = "part", help_heading = OUTPUT)]
    pub(crate) to: Option<PathBuf>,
    /// Join the results of all parts, which these files have, and check the root and the history
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "part")]
    pub(crate) join: Vec<PathBuf>,
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

/// `arbor demo`.
#[derive(Debug, Args)]
#[command(after_help = examples::DEMO)]
pub(crate) struct Demo {
    /// Folder for the chain, the database and the comparison of all trees
    #[arg(long, value_name = "DIR", default_value = "arbor-demo")]
    pub(crate) out: PathBuf,
    /// Print the results of the demo's commands as JSON, one after another
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// The size of a large state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StateSize {
    /// Accounts with two slots each.
    pub(crate) accounts: u64,
    /// Slots of one of them, a large contract; 0 if there is none.
    pub(crate) contract: u64,
}

/// Parses the size of a state.
fn parse_state(text: &str) -> Result<StateSize, String> {
    let (mut accounts, mut contract) = (None, None);
    for part in text.split(',') {
        let (place, number) = match part.split_once('=') {
            Some(("accounts", number)) => (&mut accounts, number),
            Some(("contract", number)) => (&mut contract, number),
            Some(("slots", "2")) => continue,
            Some(("slots", _)) => return Err("accounts have two slots each: slots=2".to_owned()),
            _ => return Err(format!("'{part}' is not accounts=N, slots=2 or contract=N")),
        };
        if place.replace(parse_many(number)?).is_some() {
            let (name, _) = part.split_once('=').unwrap_or_default();
            return Err(format!("{name}=N is there twice"));
        }
    }
    let most = Population::MOST_SLOTS;
    match (accounts, contract.unwrap_or_default()) {
        (None, _) => Err("accounts=N is missing".to_owned()),
        (_, slots) if slots > most => Err(format!("contract={slots} is above {most}")),
        (Some(accounts), contract) => Ok(StateSize { accounts, contract }),
    }
}

/// Parses a number such as 5000, 20K, 20M or 1G.
fn parse_many(text: &str) -> Result<u64, String> {
    let units = [('K', 1_000), ('M', 1_000_000), ('G', 1_000_000_000)];
    let mut units = units.iter();
    let unit = units.find_map(|(unit, times)| Some((text.strip_suffix(*unit)?, *times)));
    let (digits, times) = unit.unwrap_or((text, 1));
    let number: Option<u64> = digits.parse().ok().filter(|number| *number > 0);
    let number = number.and_then(|number: u64| number.checked_mul(times));
    let most = u64::from(u32::MAX);
    number
        .filter(|number| *number <= most)
        .ok_or_else(|| format!("'{text}' is not a number from 1 to {most}, such as 20M"))
}

/// `arbor generate`.
#[derive(Debug, Args)]
#[command(after_help = examples::GENERATE)]
pub(crate) struct Generate {
    /// Folder for chain.rlp and genesis.json. If a generation was interrupted there, the command continues it
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Settings to start from: tiny, demo or replay-500k. Other flags change single settings
    #[arg(long, default_value = "demo")]
    pub(crate) preset: Preset,
    /// Seed of all random choices: the same seed and settings make the same chain
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
    /// Additional contracts with two slots each, for a large state. `visit` transactions read and write them
    #[arg(long, value_name = "ACCOUNTS")]
    pub(crate) population: Option<u64>,
    /// Make chains over a large state instead, one for each workload of `arbor compare --state`: read, write, mixed and erc20. The state has N accounts with two slots each. With contract=M one of them has M slots, and every second transaction of read, write and mixed goes to it. K, M and G stand for thousands, millions and thousands of millions. What it needs of the disk is said first
    #[arg(long, value_name = "accounts=N[,slots=2][,contract=M]", value_parser = parse_state, conflicts_with_all = ["preset", "population", "mix", "zipf", "new_accounts", "gzip"])]
    pub(crate) state: Option<StateSize>,
    /// Transactions in a block
    #[arg(long)]
    pub(crate) txs: Option<u64>,
    /// Gas limit of every block
    #[arg(long)]
    pub(crate) gas_limit: Option<u64>,
    /// Weights of the kinds of transaction: transfer, erc20, swap, create, wide, sparse, delete, visit
    #[arg(long, value_name = "KIND=W,...")]
    pub(crate) mix: Option<Mix>,
    /// Exponent of Zipf's law for the choice of accounts and contracts. With 0, all are chosen equally often
    #[arg(long)]
    pub(crate) zipf: Option<f64>,
    /// Share of the transfers that go to a new address, 0 to 1
    #[arg(long)]
    pub(crate) new_accounts: Option<f64>,
    /// Write chain.rlp.gz
    #[arg(long)]
    pub(crate) gzip: bool,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

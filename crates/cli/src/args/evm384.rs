//! `arbor evm384` and its commands.

use std::path::PathBuf;

use alloy_primitives::Bytes;
use arbor_evm384::{AMPLE_GAS, GasSchedule, Interface};
use clap::{Args, Subcommand, ValueEnum};

use super::{OUTPUT, examples, parse_schedule};

/// `arbor evm384`.
#[derive(Debug, Subcommand)]
pub(crate) enum Evm384 {
    /// Call a contract and print what it returns and the gas it takes
    Run(Evm384Run),
    /// Print a built-in contract's routines with their operations, gas and size
    Gas(Evm384Gas),
    /// Time the built-in contracts: in revm's interpreter, in the engine, and by the precompile
    Bench(Evm384Bench),
    /// Turn text into code, printed as hex
    Asm(Evm384Asm),
    /// Turn code, in hex, into text
    Disasm(Evm384Text),
    /// Execute step by step, by commands on standard input: `help` lists them
    Debug(Evm384Debug),
    /// Print cases for other implementers, as JSON: code, calldata and what comes of them
    Vectors(Evm384Vectors),
}

/// The help of the built-in contracts' names, and what else may stand in their place.
macro_rules! contracts {
    ($more:literal) => {
        concat!(
            "miller-loop, final-exponentiation, pairing, pairing-check, pairing-words, pairing-check-words (without EVM384), g1-add, g2-add, g1-msm, g2-msm, g2-map, bls-verify, polynomial-FIELD (FIELD is bls12-381, bls12-377, bn254, bn254-scalars or banderwagon), poseidon, bls12-377-mul, bn254-mul, bn254-mul-words, sha1, pedersen-verify, ipa-verify, multiproof-verify",
            $more
        )
    };
}

/// The rules that a contract runs under.
#[derive(Debug, Args)]
pub(crate) struct Evm384Rules {
    /// The form of the operations: v7, immediate, setmod or eip-6690
    #[arg(long, value_name = "I", default_value = "v7")]
    pub(crate) interface: Interface,
    /// What operations cost: draft (3, 3, 6), a (2, 2, 6) or b (1, 1, 3)
    #[arg(long, value_name = "S", default_value = "draft", value_parser = parse_schedule)]
    pub(crate) schedule: GasSchedule,
    /// What the built-in contracts are short of
    #[arg(long, value_name = "G", default_value = "time")]
    pub(crate) goal: GoalChoice,
}

/// What a pairing contract is short of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GoalChoice {
    /// Time
    Time,
    /// Gas, by model A
    Gas,
}

/// The most gas that a call of `arbor evm384` may have: its memory then stays below 200 MB.
const MAX_GAS: u64 = 1 << 36;

/// How a contract is called.
#[derive(Debug, Args)]
pub(crate) struct Evm384Call {
    #[command(flatten)]
    pub(crate) rules: Evm384Rules,
    /// Calldata in hex [default: that of the built-in contract's sample, else none]
    #[arg(long, value_name = "HEX")]
    pub(crate) calldata: Option<Bytes>,
    /// Gas for the call, of which no transaction takes its share
    #[arg(long, value_name = "N", default_value_t = AMPLE_GAS, value_parser = clap::value_parser!(u64).range(..=MAX_GAS))]
    pub(crate) gas: u64,
}

/// `arbor evm384 run`.
#[derive(Debug, Args)]
#[command(after_help = examples::EVM384_RUN)]
pub(crate) struct Evm384Run {
    #[arg(value_name = "CONTRACT", help = contracts!(", or a file with code in hex; `-` reads standard input"))]
    pub(crate) contract: String,
    #[command(flatten)]
    pub(crate) call: Evm384Call,
    /// Interpret instruction by instruction, without the engine
    #[arg(long)]
    pub(crate) no_engine: bool,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `arbor evm384 debug`.
#[derive(Debug, Args)]
#[command(after_help = examples::EVM384_DEBUG)]
pub(crate) struct Evm384Debug {
    #[arg(value_name = "CONTRACT", help = contracts!(", or a file with text for `arbor evm384 asm`, or with code in hex; commands come from standard input, so `-` is no file here"))]
    pub(crate) contract: String,
    #[command(flatten)]
    pub(crate) call: Evm384Call,
    #[command(flatten)]
    pub(crate) includes: Evm384Includes,
}

/// The files that a program may include.
#[derive(Debug, Args)]
pub(crate) struct Evm384Includes {
    /// Let `include` read files outside the program's folder, too
    #[arg(long)]
    pub(crate) include_outside: bool,
}

/// `arbor evm384 gas`.
#[derive(Debug, Args)]
#[command(after_help = examples::EVM384_GAS)]
pub(crate) struct Evm384Gas {
    #[arg(value_name = "CONTRACT", help = contracts!(""))]
    pub(crate) contract: String,
    #[command(flatten)]
    pub(crate) rules: Evm384Rules,
    /// Write its code here, in hex
    #[arg(long, value_name = "FILE")]
    pub(crate) code: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `arbor evm384 bench`.
#[derive(Debug, Args)]
#[command(after_help = examples::EVM384_BENCH)]
pub(crate) struct Evm384Bench {
    /// Rounds, in each of which everything runs once; the fastest counts
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) rounds: u32,
    /// Write measurements here, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// `arbor evm384 asm`.
#[derive(Debug, Args)]
#[command(after_help = examples::EVM384_ASM)]
pub(crate) struct Evm384Asm {
    #[command(flatten)]
    pub(crate) text: Evm384Text,
    #[command(flatten)]
    pub(crate) includes: Evm384Includes,
    /// Write the source map here, as JSON: for each instruction its position, file, line, column and macros; and slots
    #[arg(long, value_name = "FILE")]
    pub(crate) map: Option<PathBuf>,
}

/// `arbor evm384 vectors`.
#[derive(Debug, Args)]
#[command(after_help = examples::EVM384_VECTORS)]
pub(crate) struct Evm384Vectors {
    /// Only those of this interface: v7, immediate, setmod or eip-6690
    #[arg(long, value_name = "I")]
    pub(crate) interface: Option<Interface>,
    /// What operations cost: draft (3, 3, 6), a (2, 2, 6) or b (1, 1, 3)
    #[arg(long, value_name = "S", default_value = "draft", value_parser = parse_schedule)]
    pub(crate) schedule: GasSchedule,
}

/// `arbor evm384 asm` and `disasm`.
#[derive(Debug, Args)]
#[command(after_help = examples::EVM384_DISASM)]
pub(crate) struct Evm384Text {
    /// The file; `-` reads standard input
    pub(crate) file: PathBuf,
    /// The form of the operations: v7, immediate, setmod or eip-6690
    #[arg(long, value_name = "I", default_value = "v7")]
    pub(crate) interface: Interface,
}

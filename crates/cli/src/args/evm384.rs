//! `arbor evm384` and its commands.

use std::path::PathBuf;

use alloy_primitives::Bytes;
use arbor_evm384::{GasSchedule, Interface};
use arbor_evm384_programs::AMPLE_GAS;
use clap::{Args, Subcommand, ValueEnum};

use super::{OUTPUT, examples, parse_schedule};

/// `arbor evm384`.
#[derive(Debug, Subcommand)]
pub(crate) enum Evm384 {
    /// Call a contract, and print its output and gas
    Run(Evm384Run),
    /// Print the operations, the gas and the size of a built-in contract's routines
    Gas(Evm384Gas),
    /// Measure the pairing contracts in revm's interpreter, in EVM384's engine, and as a precompile
    Bench(Evm384Bench),
    /// Assemble a program, and print its code in hex
    Asm(Evm384Asm),
    /// Print code that is given in hex as a program
    Disasm(Evm384Text),
    /// Execute a program step by step. Commands come from standard input; `help` lists them
    Debug(Evm384Debug),
    /// Print test cases for other implementations, as JSON: code, calldata, and the expected result
    Vectors(Evm384Vectors),
}

/// The help of the built-in contracts' names, and what else may stand in their place.
macro_rules! contracts {
    ($more:literal) => {
        concat!(
            "A built-in contract: miller-loop, final-exponentiation, pairing, pairing-check, pairing-words, pairing-check-words (without EVM384), g1-add, g2-add, g1-msm, g2-msm, g2-map, bls-verify, polynomial-FIELD (FIELD is bls12-381, bls12-377, bn254, bn254-scalars or banderwagon), poseidon, bls12-377-mul, bn254-mul, bn254-mul-words, sha1, pedersen-verify, ipa-verify, multiproof-verify",
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
    /// Gas of an addition, a subtraction and a multiplication: draft (3, 3, 6), a (2, 2, 6) or b (1, 1, 3)
    #[arg(long, value_name = "S", default_value = "draft", value_parser = parse_schedule)]
    pub(crate) schedule: GasSchedule,
    /// Optimise the built-in contracts for time or for gas
    #[arg(long, value_name = "G", default_value = "time")]
    pub(crate) goal: GoalChoice,
}

/// What a built-in contract is optimised for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GoalChoice {
    /// The time of execution
    Time,
    /// Gas, by the prices of schedule a
    Gas,
}

/// The most gas that a call of `arbor evm384` may have: its memory then stays below 200 MB.
const MAX_GAS: u64 = 1 << 36;

/// How a contract is called.
#[derive(Debug, Args)]
pub(crate) struct Evm384Call {
    #[command(flatten)]
    pub(crate) rules: Evm384Rules,
    /// Calldata in hex [default: the sample of the built-in contract; none for a file]
    #[arg(long, value_name = "HEX")]
    pub(crate) calldata: Option<Bytes>,
    /// Gas for the call. The intrinsic gas of a transaction is not taken from it
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
    /// Use revm's interpreter instead of EVM384's engine
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
    #[arg(value_name = "CONTRACT", help = contracts!(", or a file with text for `arbor evm384 asm`, or with code in hex; standard input has the commands, so `-` is not taken for it"))]
    pub(crate) contract: String,
    #[command(flatten)]
    pub(crate) call: Evm384Call,
    #[command(flatten)]
    pub(crate) includes: Evm384Includes,
}

/// The files that a program may include.
#[derive(Debug, Args)]
pub(crate) struct Evm384Includes {
    /// Allow `include` to read files outside the program's folder
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
    /// Write the contract's code to this file, in hex
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
    /// How often each contract runs. The fastest run counts
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) rounds: u32,
    /// Write all figures to this file, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) report: Option<PathBuf>,
    /// Print the report as JSON instead of the tables
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// `arbor evm384 asm`.
#[derive(Debug, Args)]
#[command(after_help = examples::EVM384_ASM)]
pub(crate) struct Evm384Asm {
    #[command(flatten)]
    pub(crate) text: Evm384Text,
    #[command(flatten)]
    pub(crate) includes: Evm384Includes,
    /// Write a source map to this file, as JSON: position, file, line, column and macros of each instruction, and the names of slots
    #[arg(long, value_name = "FILE")]
    pub(crate) map: Option<PathBuf>,
}

/// `arbor evm384 vectors`.
#[derive(Debug, Args)]
#[command(after_help = examples::EVM384_VECTORS)]
pub(crate) struct Evm384Vectors {
    /// Only the cases of this form of the operations: v7, immediate, setmod or eip-6690
    #[arg(long, value_name = "I")]
    pub(crate) interface: Option<Interface>,
    /// Gas of an addition, a subtraction and a multiplication: draft (3, 3, 6), a (2, 2, 6) or b (1, 1, 3)
    #[arg(long, value_name = "S", default_value = "draft", value_parser = parse_schedule)]
    pub(crate) schedule: GasSchedule,
}

/// `arbor evm384 asm` and `disasm`.
#[derive(Debug, Args)]
#[command(after_help = examples::EVM384_DISASM)]
pub(crate) struct Evm384Text {
    /// The file to read; `-` is standard input
    pub(crate) file: PathBuf,
    /// The form of the operations: v7, immediate, setmod or eip-6690
    #[arg(long, value_name = "I", default_value = "v7")]
    pub(crate) interface: Interface,
}

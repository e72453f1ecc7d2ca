//! The executor over real chains, over chains with one field changed, and over made-up blocks.

mod calls;
mod chains;
mod code_reads;
mod effects;
mod evm384;
mod model;
mod ripemd;
mod rules;
mod support;
mod witness_gas;

//! One file a command.

pub(crate) mod bench;
mod bench_database;
mod bench_engine;
mod bench_parallel;
mod bench_witnesses;
pub(crate) mod compact;
pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod dump;
pub(crate) mod evm384;
pub(crate) mod generate;
pub(crate) mod get;
pub(crate) mod history;
pub(crate) mod inspect;
pub(crate) mod loadtest;
pub(crate) mod man;
pub(crate) mod prove;
pub(crate) mod recover;
pub(crate) mod repair;
pub(crate) mod replay;
pub(crate) mod replay_witness;
pub(crate) mod roots;
pub(crate) mod status;
pub(crate) mod verify;
pub(crate) mod verify_proof;
pub(crate) mod verify_witness;
pub(crate) mod witness;

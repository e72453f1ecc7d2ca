//! Serves a database over JSON-RPC: states, proofs, calls and, with the files of its chain, blocks.
//!
//! It is read-only, and no node: it knows no peers, no pool of transactions and no blocks to come.
//! What answers a call is in
//! `arbor-database` ([`BlockState`](arbor_database::BlockState)); this crate reads parameters and
//! writes answers as go-ethereum does.
//!
//! ```text
//! server        connections: how many, how long, how much
//! http_service  requests: hosts, origins, bodies; /health, /metrics
//! memory        the room that all large requests and answers share
//! requests      calls and batches read, and answers written, within that room
//! methods       jsonrpsee's table; light calls on the spot, heavy ones on threads of their own, some at a time
//! *_methods     parameters in, answers out
//! snapshots     the latest state: one of a database at rest, or each version of a writer in this process
//! ```
//!
//! Each call is of one version: it takes a snapshot when it begins and gives it back when it ends.
//! A server at rest holds none of a writer's, so that nothing is kept from pruning for longer than
//! the longest call.
//!
//! `jsonrpsee` keeps the table of methods, runs them and writes their results. Its own loop over
//! connections has no limit on the time that a client takes, nor on the memory of all requests
//! together, so that the loop is this crate's. So is the loop over the calls of a batch, because
//! jsonrpsee's does not count the answers that it gathers; and the reading of requests, because
//! jsonrpsee answers no call whose id is negative or a fraction.
#![forbid(unsafe_code)]

mod account_range;
mod batch;
mod block_choice;
mod block_files;
mod block_hashes;
mod block_methods;
mod call;
mod call_fields;
mod call_methods;
mod chain_methods;
mod context;
mod fee_history;
mod figures;
mod fork_config;
mod gas_price;
mod hex;
mod http_service;
mod limits;
mod memory;
mod methods;
mod overrides;
mod paced;
mod params;
mod requests;
mod rpc_error;
mod server;
mod snapshots;
mod state_methods;
mod witness_methods;

pub use block_files::{BlockFiles, BlockFilesError};
pub use context::CallLimits;
pub use limits::{Access, Limits};
pub use server::{ServeError, Server, ServerSettings};
pub use snapshots::{Fixed, Live, NoState, Snapshots};

//! Blocks and witnesses of a node, over JSON-RPC.
//!
//! [`Node`] is a client. It asks over HTTP, without TLS. No answer is believed: a block is compared
//! with its hash, and the hash with the parent's; accounts and slots are read through the nodes of
//! `eth_getProof`, which the state root of the parent's header leads to.
//!
//! [`fetch_witness`] takes the witness of a block, or builds it from proofs, and executes the block
//! over it. [`Blocks`] gives a node's blocks one after another, for a replay that follows its head.
#![forbid(unsafe_code)]

mod ancestry;
mod blocks;
mod client;
mod error;
mod missing;
mod proven_state;
mod witness;

pub use blocks::{Blocks, End};
pub use client::Node;
pub use error::RemoteError;
pub use witness::{FetchedWitness, HowMade, WitnessRules, fetch_witness};

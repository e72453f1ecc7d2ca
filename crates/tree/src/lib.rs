//! The vocabulary of authenticated trees.
//!
//! A tree is a pure function: updates and a [`NodeReader`] go in; the nodes written, the nodes
//! deleted and the new root come out. It does no I/O of its own and starts no threads, so it can
//! be tested against a naive model, run over any store and benchmarked without one.
//!
//! Nodes have a place, not an address: a [`Position`] is a trie and a [`Path`] of nibbles from its
//! root. [`MemoryNodes`] is the simplest reader. With the feature `conformance` come the
//! deliberately naive model of a nested Merkle-Patricia trie (`naive`) and the suites that compare
//! trees with their models step by step (`conformance`).

#![forbid(unsafe_code)]

#[cfg(feature = "conformance")]
pub mod conformance;
mod memory;
#[cfg(feature = "conformance")]
pub mod naive;
mod path;
mod position;
mod reader;
mod update;

pub use memory::MemoryNodes;
pub use path::{Path, PathError, nibble_of, shared_nibbles};
pub use position::{Position, PositionError, PositionKey};
pub use reader::{Leaf, NodeReader, NodeRequest, ReadError};
pub use update::{LeafChange, NodeChange};

/// A 32-byte hash or hashed key.
pub type Hash = [u8; 32];

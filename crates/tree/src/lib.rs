//! The vocabulary of authenticated trees.
//!
//! A tree is a pure function: updates and a [`NodeReader`] go in; the nodes written, the nodes
//! deleted and the new root come out. It does no I/O of its own and starts no threads, so it can
//! be tested against a naive model, run over any store and benchmarked without one.

mod path;
mod reader;
mod update;

pub use path::{Path, Position};
pub use reader::{Leaf, NodeReader, NodeRequest, ReadError};
pub use update::{LeafChange, NodeChange};

/// A 32-byte hash or hashed key.
pub type Hash = [u8; 32];

#![doc = include_str!("blake3.md")]

mod compression;
mod function;
mod states;

pub use compression::{BLOCK, CHUNK};
pub use function::Blake3Hash;

/// BLAKE3 without a key, of messages of at most [`CHUNK`] bytes, on one backend.
pub type Blake3 = crate::Hasher<Blake3Hash>;

/// Messages that are hashed together with BLAKE3.
pub type Blake3Batch = crate::Batch<Blake3Hash>;

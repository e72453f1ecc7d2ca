//! Batched hash functions in SIMD lanes.
//!
//! A tree commits thousands of nodes per block, and they are independent of each other within one
//! height. So the unit of work here is a batch: each 64-bit (or 32-bit) lane of a vector register works on
//! a message of its own, and a batch keeps all lanes busy. Which instructions do it is decided once, in
//! [`Backend::detect`]; the portable code is the reference against which the wide code is tested.
//!
//! - [`keccak256`], one message;
//! - [`keccak256_batch`], a slice of messages of any lengths;
//! - [`keccak256_fixed`], many short messages of one length known to the compiler: addresses, slots;
//! - [`KeccakBatch`], messages that are written straight into the batch's own buffer, for
//!   nodes that are encoded only to be hashed;
//! - [`Keccak`], the same functions on a backend of the caller's choice;
//! - [`Blake2s`], BLAKE2s-256 of one message, of batches, and of many chains up a binary tree at once;
//! - [`Blake3`] and [`Sha256`], the same functions and batches for the nodes of binary trees.
//!
//! Batches are written once for all functions: the calls ([`Hasher`], [`Batch`]), and which message is in which lane
//! (`schedule.rs`). A function is a compression, states that absorb blocks for it (`States`), and a row that names the states of each
//! backend (`Function`). Compressions of 32-bit words are written over a trait (`words.rs`), which has the instructions of each backend.
//!
//! ```
//! use arbor_hashing::{KeccakBatch, keccak256, keccak256_batch, keccak256_fixed};
//!
//! let mut digests = [[0; 32]; 2];
//! keccak256_batch(&["a leaf", "a branch"], &mut digests);
//! assert_eq!(digests[1], keccak256(b"a branch"));
//!
//! keccak256_fixed(&[[0x11; 20], [0x22; 20]], &mut digests);
//! assert_eq!(digests[0], keccak256(&[0x11; 20]));
//!
//! let mut batch = KeccakBatch::new();
//! let leaf = batch.push_with(|node| node.extend_from_slice(b"a leaf"));
//! assert_eq!(batch.finish()[leaf], keccak256(b"a leaf"));
//! ```

mod batch;
pub mod blake2s;
pub mod blake3;
mod hasher;
pub mod keccak;
mod rounds;
mod schedule;
pub mod sha256;
mod states;
mod width;
mod words;

pub use arbor_cpu::{BACKEND_VARIABLE, Backend, UnsupportedBackend};
pub use batch::Batch;
pub use blake2s::{Blake2s, Chain};
pub use blake3::{Blake3, Blake3Batch};
pub use hasher::Hasher;
pub use keccak::{Keccak, KeccakBatch, keccak256, keccak256_batch, keccak256_fixed};
pub use sha256::{Sha256, Sha256Batch};
pub use states::Digest;

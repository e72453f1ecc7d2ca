//! The unified binary tree of EIP-7864: incremental, batched, provable.
//!
//! Keys have 32 bytes: a *stem* of 31, which 256 values share, and a suffix. With a hash function
//! `H`, and 32 zero bytes for what is not there:
//!
//! ```text
//! value     = H(value)
//! subtree   = eight levels of H(left || right) over the 256 values of a stem
//! stem      = H(stem || 00 || subtree)
//! internal  = H(left || right), one for each bit in which two stems or more are left
//! root      = the topmost node; 32 zero bytes without values
//! ```
//!
//! `H` of 64 zero bytes is replaced by 32 zero bytes, so an empty half costs no hash. A value of
//! zeros is stored like any other and is not absence. A node of 32 and one of 64 bytes are all
//! that there is: nothing in a hash tells an internal node from a stem. Proofs make up for this,
//! see [`Hasher`].
//!
//! The engine is `arbor-tree-binary`'s. It stores a node only where keys differ, and computes those
//! in between when it hashes the lower one.
//!
//! - [`apply`] takes updates and a [`Reader`], and returns the records written and deleted and the
//!   new root.
//! - [`Builder`] makes a tree from values that come in the order of their keys, or a [`Part`] of
//!   one; [`join`] makes a tree of parts.
//! - [`select`] gives the nodes that keys lead to as a [`Multiproof`], [`select_for_updates`] those
//!   that it takes to change keys; a [`WitnessTree`] reads and changes a tree of these alone.
//! - [`Hasher`] is the hash function, of which the EIP leaves the choice open: BLAKE3, SHA-256 (as
//!   go-ethereum has it) or Keccak-256.
//!
//! ```
//! use arbor_tree_eip7864::{Hasher, LeafUpdate, MemoryRecords, Packing, apply, key};
//!
//! let (hasher, packing) = (Hasher::default(), Packing::default());
//! let mut records = MemoryRecords::default();
//! let update = LeafUpdate { key: key(&[1; 31], 0), value: Some([7; 32]) };
//! let one = apply(&records, hasher, packing, &[update])?;
//! records.change(one.nodes);
//!
//! let zeros = LeafUpdate { value: Some([0; 32]), ..update };
//! assert_ne!(apply(&records, hasher, packing, &[zeros])?.root, [0; 32]);
//! let removal = LeafUpdate { value: None, ..update };
//! assert_eq!(apply(&records, hasher, packing, &[removal])?.root, [0; 32]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Figures, the count of hashes and the reasoning about proofs are in docs/math/eip7864.md.
#![forbid(unsafe_code)]

mod hasher;
#[cfg(feature = "conformance")]
pub mod naive;

use arbor_tree_binary as binary;
pub use arbor_tree_binary::{
    Entry, Hash, HashFunction, MemoryRecords, MultiproofError, NodeChange, NodeKind, Packing, Part,
    Path, PathError, PathKey, ReadError, Reader, RecordError, Selection, Shown, Sink, TreeError,
    TreeStats, TreeUpdate, apply, join, root, select, select_for_updates,
};
pub use hasher::Hasher;

/// The first 31 bytes of a key, which 256 values share.
pub type Stem = [u8; 31];
/// A tree that grows by values ascending by key.
pub type Builder = binary::Builder<Hasher>;
/// A key that gets a value; `None` removes it, which the EIP never does and going back in history
/// needs.
pub type LeafUpdate = binary::LeafUpdate<Option<Hash>>;
/// One proof of many keys.
pub type Multiproof = binary::Multiproof<Hasher>;
/// A tree of which only some nodes are known.
pub type WitnessTree = binary::WitnessTree<Hasher>;

/// The key of a value under a stem.
#[must_use]
pub fn key(stem: &Stem, suffix: u8) -> Path {
    let mut bytes = [suffix; 32];
    bytes[..31].copy_from_slice(stem);
    Path::of_key(&bytes).expect("invariant: 32 bytes are no longer than the longest key")
}

/// Reads the record at a path and writes it again: the same bytes, or an error.
///
/// # Errors
/// [`RecordError`].
pub fn rewrite(packing: Packing, path: &Path, bytes: &[u8]) -> Result<Vec<u8>, RecordError> {
    binary::rewrite::<Hasher>(packing, path, bytes)
}

/// The branches and leaves of the record at a path.
///
/// # Errors
/// [`RecordError`].
pub fn entries(packing: Packing, path: &Path, bytes: &[u8]) -> Result<Vec<Entry>, RecordError> {
    binary::entries::<Hasher>(packing, path, bytes)
}

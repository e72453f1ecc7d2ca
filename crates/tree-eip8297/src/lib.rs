//! The partitioned binary tree of EIP-8297 (revision of 6 August 2026): incremental, batched,
//! provable.
//!
//! Keys are free of prefixes and have any length (accounts and code 34 bytes, storage 66), values
//! 32 bytes; zero is absence. With a hash function `H`:
//!
//! ```text
//! leaf   = H(00 || key || value)
//! branch = H(01 || count of bits, 2 bytes || bits of the prefix || left || right)
//! root   = 32 zero bytes without leaves
//! ```
//!
//! Branches are compressed: there is one only where keys differ, and its *prefix* has the bits that
//! all keys below share behind the branch above. A leaf commits to its whole key, so that its hash
//! does not depend on its place. A removal takes the branch above away, and lengthens the prefix of
//! a branch that was next to it. So the tree is a function of its contents.
//!
//! The engine is `arbor-tree-binary`'s, which says what is stored; here is what makes it this tree.
//!
//! - [`apply`] takes updates and a [`Reader`], and returns the records written and deleted and the
//!   new root.
//! - [`Builder`] makes a tree from leaves that come in their order, or a [`Part`] of one; [`join`]
//!   makes a tree of parts.
//! - [`prove`] proves keys, present and absent, by the messages of nodes; [`Messages`] shows what
//!   they prove.
//! - [`prove_many`] proves many keys together, in a [`Multiproof`] that has no hash that follows
//!   from the others.
//! - [`witness`] gives the nodes that reading and changing some keys needs; a [`witness_tree`] reads
//!   and changes them with these alone.
//! - [`Hasher`] is the hash function, of which the EIP leaves the choice open: BLAKE3, SHA-256 or
//!   Keccak-256.
//! - [`Packing`] says how many levels are stored as one record.
//!
//! ```
//! use arbor_tree_eip8297::{Hasher, LeafUpdate, MemoryRecords, Packing, Path, apply};
//!
//! let (hasher, packing) = (Hasher::blake3(), Packing::default());
//! let mut records = MemoryRecords::default();
//! let key = Path::of_key(&[&[0][..], &[1; 33]].concat())?;
//! let update = LeafUpdate { key, value: [7; 32] };
//! let one = apply(&records, hasher, packing, &[update])?;
//! records.change(one.nodes);
//!
//! let removal = LeafUpdate { key, value: [0; 32] };
//! let none = apply(&records, hasher, packing, &[removal])?;
//! assert_eq!(none.root, [0; 32]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Figures and the count of hashes are in docs/math/eip8297.md.
#![forbid(unsafe_code)]

mod hasher;
#[cfg(feature = "conformance")]
pub mod naive;
mod proof;

use arbor_tree_binary as binary;
pub use arbor_tree_binary::{
    Entry, FoundNode, Hash, LONGEST_KEY, MemoryRecords, MultiproofError, MultiproofSizes,
    NodeChange, NodeKind as EntryKind, Packing, Part, Path, PathError, PathKey, ReadError, Reader,
    RecordError, Shown, Sink, TreeError, TreeStats, TreeUpdate, apply, join, root,
};
pub use hasher::{BRANCH, Hasher, LEAF, write_branch, write_leaf};
pub use proof::{
    Messages, NodeMessage, messages_of, prove, prove_many, read_message, witness, witness_tree,
};

/// A tree that grows by leaves ascending by key.
pub type Builder = binary::Builder<Hasher>;
/// A leaf that gets a value; zeros remove it.
pub type LeafUpdate = binary::LeafUpdate<Hash>;
/// One proof of many keys.
pub type Multiproof = binary::Multiproof<Hasher>;
/// A tree of which only some nodes are known.
pub type WitnessTree = binary::WitnessTree<Hasher>;

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

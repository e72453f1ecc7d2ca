//! zkSync's binary Merkle tree, AR16MT: incremental, batched, provable.
//!
//! Keys of 256 bits lead to [`Entry`]s, values of 32 bytes with an index. The tree is a binary one of depth 256, of which nearly everything is empty: a subtree
//! without leaves has a hash that depends on its height alone, and one with a single leaf is that leaf's hash, folded upwards against such hashes.
//!
//! - [`apply`] takes updates and a [`Reader`] and returns the nodes written and deleted and the new root.
//! - [`apply_below`] does the same to a part of the tree, [`root_above`] joins parts to a root.
//! - [`build`] makes a tree bottom-up from sorted leaves; [`build_part`] and [`join`] make one from ranges of keys.
//! - [`prove`] proves what keys hold, each by itself: a [`LeafProof`].
//! - [`apply_with_proofs`] applies operations in their order and proves each, with the root after each.
//!   [`StorageLogs`] are the same in the form of zkSync's prover.
//! - [`Multiproof`] proves many keys at once, [`RangeDigest`] that some entries are all in a range of keys.
//! - [`Hasher`] is a parameter: [`Blake2s`], or [`NoOp`], which leaves the hashing out so that all else can be measured.
//!
//! Four levels make a node of 16 children ([`Record`]). A leaf hangs where its key parts from all others; a node keeps the hash of each child, and of a
//! leaf what it takes to send it deeper: some bits of its key and its *fold*, the hash that it has 48 bits below the root. The keys, indices and values of
//! leaves are elsewhere.
//!
//! ```
//! use arbor_tree_ar16mt::{Blake2s, Entry, LeafUpdate, MemoryTree, apply};
//!
//! let mut tree = MemoryTree::default();
//! let entry = Entry { index: 1, value: [7; 32] };
//! let update = LeafUpdate { key: [1; 32], existed: false, new: Some(entry) };
//! let first = apply(&tree, Blake2s::new(), &[update])?;
//! tree.change(&first, &[update]);
//!
//! let other = LeafUpdate { key: [2; 32], ..update };
//! let second = apply(&tree, Blake2s::new(), &[other])?;
//! assert_ne!(first.root, second.root);
//! # Ok::<(), arbor_tree_ar16mt::TreeError>(())
//! ```
//!
//! Hashes, and what of the path to a leaf is stored: docs/math/ar16mt.md.
#![forbid(unsafe_code)]

mod apply;
mod build;
mod error;
mod hasher;
mod memory;
#[cfg(feature = "conformance")]
pub mod naive;
mod proof;
mod reader;
mod record;
mod row;
mod update;
mod work;

pub use apply::{apply, apply_below, apply_unread, empty_root, root, root_above, subtrees};
pub use arbor_tree::{Hash, Path, ReadError};
pub use build::{Part, build, build_part, join};
pub use error::TreeError;
pub use hasher::{Blake2s, Hasher, NoOp};
pub use memory::MemoryTree;
pub use proof::{
    LeafProof, LogsError, Multiproof, MultiproofError, Operation, OperationProof, OperationProofs,
    Outcome, RangeDigest, RangeError, StorageLog, StorageLogs, apply_with_proofs, order_of, prove,
};
pub use reader::{Reader, StoredLeaf};
pub use record::{Child, Leaf, Record, RecordError};
pub use update::{Entry, LeafUpdate, NodeChange, TreeStats, TreeUpdate};

/// Levels of the tree, and bits of a key.
pub const DEPTH: usize = 256;
/// Levels from the root at which a leaf's fold is taken: deep enough that hardly any two leaves share as many bits, so that a leaf which moves need not be folded from the bottom again.
pub const CHECKPOINT: usize = 48;

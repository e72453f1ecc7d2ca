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
//! - [`apply`] takes updates and a [`Reader`], and returns the records written and deleted and the
//!   new root.
//! - [`Builder`] makes a tree from leaves that come in their order, or a [`Part`] of one; [`join`]
//!   makes a tree of parts.
//! - [`prove`] proves keys, present and absent, by the messages of nodes; [`Messages`] shows what
//!   they prove.
//! - [`prove_many`] proves many keys together, in a [`Multiproof`] that has no hash that follows
//!   from the others.
//! - [`witness`] gives the nodes that reading and changing some keys needs; a [`WitnessTree`] reads
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
//! What is stored is described in `record.rs`; figures and the count of hashes are in
//! docs/math/eip8297.md.
#![forbid(unsafe_code)]

mod apply;
mod arena;
mod build;
mod error;
mod hasher;
mod merge;
mod multiproof;
#[cfg(feature = "conformance")]
pub mod naive;
mod path;
mod proof;
mod reader;
mod record;
mod settle;
mod update;
mod witness;
mod work;

pub use apply::{apply, root};
pub use arbor_tree::{Hash, ReadError};
pub use build::{Builder, Part, Sink, join};
pub use error::TreeError;
pub use hasher::{BRANCH, Hasher, LEAF, write_branch, write_leaf};
pub use multiproof::{Multiproof, MultiproofError, prove_many};
pub use path::{LONGEST_KEY, Path, PathError, PathKey};
pub use proof::{Message, Messages, NodeMessage, Shown, prove};
pub use reader::{MemoryRecords, Reader};
pub use record::{Entry, EntryKind, Packing, RecordError, entries, rewrite};
pub use update::{LeafUpdate, NodeChange, TreeStats, TreeUpdate};
pub use witness::{WitnessTree, witness};

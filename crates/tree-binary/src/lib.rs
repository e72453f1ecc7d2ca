//! Binary trees packed into records: the engine that the trees of EIP-8297 and EIP-7864 share.
//!
//! Keys are free of prefixes, values have 32 bytes. The engine stores a branch only where keys
//! differ, and packs the branches of some levels into one record. A tree of it is its
//! [`NodeHash`]: what a leaf and a branch hash to, and what becomes of a value of zeros. Nothing
//! else depends on the tree.
//!
//! - [`apply`] takes updates and a [`Reader`], and returns the records written and deleted and the
//!   new root.
//! - [`Builder`] makes a tree from leaves that come in their order, or a [`Part`] of one; [`join`]
//!   makes a tree of parts.
//! - [`select`] finds the nodes that keys lead to, and [`select_for_updates`] those that it takes to
//!   change keys. A [`Selection`] gives them one by one, or as a [`Multiproof`].
//! - [`WitnessTree`] reads and changes a tree of which only some nodes are known.
//! - [`HashFunction`] is a choice of the functions that the drafts name.
//! - [`Packing`] says how many levels are stored as one record. What is stored is described in
//!   `record.rs`.
//!
//! `arbor-tree-eip8297` and `arbor-tree-eip7864` have an example each.
#![forbid(unsafe_code)]

mod apply;
mod arena;
mod build;
mod error;
mod function;
mod merge;
mod multiproof;
mod node_hash;
mod path;
mod reader;
mod record;
mod select;
mod settle;
mod update;
mod witness;
mod work;

pub use apply::{apply, root};
pub use arbor_tree::{Hash, ReadError};
pub use build::{Builder, Part, Sink, join};
pub use error::TreeError;
pub use function::{Batch, HashFunction};
pub use multiproof::{Multiproof, MultiproofError, MultiproofSizes, Shown};
pub use node_hash::{Contents, NodeHash, NodeKind, NodeView, Value};
pub use path::{LONGEST_KEY, Path, PathError, PathKey};
pub use reader::{MemoryRecords, Reader};
pub use record::{Entry, Packing, RecordError, entries, rewrite};
pub use select::{Selection, select, select_for_updates};
pub use update::{LeafUpdate, NodeChange, TreeStats, TreeUpdate};
pub use witness::{FoundNode, WitnessTree};

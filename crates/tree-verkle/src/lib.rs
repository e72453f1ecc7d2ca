//! The Verkle tree of Ethereum (EIP-6800): incremental, batched, provable.
//!
//! Keys are a [`Stem`] of 31 bytes and a suffix; all values under a stem are one leaf (the EIP's extension node), and internal nodes of 256 children lead
//! to it. A node's commitment is additive, so that an update reads and changes nothing but the nodes on the way to what changes.
//!
//! - [`apply`] takes updates and a reader and returns the nodes written and deleted and the new root; [`apply_together`] does so for updates that follow each other, with the root after each.
//! - [`build`] makes a tree bottom-up from sorted leaves; [`build_part`] and [`join`] make one from ranges of stems.
//! - [`prove`] makes a [`Witness`] of keys, present or not; [`Witness::verify`] checks one against a root, and the root after its new values is computed
//!   from nothing else. It is read and written as SSZ and as the testnets' JSON.
//!
//! A node's [`Record`] holds its commitment and which children or values it has; the values are elsewhere, and an update brings along the old ones.
//!
//! ```
//! use arbor_ipa::{Committer, ValueChange};
//! use arbor_tree_verkle::{MemoryTree, Settings, StemUpdate, apply};
//!
//! let committer = Committer::within(6_000_000); // small tables, for the example
//! let mut tree = MemoryTree::new();
//! let change = ValueChange { suffix: 7, old: None, new: Some([1; 32]) };
//! let updates = [StemUpdate { stem: [0xab; 31], changes: vec![change] }];
//! let done = apply(&tree, &committer, &updates, &Settings::default())?;
//! tree.change_nodes(&done.nodes);
//! assert_eq!(tree.records().len(), 2); // the root and a leaf
//!
//! let change = ValueChange { suffix: 7, old: Some([1; 32]), new: None };
//! let undo = [StemUpdate { stem: [0xab; 31], changes: vec![change] }];
//! let done = apply(&tree, &committer, &undo, &Settings::default())?;
//! assert_eq!(done.root_hash(), [0; 32]);
//! # Ok::<(), arbor_tree_verkle::TreeError>(())
//! ```
#![forbid(unsafe_code)]

mod apply;
mod build;
mod bytes;
mod changes;
mod commit;
mod error;
mod few;
mod key;
mod plan;
mod proof;
mod reader;
mod record;
mod steps;
mod tools;
mod update;
mod whole;

pub use apply::{apply, apply_together, root};
pub use arbor_ipa::ValueChange;
pub use build::{BuildLeaf, Part, Sink, build, build_part, join};
pub use bytes::ByteSet;
pub use error::{RecordError, TreeError};
pub use few::FewValues;
pub use key::{KeyError, NodeKey, Stem, Value};
pub use proof::{
    CompactError, CompactSizes, Proof, StemDiff, SuffixDiff, Verified, Witness, WitnessError,
    WitnessSizes, prove, prove_guarded,
};
pub use reader::{MemoryTree, NodeReader, ValueReader};
pub use record::{Form, Half, InternalRecord, LeafRecord, Record};
pub use update::{NodeChange, Settings, StemUpdate, StepsUpdate, TreeStats, TreeUpdate};
pub use whole::whole_values;

//! The Merkle-Patricia trie of Ethereum (Yellow Paper, appendix D): incremental, batched, provable.
//!
//! An outer trie of hashed keys whose leaves each may hold the root of an inner trie; for Ethereum
//! accounts and their storage, but all that this crate knows of an account is a [`LeafTemplate`]:
//! bytes with a hole for the inner root.
//!
//! - [`apply`] takes updates and a reader and returns the nodes written and deleted and the new
//!   roots. It reads the nodes on the way to all keys, a batch for each depth over all tries; changes
//!   them in memory; and hashes what changed by height over all tries, deepest first, in SIMD lanes.
//! - [`apply_nodes`] gives the nodes one by one, without lists of them and of leaves. [`apply_inner`] and [`apply_outer`] are [`apply`] in two steps, the first of which can be split over threads.
//! - [`build`] makes a trie bottom-up from sorted leaves, [`trie_root`] and [`ordered_root`] only the
//!   root of one that is never stored. [`build_part`] and [`join`] make a trie from ranges of its keys.
//! - [`prove`] and [`verify`] make and check proofs of EIP-1186.
//! - [`Overlay`] reads a state some updates above a stored one, [`WitnessNodes`] one given as a bag
//!   of RLP nodes; [`witness`] collects such a bag, and [`compact`] writes it without the hashes that
//!   follow from others.
//!
//! A stored node is a [`Record`]: a branch with the extension above it. Leaves are not stored; the
//! reader finds them by key, and only where a branch must be split or is left with a single leaf.
//!
//! ```
//! use arbor_tree::MemoryNodes;
//! use arbor_tree_mpt::*;
//!
//! let update = |key, byte| OuterUpdate {
//!     key: [key; 32],
//!     existed: false,
//!     inner_root: EMPTY_ROOT,
//!     leaf: Some(LeafTemplate { bytes: vec![byte; 33], hole: 1 }),
//!     inner: vec![InnerUpdate { key: [9; 32], existed: false, value: Some([byte].as_slice().into()) }],
//! };
//! let updates = [update(0x11, 1), update(0x12, 2)];
//! let mut state = MemoryNodes::new();
//! let done = apply(&state, EMPTY_ROOT, &updates)?;
//! state.change_nodes(&done.nodes);
//! for (update, inner_root) in updates.iter().zip(&done.inner_roots) {
//!     let leaf = update.leaf.as_ref().map(|leaf| leaf.fill(inner_root));
//!     state.set_leaf(None, update.key, leaf);
//! }
//! let proof = prove(&state, None, done.root, &[0x11; 32])?;
//! assert!(matches!(verify(&done.root, &[0x11; 32], &proof)?, Verdict::Present(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod apply;
mod arena;
mod build;
mod commit;
mod compact;
mod edit;
mod error;
mod forest;
mod lanes;
mod load;
mod node;
mod ordered;
mod overlay;
mod prove;
mod record;
mod rlp;
mod settle;
mod update;
mod verify;
mod witness;

pub use apply::{InnerPart, apply, apply_inner, apply_nodes, apply_outer};
pub use build::{Part, build, build_many, build_part, join};
pub use compact::{CompactError, CompactSizes, OuterLeaf, SplitValue, compact, expand};
pub use error::TreeError;
pub use node::NodeError;
pub use ordered::{ordered_root, trie_root};
pub use overlay::{LaidNodes, Over, Overlay};
pub use prove::{prove, prove_many};
pub use record::{Record, RecordError};
pub use rlp::RlpError;
pub use update::{ApplyStats, InnerUpdate, InnerValue, LeafTemplate, OuterUpdate, TreeUpdate};
pub use verify::{ProofError, Verdict, verify, verify_value};
pub use witness::{Access, Recorder, WitnessError, WitnessNodes, shortened, witness};

/// Root of a trie without leaves: Keccak-256 of the RLP of the empty string.
pub const EMPTY_ROOT: [u8; 32] = [
    0x56, 0xe8, 0x1f, 0x17, 0x1b, 0xcc, 0x55, 0xa6, 0xff, 0x83, 0x45, 0xe6, 0x92, 0xc0, 0xf8, 0x6e,
    0x5b, 0x48, 0xe0, 0x1b, 0x99, 0x6c, 0xad, 0xc0, 0x01, 0x62, 0x2f, 0xb5, 0xe3, 0x63, 0xb4, 0x21,
];

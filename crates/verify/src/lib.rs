//! Proofs and witnesses of every tree, checked without a store, threads or files.
//!
//! A proof file names its [form](ProofForm) (`"form": "mpt/1"`), or is of one of the two forms that other programs write
//! and that name none: EIP-1186 (`eth_getProof`) and the Verkle testnets' witnesses. [`Kinds::read`] finds the one
//! form that a file has; [`Proof::verify`] holds the proof against a root and returns a [`Verdict`]. A root does not show its tree, which is named by
//! [`Kinds::only`]. A true proof may still be of something else than what was asked: [`Claims::account`], [`ProvenAccount::slot`] and [`Claims::leaf`]
//! look for that, and [`Claims::doubtful`] must be empty if the prover is not trusted.
//!
//! Merkle-Patricia is always there. Every other tree is a cargo feature, and all of them are default features. The feature `rayon`
//! spreads work over threads.
//!
//! ```
//! use alloy_primitives::{Address, B256, U256};
//! use arbor_verify::{Verdict, standard};
//!
//! // The proof that an empty state has no account.
//! let root = arbor_tree_mpt::EMPTY_ROOT.into();
//! let file = serde_json::json!({
//!     "form": "mpt/1", "address": Address::ZERO, "accountProof": ["0x80"], "balance": "0x0", "nonce": "0x0",
//!     "codeHash": B256::ZERO, "storageHash": B256::ZERO, "storageProof": [],
//! });
//! let kinds = standard().only("mpt").expect("it is always there");
//! let proof = kinds.read(file)?;
//! let Verdict::True(claims) = proof.verify(root)? else { panic!("it holds") };
//! let account = claims.account(Address::ZERO).expect("it is the one that was asked for");
//! assert_eq!(account.account, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(
    not(all(
        feature = "ar16mt",
        feature = "eip7864",
        feature = "eip8297",
        feature = "verkle"
    )),
    allow(
        dead_code,
        unused_imports,
        reason = "trees share code that one tree alone does not use"
    )
)]

#[cfg(feature = "ar16mt")]
pub mod ar16mt;
mod compact;
#[cfg(feature = "eip7864")]
pub mod eip7864;
#[cfg(feature = "eip8297")]
pub mod eip8297;
#[cfg(any(feature = "eip7864", feature = "eip8297"))]
mod hash_name;
mod kinds;
pub mod mpt;
mod named_leaves;
mod proof;
mod quantity;
#[cfg(any(feature = "eip7864", feature = "eip8297", feature = "verkle"))]
pub mod stems;
pub mod two_trees;
#[cfg(feature = "verkle")]
pub mod verkle;
mod whole_state;
mod witness_parts;

pub use arbor_accounts::{
    Account, AccountChange, AccountSlots, IntermediateRoots, ReadError, Reads, SlotChange,
    StateChanges, StateView,
};
pub use compact::{
    CompactForm, CompactSizes, CompactWitness, ExpandedWitness, IsChunk, NotCompact,
};
pub use kinds::{
    AccountOf, Kinds, NotProven, NotRead, PartialState, PartialStateOf, Reached, VerifyKind,
    answered, standard,
};
pub use named_leaves::{LeafValues, LeavesOf, NamedLeaf, NamedLeaves, Origin, WholeAccount};
pub use proof::{
    Claims, FromBytes, Malformed, Proof, ProofForm, ProvenAccount, ProvenLeaf, Range, Verdict,
    WrongField,
};
pub use whole_state::needs_whole_state;
pub use witness_parts::WitnessParts;

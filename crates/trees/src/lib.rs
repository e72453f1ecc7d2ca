//! The trees of this project: what each supplies to the state over it, and the row that everything else knows it by.
//!
//! Merkle-Patricia ([`MPT`]), Verkle ([`verkle`]), AR16MT ([`ar16mt`]), and the partitioned and the unified binary tree ([`eip8297`], [`eip7864`]), each in a folder. [`standard`] lists them.
//! Every tree but Merkle-Patricia is a cargo feature of its own.
//!
//! ```
//! use std::sync::Arc;
//! use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
//! use arbor_state::{Account, AccountChange, BlockRef, Network, State, StateChanges, StateView};
//! use arbor_store::MemoryStore;
//! use arbor_verify::Verdict;
//!
//! let network = Network { chain_id: 1, genesis_hash: B256::ZERO };
//! let tree = arbor_trees::standard().find("mpt").expect("it is one of them").tree();
//! let mut state = State::open(Arc::new(MemoryStore::default()), None, tree, network, Default::default())?;
//! let rich = Account { nonce: 0, balance: U256::from(1_000), code_hash: KECCAK256_EMPTY };
//! let mut changes = StateChanges::default();
//! changes.accounts.insert(Address::repeat_byte(1), AccountChange { new: Some(rich), ..Default::default() });
//!
//! let computed = state.compute(&changes)?;
//! let root = computed.root();
//! state.commit(&BlockRef { number: 0, hash: B256::ZERO, record: Vec::new() }, computed)?;
//! let proof = state.prove(Address::repeat_byte(1), &[])?;
//! let Verdict::True(claims) = proof.verify(root)? else { panic!("it holds") };
//! assert_eq!(claims.accounts[0].account, Some(rich));
//! assert_eq!(state.account(Address::repeat_byte(1))?, Some(rich));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
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
#[cfg(any(feature = "eip7864", feature = "eip8297"))]
mod binary;
#[cfg(feature = "eip7864")]
pub mod eip7864;
#[cfg(feature = "eip8297")]
pub mod eip8297;
mod header_root;
mod moving;
mod mpt;
#[cfg(any(
    feature = "ar16mt",
    feature = "eip7864",
    feature = "eip8297",
    feature = "verkle"
))]
mod named_records;
mod node_load;
#[cfg(any(feature = "eip7864", feature = "eip8297", feature = "verkle"))]
mod stems;
#[cfg(feature = "verkle")]
pub mod verkle;

use arbor_state_tree::Registry;

pub use moving::Moving;
#[cfg(feature = "conformance")]
pub use mpt::model::naive_root;
pub use mpt::{MPT, MerklePatricia};

/// All trees of this project that the crate is built with, the usual one first.
pub fn standard() -> Registry {
    Registry::new([
        &MPT,
        #[cfg(feature = "verkle")]
        &verkle::VERKLE,
        #[cfg(feature = "verkle")]
        &verkle::VERKLE_2023,
        #[cfg(feature = "ar16mt")]
        &ar16mt::AR16MT,
        #[cfg(feature = "eip8297")]
        &eip8297::EIP8297,
        #[cfg(feature = "eip7864")]
        &eip7864::EIP7864,
        #[cfg(feature = "eip7864")]
        &eip7864::EIP7864_A,
    ])
}

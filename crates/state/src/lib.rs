//! Ethereum state over a tree: accounts, slots, code, proofs and witnesses.
//!
//! [`State`] keeps a chain's state in flat tables under a [`Tree`] of choice: [`State::compute`]
//! turns a block's [`StateChanges`] into a root and the writes behind it, [`State::commit`] makes
//! them the latest version, and [`State::at`] opens any retained one for reading and proving.
//! [`StateSnapshot`] is such a state frozen, for other threads and other processes.
//! [`WitnessState`] is the same state seen through the nodes that one block needs. Execution reads
//! either through [`StateView`].
//!
//! ```
//! use std::sync::Arc;
//! use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
//! use arbor_state::{Account, AccountChange, BlockRef, Network, State, StateChanges, StateView, standard};
//! use arbor_store::MemoryStore;
//!
//! let network = Network { chain_id: 1, genesis_hash: B256::ZERO };
//! let tree = standard().find("mpt").expect("it is one of them").tree();
//! let mut state = State::open(Arc::new(MemoryStore::default()), None, tree, network, Default::default())?;
//! let rich = Account { nonce: 0, balance: U256::from(1_000), code_hash: KECCAK256_EMPTY };
//! let mut changes = StateChanges::default();
//! changes.accounts.insert(Address::repeat_byte(1), AccountChange { new: Some(rich), ..Default::default() });
//!
//! let computed = state.compute(&changes)?;
//! let root = computed.root();
//! state.commit(&BlockRef { number: 0, hash: B256::ZERO, header: Vec::new() }, computed)?;
//! let proof = state.prove(Address::repeat_byte(1), &[])?;
//! assert_eq!(proof.verify(root)?, Ok(Some(rich)));
//! assert_eq!(state.account(Address::repeat_byte(1))?, Some(rich));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod ar16mt;
mod changes;
mod checks;
mod computed;
mod dump;
mod error;
mod flat;
mod head;
mod history;
mod kind;
mod mpt;
mod nearest;
mod node_load;
mod plain;
mod recent;
mod snapshot;
mod state;
mod state_tree;
mod tables;
mod trees;
mod verify;
pub mod verkle;
mod view;
mod work;

pub use changes::{Account, AccountChange, SlotChange, StateChanges};
pub use checks::WrongChanges;
pub use computed::{Computed, HeadId, Timings, Unfinished};
pub use dump::{DumpAccount, DumpHead};
pub use error::StateError;
pub use flat::{Ahead, Flat, FlatEntries, FlatKey, Lookup};
pub use head::Head;
pub use history::Historical;
pub use kind::{
    BlockMemory, Registry, RootPlace, RootThreads, Scope, Setting, SettingError, Settings,
    StoredAs, TreeKind, Zeros,
};
pub use mpt::{
    AccountProof, FalseProof, LoadAccount, LoadSlot, LoadSource, MPT, MerklePatricia,
    MissingAccounts, Reads, SlotProof, WitnessState, state_root,
};
pub use plain::WithSlots;
pub use recent::RecentState;
pub use snapshot::StateSnapshot;
pub use state::{BlockRef, Network, State};
pub use state_tree::{Accounts, Nodes, StateTree, Then, Tree};
pub use trees::standard;
pub use verify::{Check, LeafIndices, MetaCheck, VerifyProgress, VerifyReport};
pub use view::{IntermediateRoots, StateView};
pub use work::{Counts, Published, Work};

//! A database of Ethereum state: one dependency, opened in one call.
//!
//! [`OpenOptions::open`] opens a folder and returns a [`State`]. The folder, its lock and its store are this crate's business. Changes are
//! given by plain names; each commit is a version, which can be read, proven and rolled back as long as it is retained.
//!
//! ```
//! use arbor_database::primitives::{Address, B256, U256};
//! use arbor_database::{Account, BlockRef, OpenOptions, StateChanges, StateView, Verdict};
//!
//! let dir = tempfile::tempdir()?;
//! let mut state = OpenOptions::new().tree("mpt").open(dir.path())?;
//!
//! let (alice, slot) = (Address::repeat_byte(1), U256::from(8));
//! let mut changes = StateChanges::default();
//! changes.set_account(&state, alice, Some(Account { balance: U256::from(1_000), ..Account::default() }))?;
//! changes.set_slot(&state, alice, slot, U256::from(7))?;
//! let computed = state.compute(&changes)?;
//! let root = computed.root();
//! state.commit(&BlockRef { number: 0, hash: B256::ZERO, record: Vec::new() }, computed)?;
//! state.flush()?;
//!
//! assert_eq!(state.storage(alice, slot)?, U256::from(7));
//! let Verdict::True(claims) = state.prove(alice, &[slot])?.verify(root)? else { panic!("it holds") };
//! assert_eq!(claims.accounts[0].account.map(|account| account.balance), Some(U256::from(1_000)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Keys and values without accounts
//!
//! [`OpenOptions::open_key_value`] opens a [`KeyValueTree`], which maps keys of 32 bytes to values
//! of 32 bytes under AR16MT (amortized radix-16 Merkle tree) or the tree of EIP-8297. A batch is a
//! version, with the same history and the same safety as a state's.
//!
//! ```
//! use arbor_database::primitives::B256;
//! use arbor_database::{KeyValueWrite, OpenOptions, Verdict};
//!
//! # #[cfg(feature = "eip8297")] {
//! let dir = tempfile::tempdir()?;
//! let mut tree = OpenOptions::new().tree("eip8297").open_key_value(dir.path())?;
//! let (key, absent) = (B256::repeat_byte(1), B256::repeat_byte(2));
//! let root = tree.extend(&[KeyValueWrite::put(key, B256::repeat_byte(7))])?;
//! let proof = tree.prove(&[key, absent])?;
//! let Verdict::True(claims) = proof.verify(root)? else { panic!("it holds") };
//! assert_eq!(claims.leaves[0].value, Some(B256::repeat_byte(7)));
//! assert_eq!(claims.leaves[1].value, None);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! | feature | brings |
//! |---|---|
//! | `fjall` (default), `rocksdb` | a store on a disk |
//! | `verkle`, `ar16mt`, `eip8297`, `eip7864`, or `all-trees` | trees beside Merkle-Patricia, which is always there |
//! | `chain` | a folder that remembers a chain's genesis and rules, and the state after a block ([`BlockState`]): calls, gas, proofs; with revm |
//! | `tracing` | log lines |
//!
//! # Threads
//!
//! A tree starts no threads: it spreads large changes over the rayon pool in which it is called. On a
//! thread outside of a pool, Merkle-Patricia uses that thread alone, and the other trees use rayon's
//! global pool. Three lines of the caller, who needs the crate `rayon`, make a pool:
//!
//! ```
//! # use arbor_database::{OpenOptions, StateChanges};
//! # let (state, changes) = (OpenOptions::new().in_memory()?, StateChanges::default());
//! let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build()?;
//! let computed = pool.install(|| state.compute(&changes))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same is true of [`Session::apply`], [`KeyValueTree::extend`], loads, proofs of many names and
//! the check of a whole database. A pool is made once and kept.
//!
//! # For those who need more than one call
//!
//! [`Folder`] shows what a folder remembers without opening its store, opens a database in every other way (for a recovery, for a load), and with
//! the feature `chain` goes on with a replay (`Folder::resume`).
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

#[cfg(feature = "chain")]
mod access_list;
mod backup;
#[cfg(feature = "chain")]
mod block_state;
mod budget;
#[cfg(feature = "chain")]
mod chain_context;
mod error;
mod folder;
#[cfg(feature = "chain")]
mod gas_estimate;
#[cfg(feature = "chain")]
mod genesis;
mod key_value;
mod locked_store;
mod names;
mod open;
mod open_options;
#[cfg(feature = "chain")]
mod overrides;
mod remembered;
#[cfg(feature = "chain")]
mod resume;
mod retention;
#[cfg(feature = "chain")]
mod rules;
mod scratch;
mod store;
mod store_kind;
mod stored_settings;
mod tree_settings;

pub use alloy_primitives as primitives;
pub use arbor_state::{
    Account, AccountChange, AccountOrder, AccountSlots, AccountSource, BlockLeaves, BlockRef,
    BlockRoots, Computed, DumpAccount, FullAccount, FullAccounts, Head, HeadId, Historical,
    IntermediateRoots, KeyValueEntry, KeyValueError, KeyValueReport, KeyValueSnapshot,
    KeyValueTree, KeyValueVersion, KeyValueWrite, KeyedAccount, KeyedAccounts, KeyedSlot, LeafLogs,
    LeafStats, LeafWrite, LeavesThen, MetaCheck, Network, NumberedLeaf, Opened, PartOf, PastState,
    ProvenLeaves, ReadError, Reads, Registry, Session, SettingError, SlotChange, SortedAccounts,
    State, StateChanges, StateError, StateLeaves, StateReader, StateSnapshot, StateView,
    StateWitness, Timings, Touched, Tree, TreeKind, VerifiedPart, VerifiedParts, VerifyProgress,
    VerifyReport, Work, WrongChanges,
};
pub use arbor_store::StoreError;
pub use arbor_store::disk::Limits;
pub use arbor_trees as trees;
pub use arbor_verify as verify;
pub use arbor_verify::{
    Claims, Kinds, Malformed, Proof, ProofForm, ProvenAccount, ProvenLeaf, Range, Verdict,
};
pub use arbor_versions::{Meta, PruneStats, RecordCounts, Retain, Stats, Version, VersionsError};
pub use backup::{Backup, DatabaseSnapshot};
#[cfg(feature = "chain")]
pub use block_state::{BlockState, BlockStateError, kept_blocks};
pub use budget::{Budget, usual_write_back};
#[cfg(feature = "chain")]
pub use chain_context::ChainContext;
pub use error::DatabaseError;
#[cfg(feature = "chain")]
pub use folder::network;
pub use folder::{Folder, NO_CHAIN};
#[cfg(feature = "chain")]
pub use gas_estimate::GasEstimate;
#[cfg(feature = "chain")]
pub use genesis::OtherGenesis;
pub use locked_store::LockedStore;
pub use names::{CONVERSION, CONVERSION_JOB, PART, is_own_name};
pub use open::{Remembered, in_memory};
pub use open_options::OpenOptions;
#[cfg(feature = "chain")]
pub use overrides::{AccountOverride, BlockOverride, Overrides};
pub use remembered::write_whole;
#[cfg(feature = "chain")]
pub use resume::Resumed;
pub use retention::{RETAINED, parse_retain, show_retain};
#[cfg(feature = "chain")]
pub use rules::{AgreedRules, RulesNotice};
pub use store_kind::StoreKind;
pub use stored_settings::SettingsNotice;
pub use tree_settings::TreeSettings;

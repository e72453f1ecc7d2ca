//! What a tree supplies to the state over it, and how the trees of a program are listed.
//!
//! [`StateTree`] is a commitment scheme over accounts: where records lie in flat tables, what changes make of the nodes,
//! how both are checked, proven and led through versions. [`TreeKind`] is the row that everything else knows a tree by,
//! and [`Registry`] the rows that a program knows.
#![forbid(unsafe_code)]

mod account_roots;
mod build;
mod check;
mod check_history;
mod checks;
mod computed;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod flat;
mod head_id;
mod inspect;
mod leaves;
mod listing;
mod load;
mod network;
mod state_tree;
mod tables;
mod work;
mod wrong_changes;

pub use account_roots::{
    account_leaves, account_part, records, root_of_leaves, state_root, storage_root,
};
pub use arbor_accounts::{
    Account, AccountChange, AccountOrder, AccountSlots, AccountSource, BY_NAME, FullAccount,
    FullAccounts, IntermediateRoots, KeyedAccount, KeyedAccounts, KeyedSlot, ReadError, Reads,
    SlotChange, SortedAccounts, StateChanges, StateView, check_listed_once,
};
pub use arbor_tree_ar16mt::{OperationProof, OperationProofs, TreeStats};
pub use arbor_verify::mpt::BY_KECCAK;
pub use build::{Build, BuiltPart, Joined, NumberedLeaf, Spread, SpreadLeaf};
pub use check::{Check, Counted, LeafIndices, MetaCheck, VerifyProgress, VerifyReport};
pub use checks::{check_code_hashes, check_consistent, check_old_account, check_old_slot};
pub use computed::{Computed, Timings, check_run};
pub use error::{StateError, Unfinished, corrupt};
pub use flat::{Ahead, Flat, FlatEntries, FlatKey, Lookup, overlaid};
pub use head_id::HeadId;
pub use inspect::{Seen, SeenNodes, StoredRecord};
pub use leaves::{BlockLeaves, LeafWrite};
pub use listing::WithSlots;
pub use load::{LoadedCodes, check_order};
pub use network::Network;
pub use state_tree::{
    Accounts, BlockMemory, InnerRoots, LeafEntries, LeafNames, Leaves, Nodes, Registry, RootPlace,
    RootThreads, Scope, Setting, SettingError, Settings, StateTree, StateWitness, StoredAs, Then,
    Touched, Tree, TreeKind, WitnessForm, Witnesses, Zeros, one_by_one, own, own_mut,
};
pub use tables::{ACCOUNTS, CODE, COMMON, ROOTS, SLOTS, code_write, code_writes};
pub use work::{Counts, Published, Work};
pub use wrong_changes::WrongChanges;

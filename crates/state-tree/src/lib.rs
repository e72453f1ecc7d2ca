//! What a tree supplies to the state over it, and how the trees of a program are listed.
//!
//! [`StateTree`] is a commitment scheme over accounts: where records lie in flat tables, what changes make of the nodes,
//! how both are checked, proven and led through versions. [`TreeKind`] is the row that everything else knows a tree by,
//! and [`Registry`] the rows that a program knows.
#![forbid(unsafe_code)]

mod build;
mod check;
mod check_history;
mod check_kept_nodes;
mod checked_part;
mod checks;
mod computed;
pub mod conformance;
mod error;
mod flat;
mod flat_records;
mod head_id;
mod inspect;
mod key_value;
mod leaves;
mod listing;
mod load;
mod network;
mod part_of;
mod rewind;
mod state_tree;
mod tables;
mod work;
mod wrong_changes;

pub use arbor_accounts::{
    Account, AccountChange, AccountOrder, AccountSlots, AccountSource, BY_NAME, FullAccount,
    FullAccounts, IntermediateRoots, KeyedAccount, KeyedAccounts, KeyedSlot, ReadError, Reads,
    SlotChange, SortedAccounts, StateChanges, StateView, check_listed_once, check_order,
};
pub use build::{Build, BuiltPart, Joined, NumberedLeaf, Spread, SpreadLeaf};
pub use check::{Check, Counted, MetaCheck, VerifyProgress, VerifyReport};
pub use checked_part::{AccountTrie, CheckedPart};
pub use checks::{check_code_hashes, check_consistent, check_old_account, check_old_slot};
pub use computed::{Computed, Timings, check_run};
pub use error::{StateError, TreeFault, Unfinished, corrupt};
pub use flat::{Ahead, Flat, FlatEntries, FlatKey, Lookup, OtherSpace, overlaid};
pub use flat_records::{Accounts, Arranged, ChangedNames, FlatRecords, KeptAccounts};
pub use head_id::HeadId;
pub use inspect::{Seen, SeenNodes, StoredRecord};
pub use key_value::{KEY_VALUE_REVISION, KeyValueEntry, KeyValueWrite};
pub use leaves::{LeafLogs, LeafProofs, LeafStats, LeafWrite, ProvenLeaves};
pub use listing::{KeptAccount, WithSlots};
pub use load::LoadedCodes;
pub use network::Network;
pub use part_of::PartOf;
pub use rewind::{Rewind, Rewound};
pub use state_tree::{
    BlockLeaves, BlockMemory, Cursor, InnerRoots, KeyValue, LeafEntries, LeafNames, Leaves, Moved,
    Moves, Nodes, OfOneTree, Opened, Registry, RootPlace, RootThreads, Scope, Setting,
    SettingError, Settings, StateTree, StateWitness, StoredAs, Technique, Then, Touched, Tree,
    TreeKind, WitnessForm, Witnesses, Zeros, one_by_one, own, own_mut,
};
pub use tables::{ACCOUNTS, CODE, COMMON, ROOTS, SLOTS, code_write, code_writes};
pub use work::{Counts, Published, Work};
pub use wrong_changes::WrongChanges;

//! Ethereum state over a tree: accounts, slots, code, proofs and witnesses.
//!
//! [`State`] keeps a chain's state in flat tables under a [`Tree`] of choice: [`State::compute`]
//! turns a block's [`StateChanges`] into a root and the writes behind it, [`State::commit`] makes
//! them the latest version, and [`State::at`] opens any retained one for reading and proving.
//! [`StateSnapshot`] is such a state frozen, for other threads and other processes.
//! Execution reads either through [`StateView`], like the witnesses of `arbor-verify`, which are the same state seen through the nodes
//! that one block needs.
//!
//! No tree is named here: they are in `arbor-trees`, which has an example.
#![forbid(unsafe_code)]

mod changes;
mod dump;
mod head;
mod history;
mod inspect;
mod nearest;
mod recent;
pub mod recovery;
mod roots;
mod snapshot;
mod source;
mod state;
mod verify;

pub use arbor_state_tree::{
    Account, AccountChange, AccountOrder, AccountSlots, AccountSource, BY_NAME, BlockLeaves,
    BlockMemory, Build, BuiltPart, Check, Computed, Counts, Flat, FullAccount, FullAccounts,
    HeadId, IntermediateRoots, Joined, KeyedAccount, KeyedAccounts, KeyedSlot, LeafLogs,
    LeafProofs, LeafStats, LeafWrite, LoadedCodes, MetaCheck, Network, NumberedLeaf, ProvenLeaves,
    Published, ReadError, Reads, Registry, RootPlace, RootThreads, Scope, Setting, SettingError,
    Settings, SlotChange, SortedAccounts, Spread, SpreadLeaf, StateChanges, StateError, StateTree,
    StateView, StateWitness, StoredAs, Then, Timings, Touched, Tree, TreeKind, Unfinished,
    VerifyProgress, VerifyReport, WithSlots, WitnessForm, Witnesses, Work, WrongChanges, Zeros,
    check_listed_once, code_write,
};
pub use arbor_verify::mpt::{BY_KECCAK, state_root, storage_root};
pub use dump::{DumpAccount, DumpHead};
pub use head::Head;
pub use history::{Historical, LeavesThen};
pub use inspect::{
    Bucket, CodeFigures, HistoryFigures, InspectProgress, Inspection, LargeCode, LargeStorage,
    NodeFigures, StorageFigures, TableFigures,
};
pub use recent::RecentState;
pub use roots::BlockRoots;
pub use snapshot::StateSnapshot;
pub use state::{ANCESTORS, BlockRef, State, StateLeaves};

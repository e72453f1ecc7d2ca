//! Ethereum state over a tree: accounts, slots, code, proofs and witnesses.
//!
//! [`State`] keeps a chain's state in flat tables under a [`Tree`] of choice: [`State::compute`]
//! turns a block's [`StateChanges`] into a root and the writes behind it, [`State::commit`] makes
//! them the latest version, and [`State::at`] opens any retained one for reading and proving.
//! [`StateSnapshot`] is such a state frozen, for other threads and other processes, and [`PastState`] one of its older versions;
//! [`StateReader`] hands out the latest snapshot, and a [`Session`] stacks blocks on one that are not committed.
//! [`KeyValueTree`] keeps keys and values without accounts, with the same history and proofs.
//! Execution reads either through [`StateView`], like the witnesses of `arbor-verify`, which are the same state seen through the nodes
//! that one block needs.
//!
//! No tree is named here: they are in `arbor-trees`, which has an example.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod block_lookup;
mod block_ref;
mod changes;
mod dump;
mod head;
mod history;
mod inspect;
mod key_value_error;
mod key_value_snapshot;
mod key_value_tree;
mod key_value_version;
mod moving;
mod nearest;
mod past_state;
mod recent;
pub mod recovery;
mod rewinds;
mod roots;
mod session;
mod snapshot;
mod source;
mod state;
mod state_reader;
mod verified_part;
mod verify;
mod view_of_reader;

pub use arbor_state_tree::{
    Account, AccountChange, AccountOrder, AccountSlots, AccountSource, BY_NAME, BlockLeaves,
    BlockMemory, Build, BuiltPart, Check, Computed, Counts, Flat, FullAccount, FullAccounts,
    HeadId, IntermediateRoots, Joined, KEY_VALUE_REVISION, KeptAccount, KeyValueEntry,
    KeyValueWrite, KeyedAccount, KeyedAccounts, KeyedSlot, LeafLogs, LeafProofs, LeafStats,
    LeafWrite, LoadedCodes, MetaCheck, Moved, Moves, Network, NumberedLeaf, OfOneTree, Opened,
    PartOf, ProvenLeaves, Published, ReadError, Reads, Registry, RootPlace, RootThreads, Scope,
    Setting, SettingError, Settings, SlotChange, SortedAccounts, Spread, SpreadLeaf, StateChanges,
    StateError, StateTree, StateView, StateWitness, StoredAs, Technique, Then, Timings, Touched,
    Tree, TreeKind, Unfinished, VerifyProgress, VerifyReport, WithSlots, WitnessForm, Witnesses,
    Work, WrongChanges, Zeros, check_listed_once, code_write,
};
pub use arbor_verify::mpt::{BY_KECCAK, state_root, storage_root};
pub use block_ref::BlockRef;
pub use dump::{DumpAccount, DumpHead};
pub use head::Head;
pub use history::{Historical, LeavesThen};
pub use inspect::{
    Bucket, CodeFigures, HistoryFigures, InspectProgress, Inspection, LargeCode, LargeStorage,
    NodeFigures, StorageFigures, TableFigures,
};
pub use key_value_error::KeyValueError;
pub use key_value_snapshot::{KeyValueReport, KeyValueSnapshot};
pub use key_value_tree::KeyValueTree;
pub use key_value_version::KeyValueVersion;
pub use past_state::PastState;
pub use recent::RecentState;
pub use rewinds::{Scratch, ScratchStore};
pub use roots::BlockRoots;
pub use session::Session;
pub use snapshot::StateSnapshot;
pub use source::ArrangedState;
pub use state::{ANCESTORS, State, StateLeaves};
pub use state_reader::StateReader;
pub use verified_part::{NotAPart, PartsError, VerifiedPart, VerifiedParts};

//! What can go wrong with state.

use alloy_primitives::{Address, B256, hex};
use arbor_store::StoreError;
use arbor_tree::ReadError as NodeError;
use arbor_tree_ar16mt::TreeError as Ar16mtError;
use arbor_tree_eip8297::TreeError as Eip8297Error;
use arbor_tree_mpt::TreeError;
use arbor_tree_verkle::TreeError as VerkleError;
use arbor_versions::VersionsError;

use crate::WrongChanges;
use crate::head_id::{HeadId, ShownHead};
use arbor_accounts::ReadError;
use arbor_verify::verkle::NoRoom;

/// Why state could not be read, computed or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The versioned tables failed: storage, retention or identity.
    #[error(transparent)]
    Versions(Box<VersionsError>),
    /// The store failed outside of any version.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The tree could not be read or updated.
    #[error(transparent)]
    Tree(Box<TreeError>),
    /// The Verkle tree could not be read or updated.
    #[error(transparent)]
    Verkle(Box<VerkleError>),
    /// The AR16MT tree could not be read or updated.
    #[error(transparent)]
    Ar16mt(Box<Ar16mtError>),
    /// The tree of EIP-8297 could not be read or updated.
    #[error(transparent)]
    Eip8297(Box<Eip8297Error>),
    /// A stored record is not what its table promises.
    #[error("corrupt {table} record at key 0x{}: {why}", hex::encode(key))]
    Corrupt {
        /// The table's name.
        table: &'static str,
        /// The record's key.
        key: Vec<u8>,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Leaves are numbered on, and after this number there is none.
    #[error("no leaf can have index {}: none could come after it", u64::MAX)]
    LastIndex,
    /// A view could not be read.
    #[error(transparent)]
    View(ReadError),
    /// An account has more than its leaves have room for.
    #[error("account {address:#x}: {cause}")]
    NoRoom {
        /// Whose account it is.
        address: Address,
        /// What is too large.
        cause: NoRoom,
    },
    /// A version recomputed from the undo records does not have the root it was stored with.
    #[error(
        "version {version}: root recomputed from the undo records is {actual}, stored was {expected}"
    )]
    RebuiltRoot {
        /// The version.
        version: u64,
        /// The root stored with it.
        expected: B256,
        /// The root of the rebuilt tree.
        actual: B256,
    },
    /// Changes that cannot be those of a block on this state.
    #[error(transparent)]
    WrongChanges(Box<WrongChanges>),
    /// Computed changes were to be committed on another head than the one that they were computed on.
    #[error(
        "the changes were computed on {}, and the head is {}: compute them again",
        ShownHead(computed_on),
        ShownHead(head)
    )]
    Stale {
        /// The head that they were computed on; `None`: no version.
        computed_on: Option<HeadId>,
        /// The head that the database has.
        head: Option<HeadId>,
    },
    /// Changes of blocks that were computed together were to be committed without the others, or in another order.
    #[error(
        "these are the changes of block {} of {of} that were computed together: commit all of them, in their order",
        .place + 1
    )]
    PartOfRun {
        /// Blocks before this one in the run.
        place: usize,
        /// Blocks in the run.
        of: usize,
    },
    /// What a load left to commit was to be committed to another database.
    #[error("these changes complete a load, and this database was not loaded")]
    NotLoaded,
    /// The database has a part of a state: a load or a recovery did not finish.
    #[error(transparent)]
    Unfinished(Unfinished),
    /// A caller's own reader has no answer.
    #[error("{0}")]
    Read(String),
}

/// What ended before the database had a whole state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unfinished {
    /// A load of a whole state.
    #[error("loading the database was interrupted: delete it and begin again")]
    Load,
    /// A recovery.
    #[error("its recovery was not finished: `arbor recover` with the same file goes on with it")]
    Recovery,
}

impl From<WrongChanges> for StateError {
    fn from(error: WrongChanges) -> Self {
        Self::WrongChanges(Box::new(error))
    }
}

impl From<VersionsError> for StateError {
    fn from(error: VersionsError) -> Self {
        match error {
            VersionsError::PartlyLoaded => Self::Unfinished(Unfinished::Load),
            error => Self::Versions(Box::new(error)),
        }
    }
}

impl From<TreeError> for StateError {
    fn from(error: TreeError) -> Self {
        Self::Tree(Box::new(error))
    }
}

impl From<VerkleError> for StateError {
    fn from(error: VerkleError) -> Self {
        Self::Verkle(Box::new(error))
    }
}

impl From<Ar16mtError> for StateError {
    fn from(error: Ar16mtError) -> Self {
        Self::Ar16mt(Box::new(error))
    }
}

impl From<Eip8297Error> for StateError {
    fn from(error: Eip8297Error) -> Self {
        Self::Eip8297(Box::new(error))
    }
}

/// A record that is not what its table promises.
pub fn corrupt(table: &'static str, key: &[u8], why: &'static str) -> StateError {
    let key = key.to_vec();
    StateError::Corrupt { table, key, why }
}

impl From<StateError> for NodeError {
    fn from(error: StateError) -> Self {
        NodeError {
            what: "state".into(),
            cause: Box::new(error),
        }
    }
}

impl From<StateError> for ReadError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::View(error) => error,
            error => ReadError::below(error),
        }
    }
}

impl From<ReadError> for StateError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Below(cause) => match cause.downcast() {
                Ok(own) => *own,
                Err(cause) => Self::View(ReadError::Below(cause)),
            },
            error => Self::View(error),
        }
    }
}

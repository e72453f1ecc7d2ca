//! What can go wrong with state.

use std::error::Error;
use std::fmt;
use std::path::Path;

use alloy_primitives::{Address, B256, hex};
use arbor_store::StoreError;
use arbor_tree::ReadError as NodeError;
use arbor_versions::VersionsError;

use crate::WrongChanges;
use crate::head_id::{HeadId, ShownHead};
use arbor_accounts::ReadError;

/// Why state could not be read, computed or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The versioned tables failed: storage, retention or identity.
    #[error(transparent)]
    Versions(Box<VersionsError>),
    /// The store failed outside of any version.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The temporary store failed in which an older version is made that lies too far back for memory. The database itself is as it was.
    #[error(
        "the temporary store for an older version, in {}, failed (if its disk is full, free some space, or set TMPDIR to a folder on another disk): {cause}",
        place.display()
    )]
    Scratch {
        /// The folder for temporary files.
        place: Box<Path>,
        /// What failed.
        #[source]
        cause: Box<StateError>,
    },
    /// The tree could not be read or updated.
    #[error(transparent)]
    Tree(TreeFault),
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
    /// A view could not be read.
    #[error(transparent)]
    View(ReadError),
    /// An account has more than its leaves have room for.
    #[error("account {address:#x}: {cause}")]
    NoRoom {
        /// Whose account it is.
        address: Address,
        /// What is too large.
        cause: Box<dyn Error + Send + Sync>,
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
    /// Computed changes, or a session, were to be committed to another open database than the one that was read.
    #[error(
        "the changes were not computed on this database since it was opened for writing: compute them again"
    )]
    OtherDatabase,
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
    /// No version that can be read is of a block.
    #[error(
        "no version that is kept is of block {wanted}: those of blocks {oldest} to {newest} are kept"
    )]
    NoBlock {
        /// The block's number, or its hash or root in words.
        wanted: String,
        /// The oldest block whose state is kept.
        oldest: u64,
        /// The latest block.
        newest: u64,
    },
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

/// An error of a tree, which only the tree knows by its type.
#[derive(Debug)]
pub struct TreeFault {
    /// The name of the tree.
    pub tree: &'static str,
    /// The error.
    pub cause: Box<dyn Error + Send + Sync>,
}

impl fmt::Display for TreeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.tree, self.cause)
    }
}

impl Error for TreeFault {
    /// What lies below the tree's error, whose own text is this one's.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.source()
    }
}

impl StateError {
    /// Returns an error of the tree with a name.
    pub fn of_tree(tree: &'static str, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let cause = cause.into();
        Self::Tree(TreeFault { tree, cause })
    }

    /// Returns the error that an account has more than its leaves have room for.
    pub fn no_room(address: Address, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let cause = cause.into();
        Self::NoRoom { address, cause }
    }

    /// Returns the tree's own error, if this is one and has this type.
    pub fn in_tree<E: Error + 'static>(&self) -> Option<&E> {
        match self {
            Self::Tree(fault) => fault.cause.downcast_ref(),
            _ => None,
        }
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

//! What can go wrong with a conversion.

use std::io;
use std::path::{Path, PathBuf};

use alloy_primitives::{Address, B256};
use arbor_state::{ReadError, StateError};

use crate::audit::Audit;

/// Why a state was not converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// A file of the conversion, or the dump, cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file of the conversion has other bytes than were written.
    #[error("{} is damaged at byte {offset}: {why}. Remove {} and begin the conversion again", path.display(), folder(path).display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damage begins.
        offset: u64,
        /// What is wrong.
        why: &'static str,
    },
    /// The files of leaves in a folder do not have as many as were written.
    #[error("{}. Remove {} and begin the conversion again", leaves_lost(folder, *found, *written), whole(folder).display())]
    LeavesLost {
        /// The folder of the files.
        folder: PathBuf,
        /// Leaves that were read.
        found: u64,
        /// Leaves that were written.
        written: u64,
    },
    /// A line of a dump cannot be converted.
    #[error("line {line}: {why}")]
    Line {
        /// The line, from 1 on.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// A dump begins with an account.
    #[error(
        "line 1 is an account, and a dump begins with the line {{\"root\": \"0x...\"}}: the beginning is missing. Dump the state again, or put the line with the block's state root before the dump"
    )]
    NoHead,
    /// A file that has no accounts in a form that can be read.
    #[error("no accounts can be read from it: {0}")]
    NoAccounts(String),
    /// A dump has other lines than that with which the conversion was begun.
    #[error(
        "lines {first} to {last} have other bytes than when this conversion was begun: it is another dump, or it ended early then. Give the same dump to go on, or delete the target's folder to begin again"
    )]
    OtherDump {
        /// The first line of the part that differs.
        first: u64,
        /// Its last line.
        last: u64,
    },
    /// The folder has the files of another conversion.
    #[error(
        "{} was begun as another conversion ({found}), and this one is {wanted}: go on with the same command, or remove the folder",
        folder.display()
    )]
    OtherJob {
        /// The target's folder.
        folder: PathBuf,
        /// The conversion that was begun.
        found: String,
        /// The conversion that was asked for.
        wanted: String,
    },
    /// Folders that are not the parts of one conversion, or no part at all.
    #[error("{0}")]
    Parts(String),
    /// A target that cannot be kept level with its source.
    #[error("{0}")]
    Follow(String),
    /// The source cannot be read, or the target cannot be written.
    #[error(transparent)]
    State(#[from] StateError),
    /// The accounts do not have the root that the header carries.
    #[error(
        "the accounts and slots have the Merkle-Patricia root {actual}, and the source has the state root {expected}: {why}"
    )]
    Root {
        /// The source's state root.
        expected: B256,
        /// The root of what was read.
        actual: B256,
        /// Where the fault is, as far as it was found, and what to do.
        why: String,
    },
    /// A file of preimages is not one.
    #[error("{}, byte {offset}: {why}", path.display())]
    Preimages {
        /// The file.
        path: PathBuf,
        /// Where the fault is.
        offset: u64,
        /// What is wrong.
        why: &'static str,
    },
    /// Hashed keys have no name in the files of preimages.
    #[error("{} accounts and {} slots have no preimage, the first of them {}", .0.missing_accounts, .0.missing_slots, .0.first())]
    MissingNames(Box<Audit>),
    /// An account has more slots than a file of preimages can count.
    #[error("account {0:#x} has more than 2^32 slots")]
    Slots(Address),
    /// The output takes nothing more.
    #[error("writing the preimages: {0}")]
    Output(io::Error),
    /// Somebody asked to stop.
    #[error("the conversion was stopped; the same command goes on with it")]
    Stopped,
}

/// The folder in which a conversion keeps its files.
fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// Says which files of leaves were cut.
pub(crate) fn leaves_lost(folder: &Path, found: u64, written: u64) -> String {
    format!(
        "the files leaves-XX in {} have {found} leaves, and {written} were written: one was cut, or is missing",
        folder.display()
    )
}

/// The name of the folder, within the target's, of the files of a conversion.
pub(crate) const FOLDER: &str = "convert";

/// The folder that is removed to begin again: that of the target, if this is the folder of its conversion's files; a part's is its own.
fn whole(files: &Path) -> &Path {
    match files.file_name().is_some_and(|name| name == FOLDER) {
        true => folder(files),
        false => files,
    }
}

impl ConvertError {
    /// Names the file that an operation failed on.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |error| Self::File {
            path: path.to_owned(),
            error,
        }
    }
}

impl From<ReadError> for ConvertError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Below(cause) => match cause.downcast() {
                Ok(own) => *own,
                Err(cause) => Self::State(ReadError::Below(cause).into()),
            },
            error => Self::State(error.into()),
        }
    }
}

impl From<ConvertError> for ReadError {
    fn from(error: ConvertError) -> Self {
        Self::below(error)
    }
}

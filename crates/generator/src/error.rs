//! Why a chain could not be generated.

use std::path::{Path, PathBuf};

use arbor_state::{ReadError, StateError};

use super::SettingsError;
use arbor_chain::{executor::ExecutionError, genesis::GenesisError};

/// Why a chain could not be generated or continued.
#[derive(Debug, thiserror::Error)]
pub enum GeneratorError {
    /// A setting is out of its range.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A file could not be read or written.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        cause: std::io::Error,
    },
    /// The folder holds a chain made with other settings.
    #[error("{}: the chain there was made with another {field}: continue it with the same, or use another folder", path.display())]
    OtherSettings {
        /// The folder.
        path: PathBuf,
        /// The first setting that differs.
        field: &'static str,
    },
    /// The folder holds a chain that says not how it was made.
    #[error("{}: there is a chain already, and no generator.json that says how it was made: use another folder", path.display())]
    Foreign {
        /// The chain.
        path: PathBuf,
    },
    /// Another process makes a chain in the folder.
    #[error("{}: another process makes a chain there: wait until it ends, or use another folder", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// The folder is to be where a file is.
    #[error("{}: there is a file of that name, and a folder is needed: use another name", path.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
    },
    /// What is in the folder is not what the generator wrote there.
    #[error("{}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The genesis is not one that can be executed.
    #[error(transparent)]
    Genesis(Box<GenesisError>),
    /// A block could not be executed: a transaction of the workload is not valid, or the state cannot be read.
    #[error(transparent)]
    Execution(Box<ExecutionError>),
    /// The state could not be read or written.
    #[error(transparent)]
    State(Box<StateError>),
}

impl GeneratorError {
    pub(super) fn file(path: &Path, cause: std::io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            cause,
        }
    }

    pub(super) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}

impl From<GenesisError> for GeneratorError {
    fn from(error: GenesisError) -> Self {
        Self::Genesis(Box::new(error))
    }
}

impl From<ExecutionError> for GeneratorError {
    fn from(error: ExecutionError) -> Self {
        Self::Execution(Box::new(error))
    }
}

impl From<ReadError> for GeneratorError {
    fn from(error: ReadError) -> Self {
        StateError::from(error).into()
    }
}

impl From<StateError> for GeneratorError {
    fn from(error: StateError) -> Self {
        Self::State(Box::new(error))
    }
}

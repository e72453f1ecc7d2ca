//! What can go wrong.

use arbor_tree::ReadError;

use crate::{Path, RecordError};

/// Why a tree could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// Keys that do not ascend: also one that occurs twice.
    #[error("key {0} does not follow the one before it: keys must ascend")]
    Order(Path),
    /// A key that begins another one, or begins with another one.
    #[error("key {0} begins another key, or begins with one: keys must be free of prefixes")]
    Prefix(Path),
    /// A key without bytes, or with a part of a byte.
    #[error("key {0} is not a number of whole bytes")]
    NoKey(Path),
    /// A record that the one above refers to, but the reader does not have.
    #[error("the record at path {0} is missing")]
    MissingRecord(Path),
    /// A node that a witness should have.
    #[error("the witness does not have the node with hash {} at path {path}", const_hex::encode(.hash))]
    MissingNode {
        /// The path down to the bit before it.
        path: Path,
        /// Its hash.
        hash: crate::Hash,
    },
    /// A record that is not one.
    #[error("the record at path {path}: {error}")]
    Record {
        /// Where it lies.
        path: Path,
        /// What is wrong.
        error: RecordError,
    },
    /// The reader failed.
    #[error(transparent)]
    Read(#[from] ReadError),
}

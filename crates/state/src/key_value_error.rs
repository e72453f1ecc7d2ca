//! Why keys and values cannot be read, changed or proven.

use alloy_primitives::B256;

use crate::StateError;

/// Why keys and values cannot be read, changed or proven.
#[derive(Debug, thiserror::Error)]
pub enum KeyValueError {
    /// The tree commits to accounts alone.
    #[error("the tree {tree} has no keys and values without accounts")]
    AccountsAlone {
        /// Its name.
        tree: &'static str,
    },
    /// A batch has a key twice.
    #[error("key {0} occurs twice in the batch")]
    Twice(B256),
    /// A key was to be deleted from a tree that keeps every leaf.
    #[error("key {key} cannot be deleted: the tree {tree} keeps every leaf")]
    CannotDelete {
        /// The key.
        key: B256,
        /// The name of the tree.
        tree: &'static str,
    },
    /// A proof of no keys was asked for.
    #[error("a proof needs at least one key")]
    NoKeys,
    /// The database has no version yet.
    #[error("the database has no version yet: a first batch makes one")]
    NoVersion,
    /// The database cannot be read or written.
    #[error(transparent)]
    State(#[from] StateError),
}

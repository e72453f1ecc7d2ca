//! What can go wrong with an update or a build.

use crate::{NodeKey, RecordError, Stem};
use arbor_tree::ReadError;

/// Why a tree could not be updated, built or proven.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The store could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A node that its parent names is not there.
    #[error("the node at {0} is missing")]
    Missing(NodeKey),
    /// A node's record is malformed.
    #[error("the record of the node at {key}: {error}")]
    Record {
        /// The node.
        key: NodeKey,
        /// What is wrong.
        error: RecordError,
    },
    /// Stems, or the suffixes under one, do not ascend.
    #[error("stems or suffixes do not ascend at stem {}", hex(.0))]
    Order(Stem),
    /// A proof of no keys.
    #[error("a proof of no keys")]
    NoKeys,
    /// An update says of a value that it was there, or that it was not, and the tree has it otherwise.
    #[error("the old value of suffix {suffix} under stem {} is said to be {}, and the tree has it otherwise", hex(.stem), presence(.said))]
    Old {
        /// The stem.
        stem: Stem,
        /// The suffix.
        suffix: u8,
        /// Whether the update says that there was a value.
        said: bool,
    },
    /// One of several updates that are applied together removes a value.
    #[error("suffix {suffix} under stem {} is removed by one of several updates applied together", hex(.stem))]
    Removed {
        /// The stem.
        stem: Stem,
        /// The suffix.
        suffix: u8,
    },
}

fn presence(said: &bool) -> &'static str {
    if *said { "present" } else { "absent" }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

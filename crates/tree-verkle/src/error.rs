//! What can go wrong with a record, an update or a build.

use crate::{NodeKey, Stem};
use arbor_ipa::DecodingError;
use arbor_tree::ReadError;

/// A record that is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecordError {
    /// The first byte is none that a node of this place begins with.
    #[error("its first byte is {0:#04x}")]
    Tag(u8),
    /// Bytes are missing, left over, or not as they are written.
    #[error("its {0} are malformed")]
    Part(&'static str),
    /// A point is none.
    #[error("a point of it: {0}")]
    Point(#[from] DecodingError),
    /// The image of a point is not a reduced scalar.
    #[error("an image is not below the group's order")]
    Image,
    /// A leaf where an internal node was due, or the other way round.
    #[error("it is {0}")]
    Kind(&'static str),
}

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

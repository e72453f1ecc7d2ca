//! What can go wrong while a trie is read or changed.

use arbor_tree::{Hash, Path, Position, ReadError};

use crate::node::NodeError;
use crate::record::RecordError;

/// Why updates could not be applied, or a trie not be read.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// Outer updates must ascend strictly by key.
    #[error("outer update {index} does not come after the one before it by key")]
    UnsortedOuter {
        /// Index of the first update that is out of order.
        index: usize,
    },
    /// Inner updates must ascend strictly by key.
    #[error("inner update {index} of outer update {outer} does not come after the one before it")]
    UnsortedInner {
        /// Index of the outer update.
        outer: usize,
        /// Index of the first inner update that is out of order.
        index: usize,
    },
    /// Keys given to a bulk build must ascend strictly.
    #[error("the key 0x{} does not come after the one before it", Path::from_key(.key))]
    UnsortedKey {
        /// The first key that is out of order.
        key: Hash,
    },
    /// A part of a trie that was built apart has keys among those of another.
    #[error("the part from key 0x{} on and the one before it are not apart", Path::from_key(.key))]
    MixedParts {
        /// The first key of the later part.
        key: Hash,
    },
    /// A trie holds no empty values, and a template's hole must lie within its bytes.
    #[error("outer update {outer}: {reason}")]
    BadValue {
        /// Index of the outer update.
        outer: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// A value given to a bulk build is empty.
    #[error("the value of key 0x{} is empty", Path::from_key(.key))]
    EmptyValue {
        /// Its key.
        key: Hash,
    },
    /// An update says that its key was there before, but it was not.
    #[error(
        "the update of key 0x{} says that the key existed, but {position} leads elsewhere",
        Path::from_key(.key)
    )]
    NotThere {
        /// The key.
        key: Hash,
        /// Where the search for it ended.
        position: Position,
    },
    /// An update says that its key was not there before, but it was.
    #[error(
        "the update of key 0x{} says that the key is new, but there is a leaf of it at {position}",
        Path::from_key(.key)
    )]
    There {
        /// The key.
        key: Hash,
        /// Where its leaf is.
        position: Position,
    },
    /// A node that its parent refers to is missing.
    #[error("the node at {position} is missing")]
    MissingNode {
        /// Where it should hang.
        position: Position,
    },
    /// A leaf that its parent refers to is missing, or the reader gave one from elsewhere.
    #[error("the leaf at {position} is missing")]
    MissingLeaf {
        /// Where it should hang.
        position: Position,
    },
    /// A stored record is malformed.
    #[error("the node at {position}: {error}")]
    Record {
        /// Where it hangs.
        position: Position,
        /// What is wrong.
        error: RecordError,
    },
    /// An inlined node is malformed.
    #[error("the node inlined at {position}: {error}")]
    Node {
        /// Where it hangs.
        position: Position,
        /// What is wrong.
        error: NodeError,
    },
    /// A node or leaf read does not have the hash that its parent says.
    #[error("the node at {position} does not have the hash that its parent says")]
    WrongHash {
        /// Where it hangs.
        position: Position,
    },
    /// A node reaches deeper than keys are long.
    #[error("the node at {position} reaches deeper than a key is long")]
    TooDeep {
        /// Where it hangs.
        position: Position,
    },
    /// The reader failed.
    #[error(transparent)]
    Read(#[from] ReadError),
}

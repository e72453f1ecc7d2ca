//! What can go wrong.

use arbor_tree::{Path, ReadError};

use crate::{Hash, RecordError};

/// Why a tree could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// Keys that do not ascend: also one that occurs twice.
    #[error("key {} does not follow the one before it: keys must ascend", const_hex::encode(.0))]
    Order(Hash),
    /// A leaf with index 0, which stands for no leaf.
    #[error("leaf {} has index 0: indices begin with 1", const_hex::encode(.0))]
    Index(Hash),
    /// A leaf that is said to be there, but is not.
    #[error("leaf {} should be in the tree, but is not", const_hex::encode(.0))]
    Missing(Hash),
    /// A leaf that is said not to be there, but is.
    #[error("leaf {} should not be in the tree, but is", const_hex::encode(.0))]
    Present(Hash),
    /// A node that its parent knows, but the reader does not.
    #[error("the node at path {0} is missing")]
    MissingNode(Path),
    /// A leaf that its parent knows, but the reader does not, or another one.
    #[error("there is no leaf below path {0}, where the node above has one")]
    MissingLeaf(Path),
    /// A record that is not one.
    #[error("the node at path {path}: {error}")]
    Record {
        /// Where it hangs.
        path: Path,
        /// What is wrong.
        error: RecordError,
    },
    /// Parts to join that do not ascend, or are not right below the path.
    #[error(
        "the part at path {0} does not follow the one before it below the path that they are joined at"
    )]
    Parts(Path),
    /// A leaf of another part.
    #[error("leaf {} does not begin with the path of its part", const_hex::encode(.0))]
    OtherPart(Hash),
    /// The reader failed.
    #[error(transparent)]
    Read(#[from] ReadError),
}

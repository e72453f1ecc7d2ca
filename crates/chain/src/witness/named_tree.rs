//! The tree that a witness is of.

use serde::{Deserialize, Serialize};

/// A tree whose roots no header has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NamedTree {
    /// Its name.
    pub name: String,
    /// The name of its hash function.
    pub hash: String,
}

//! How the tree reads what it needs.

use std::sync::Arc;

use arbor_tree::{Path, ReadError};

use crate::{Entry, Hash};

/// A leaf as the caller keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredLeaf {
    /// Its key.
    pub key: Hash,
    /// What it holds.
    pub entry: Entry,
}

/// Reads nodes and leaves of one tree.
pub trait Reader: Sync {
    /// The records of nodes, in the order of the paths; `None` where there is none.
    ///
    /// # Errors
    /// Whatever kept them from being read.
    fn nodes(&self, paths: &[Path]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError>;

    /// The first leaf below each path; `None` where there is none. It is asked for where the tree knows that there is exactly one.
    ///
    /// # Errors
    /// Whatever kept them from being read.
    fn leaves_below(&self, paths: &[Path]) -> Result<Vec<Option<StoredLeaf>>, ReadError>;

    /// What the leaf with a key holds; `None` if there is none. It is asked for where another leaf can hardly be.
    ///
    /// # Errors
    /// Whatever kept it from being read.
    fn leaf(&self, key: &Hash) -> Result<Option<Entry>, ReadError> {
        let found = self.leaves_below(&[Path::from_key(key)])?.pop().flatten();
        Ok(found.map(|leaf| leaf.entry))
    }
}

impl<R: Reader + ?Sized> Reader for &R {
    fn nodes(&self, paths: &[Path]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        (**self).nodes(paths)
    }

    fn leaves_below(&self, paths: &[Path]) -> Result<Vec<Option<StoredLeaf>>, ReadError> {
        (**self).leaves_below(paths)
    }

    fn leaf(&self, key: &Hash) -> Result<Option<Entry>, ReadError> {
        (**self).leaf(key)
    }
}

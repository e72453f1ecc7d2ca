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

    /// What the leaves with these keys hold; `None` where there is none. They are asked for where other leaves can hardly be.
    ///
    /// # Errors
    /// Whatever kept them from being read.
    fn leaves(&self, keys: &[Hash]) -> Result<Vec<Option<Entry>>, ReadError> {
        let paths: Vec<Path> = keys.iter().map(Path::from_key).collect();
        let found = self.leaves_below(&paths)?.into_iter();
        Ok(found.map(|leaf| Some(leaf?.entry)).collect())
    }
}

impl<R: Reader + ?Sized> Reader for &R {
    fn nodes(&self, paths: &[Path]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        (**self).nodes(paths)
    }

    fn leaves_below(&self, paths: &[Path]) -> Result<Vec<Option<StoredLeaf>>, ReadError> {
        (**self).leaves_below(paths)
    }

    fn leaves(&self, keys: &[Hash]) -> Result<Vec<Option<Entry>>, ReadError> {
        (**self).leaves(keys)
    }
}

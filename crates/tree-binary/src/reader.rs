//! How the tree reads what it needs.

use std::collections::HashMap;
use std::sync::Arc;

use arbor_tree::ReadError;
use foldhash::fast::RandomState;

use crate::{NodeChange, Path};

/// Reads records of one tree.
pub trait Reader: Sync {
    /// Returns the records, in the order of the paths; `None` where there is none.
    ///
    /// # Errors
    /// Whatever kept them from being read.
    fn records(&self, paths: &[Path]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError>;
}

impl<R: Reader + ?Sized> Reader for &R {
    fn records(&self, paths: &[Path]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        (**self).records(paths)
    }
}

/// The simplest reader: records in memory.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct MemoryRecords(HashMap<Path, Arc<[u8]>, RandomState>);

impl MemoryRecords {
    /// Takes over what an update made of the records.
    pub fn change(&mut self, changes: impl IntoIterator<Item = NodeChange>) {
        for NodeChange { path, record } in changes {
            match record {
                Some(record) => drop(self.0.insert(path, record)),
                None => drop(self.0.remove(&path)),
            }
        }
    }

    /// All records.
    #[must_use]
    pub fn records(&self) -> &HashMap<Path, Arc<[u8]>, RandomState> {
        &self.0
    }

    /// Forgets a record.
    pub(crate) fn forget(&mut self, path: &Path) {
        self.0.remove(path);
    }

    /// Takes out the records that are not to be kept.
    pub(crate) fn take_unless(&mut self, keep: impl Fn(&Path) -> bool) -> Vec<(Path, Arc<[u8]>)> {
        self.0.extract_if(|path, _| !keep(path)).collect()
    }
}

impl Reader for MemoryRecords {
    fn records(&self, paths: &[Path]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        Ok(paths.iter().map(|path| self.0.get(path).cloned()).collect())
    }
}

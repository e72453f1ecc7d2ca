//! Building a tree from all its leaves, which come in their order.

use std::sync::Arc;

use crate::apply::apply;
use crate::reader::MemoryRecords;
use crate::{Hash, Hasher, LeafUpdate, NodeChange, Packing, Path, TreeError, TreeStats};

/// Leaves that are merged and hashed together.
const TOGETHER: usize = 1 << 16;

/// A tree that grows by leaves ascending by key. Only the records on the way to the last leaf are in memory: no later leaf lies below any other.
///
/// ```
/// use arbor_tree_eip8297::{Builder, Hasher, Packing, Path};
///
/// let mut builder = Builder::new(Hasher::blake3(), Packing::default());
/// let mut records = 0;
/// let mut sink = |_path, _record| records += 1;
/// for number in 0..100u8 {
///     let key = Path::of_key(&[&[0][..], &[number; 33]].concat())?;
///     builder.add(key, [7; 32], &mut sink)?;
/// }
/// let root = builder.finish(&mut sink)?;
/// assert_ne!(root, [0; 32]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Builder {
    hasher: Hasher,
    packing: Packing,
    waiting: Vec<LeafUpdate>,
    last: Option<Path>,
    /// The records on the way to the last leaf.
    spine: MemoryRecords,
    root: Hash,
    stats: TreeStats,
}

/// Takes the path of a record and the record. Each path comes once.
pub type Sink<'a> = &'a mut dyn FnMut(Path, Arc<[u8]>);

impl Builder {
    /// A tree without leaves.
    #[must_use]
    pub fn new(hasher: Hasher, packing: Packing) -> Self {
        Self {
            hasher,
            packing,
            waiting: Vec::new(),
            last: None,
            spine: MemoryRecords::default(),
            root: [0; 32],
            stats: TreeStats::default(),
        }
    }

    /// Adds a leaf behind all others. A value of zeros is no leaf.
    ///
    /// # Errors
    /// Keys that do not ascend or are not free of prefixes.
    pub fn add(&mut self, key: Path, value: Hash, sink: Sink<'_>) -> Result<(), TreeError> {
        if value == [0; 32] {
            return Ok(());
        }
        if self.last.is_some_and(|last| last >= key) {
            return Err(TreeError::Order(key));
        }
        self.last = Some(key);
        self.waiting.push(LeafUpdate { key, value });
        match self.waiting.len() == TOGETHER {
            true => self.grow(sink),
            false => Ok(()),
        }
    }

    /// Gives out the records that are left, and returns the root.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn finish(mut self, sink: Sink<'_>) -> Result<Hash, TreeError> {
        self.grow(sink)?;
        for (path, record) in self.spine.take_unless(|_| false) {
            sink(path, record);
        }
        Ok(self.root)
    }

    /// What has been done so far.
    #[must_use]
    pub fn stats(&self) -> TreeStats {
        self.stats
    }

    fn grow(&mut self, sink: Sink<'_>) -> Result<(), TreeError> {
        let waiting = std::mem::take(&mut self.waiting);
        let Some(last) = self.last.filter(|_| !waiting.is_empty()) else {
            return Ok(());
        };
        let update = apply(&self.spine, self.hasher, self.packing, &waiting)?;
        self.root = update.root;
        self.stats.leaf_hashes += update.stats.leaf_hashes;
        self.stats.branch_hashes += update.stats.branch_hashes;
        for change in update.nodes {
            match change.record {
                Some(record) if !change.path.is_prefix_of(&last) => {
                    self.spine.forget(&change.path);
                    sink(change.path, record);
                }
                record => self.spine.change([NodeChange { record, ..change }]),
            }
        }
        for (path, record) in self.spine.take_unless(|path| path.is_prefix_of(&last)) {
            sink(path, record);
        }
        self.waiting = waiting;
        self.waiting.clear();
        Ok(())
    }
}

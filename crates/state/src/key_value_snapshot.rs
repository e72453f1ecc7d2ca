//! Keys and values frozen, for other threads and other processes; the check of a whole database.

use std::sync::Arc;

use alloy_primitives::B256;
use arbor_state_tree::Check;
use arbor_store::Reader;
use arbor_versions::{DirLock, DirReader, Meta, RecordCounts, Snapshot, TableSpec, Version};

use crate::key_value_version::key_value;
use crate::{KeyValueError, KeyValueVersion, Scratch, StateError, StateSnapshot, Tree, roots};

/// A version of keys and values and the retained ones before it, which stay as they are while later
/// ones are committed, flushed and pruned. Any number of threads may read it.
#[derive(Clone, Debug)]
pub struct KeyValueSnapshot {
    pub(crate) snapshot: StateSnapshot,
}

/// What a check of a whole database found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct KeyValueReport {
    /// Entries of the latest version.
    pub entries: u64,
    /// Nodes that were rebuilt and compared.
    pub nodes: u64,
    /// Older versions that were rebuilt, down to their roots.
    pub versions: u64,
    /// Records of versions: metas, undo, indexes.
    pub records: RecordCounts,
    /// Faults.
    pub fault_count: u64,
    /// The first hundred faults, each naming what is wrong and where.
    pub faults: Vec<String>,
}

impl KeyValueReport {
    /// Returns whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.fault_count == 0
    }
}

impl KeyValueSnapshot {
    /// Opens keys and values for reading alone, at the last flushed version. `dir` is the directory
    /// of the head record, which was looked at before the store was opened; none for a store in
    /// memory.
    ///
    /// # Errors
    /// A tree with accounts alone; a store of another tree, hash or layout, or one with accounts;
    /// an older copy of the store than the head record says.
    pub fn open(
        base: Arc<dyn Reader>,
        dir: Option<DirReader>,
        tree: Tree,
    ) -> Result<Self, KeyValueError> {
        let tables = key_value(&*tree)?.tables();
        let identity = tree.key_value_identity();
        let versions = Snapshot::open(base, dir, &identity, tables).map_err(StateError::from)?;
        let snapshot = StateSnapshot {
            versions,
            tree,
            rewinds: None,
        };
        Ok(Self { snapshot })
    }

    /// Has versions that lie too far back for memory made in stores of their own, as
    /// [`StateSnapshot::with_scratch`] does.
    #[must_use]
    pub fn with_scratch(self, scratch: Scratch) -> Self {
        Self {
            snapshot: self.snapshot.with_scratch(scratch),
        }
    }

    /// Returns the latest version.
    ///
    /// # Errors
    /// A database without a version.
    pub fn latest(&self) -> Result<KeyValueVersion<'_>, KeyValueError> {
        KeyValueVersion::latest(self.snapshot.reader())
    }

    /// Returns a retained version.
    ///
    /// # Errors
    /// A version that is not retained; the store's errors.
    pub fn at(&self, version: Version) -> Result<KeyValueVersion<'_>, KeyValueError> {
        KeyValueVersion::at(self.snapshot.reader(), version)
    }

    /// Returns the newest retained version with a root. Looks at the versions one after another,
    /// newest first.
    ///
    /// # Errors
    /// No retained version with the root; the store's errors.
    pub fn at_root(&self, root: B256) -> Result<KeyValueVersion<'_>, KeyValueError> {
        KeyValueVersion::at_root(self.snapshot.reader(), root)
    }

    /// Returns the root of the latest version; that of the empty tree if there is none.
    pub fn root(&self) -> B256 {
        self.snapshot.reader().root()
    }

    /// Returns the record of the latest version; `None` if there is none.
    pub fn meta(&self) -> Option<&Meta> {
        self.snapshot.reader().meta()
    }

    /// Returns the tables of the database.
    pub fn tables(&self) -> &'static [TableSpec] {
        let key_value = self.snapshot.tree.key_value();
        key_value.map_or(&[], |key_value| key_value.tables())
    }

    /// Writes the head record of a directory anew from what the store there says, as
    /// [`Snapshot::rebuild_head_file`] does.
    ///
    /// # Errors
    /// Those of files.
    pub fn rebuild_head_file(&self, lock: &DirLock) -> Result<(), KeyValueError> {
        let StateSnapshot { versions, tree, .. } = &self.snapshot;
        let identity = tree.key_value_identity();
        let written = versions.rebuild_head_file(lock, &identity);
        Ok(written.map_err(StateError::from)?)
    }

    /// Checks the whole database: rebuilds every node from the entries, rebuilds every retained
    /// version from its undo records and compares the root, and compares the records of versions
    /// with each other. Uses the threads of the caller's rayon pool.
    ///
    /// # Errors
    /// What stops the check: a store that cannot be read. Everything wrong in what was read is in
    /// the report.
    pub fn verify(&self) -> Result<KeyValueReport, KeyValueError> {
        let StateSnapshot { versions, tree, .. } = &self.snapshot;
        let key_value = key_value(&**tree)?;
        let check = Check::new(versions.view(), key_value.tables(), 256, &|_| {});
        let check = check.with_rewind(self.snapshot.rewind());
        let (entries, records) = rayon::join(
            || {
                key_value.check(&check)?;
                roots::check(&check, false)
            },
            || {
                check.history(&**tree)?;
                let records =
                    versions.verify_records(&mut |_| Ok(()), &mut |fault| check.tell_fault(fault));
                Ok::<_, StateError>(records?)
            },
        );
        entries?;
        let records = records?;
        let report = check.into_report();
        Ok(KeyValueReport {
            entries: report.slots,
            nodes: report.nodes,
            versions: report.versions,
            records,
            fault_count: report.fault_count,
            faults: report.faults,
        })
    }
}

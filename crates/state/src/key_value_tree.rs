//! A database of keys and values without accounts.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use alloy_primitives::B256;
use arbor_store::Store;
use arbor_verify::Proof;
use arbor_versions::{DirLock, Options, PruneStats, Retain, Version};

use crate::key_value_version::key_value;
use crate::{
    BlockRef, Computed, KeyValueEntry, KeyValueError, KeyValueReport, KeyValueSnapshot,
    KeyValueVersion, KeyValueWrite, Scratch, State, Tree,
};

/// Keys and values of 32 bytes under a tree, with history and proofs.
///
/// Each batch makes a version. As long as a version is retained it can be read, proven and rolled
/// back to. Versions reach the disk with the next [flush](Self::flush); a crash leaves the last flushed
/// version, and so does dropping the tree.
///
/// | | AR16MT (amortized radix-16 Merkle tree) | EIP-8297 |
/// |---|---|---|
/// | insert, update | yes | yes; a value of 32 zero bytes deletes |
/// | delete | no: [`KeyValueError::CannotDelete`] | yes |
/// | index of an entry | from 1 on, in the order in which keys came, within a batch in its order | none |
/// | the root depends on | entries and their indices | entries alone |
pub struct KeyValueTree {
    state: State,
}

impl fmt::Debug for KeyValueTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyValueTree")
            .field(&self.state.reader())
            .finish()
    }
}

impl KeyValueTree {
    /// Opens or creates a database in a store. `lock` is that of the directory of the head record;
    /// `None` for a store in memory.
    ///
    /// # Errors
    /// A tree with accounts alone; a store of another tree, hash or layout, or one with accounts;
    /// an older copy of the store than the head record says; the store's errors.
    pub fn open(
        store: Arc<dyn Store>,
        lock: Option<DirLock>,
        tree: Tree,
        options: Options,
    ) -> Result<Self, KeyValueError> {
        let made_as = (tree.key_value_identity(), key_value(&*tree)?.tables());
        let state = State::open_as(store, lock, tree, made_as, options)?;
        Ok(Self { state })
    }

    /// Has snapshots make versions that lie too far back for memory in temporary stores, and long
    /// ways back go in steps, as [`State::with_scratch`] does.
    #[must_use]
    pub fn with_scratch(self, scratch: Scratch) -> Self {
        Self {
            state: self.state.with_scratch(scratch),
        }
    }

    /// Returns the latest version's number; `None` before the first batch.
    pub fn version(&self) -> Option<Version> {
        self.state.head().map(|head| head.version)
    }

    /// Returns the latest version's root; that of the empty tree before the first batch.
    pub fn root(&self) -> B256 {
        self.state.root()
    }

    /// Returns the tree that commits to the entries.
    pub fn tree(&self) -> &Tree {
        self.state.tree()
    }

    /// Applies a batch on top of the latest version and returns the root. The batch is a version,
    /// also if it changes nothing.
    ///
    /// # Errors
    /// Those of [`compute`](Self::compute) and [`commit`](Self::commit). Nothing is changed then.
    pub fn extend(&mut self, batch: &[KeyValueWrite]) -> Result<B256, KeyValueError> {
        let computed = self.compute(batch)?;
        let root = computed.root();
        self.commit(computed)?;
        Ok(root)
    }

    /// Computes what a batch on top of the latest version makes of the tree, without changing
    /// anything. Spreads a large batch over the caller's rayon pool, like [`State::compute`].
    ///
    /// # Errors
    /// A key that occurs twice; a deletion under a tree that keeps every leaf; the store's errors.
    pub fn compute(&self, batch: &[KeyValueWrite]) -> Result<Computed, KeyValueError> {
        let tree = self.state.tree();
        let key_value = key_value(&**tree)?;
        let mut keys = HashSet::with_capacity(batch.len());
        for KeyValueWrite { key, value } in batch {
            if !keys.insert(key) {
                return Err(KeyValueError::Twice(*key));
            }
            if value.is_none() && !key_value.can_delete() {
                let (key, tree) = (*key, tree.kind().name);
                return Err(KeyValueError::CannotDelete { key, tree });
            }
        }
        Ok(key_value.compute(self.state.versions().view(), batch)?)
    }

    /// Makes a computed batch the latest version. It reaches the disk with the next
    /// [`flush`](Self::flush).
    ///
    /// # Errors
    /// [`StateError::OtherDatabase`](crate::StateError::OtherDatabase) if the batch was not computed
    /// on this tree since it was opened; [`StateError::Stale`](crate::StateError::Stale) if it was
    /// computed on another version than the latest; the store's errors.
    pub fn commit(&mut self, computed: Computed) -> Result<Version, KeyValueError> {
        let version = self.version().map_or(0, |version| version.0 + 1);
        self.state
            .commit(&BlockRef::new(version, B256::ZERO), computed)?;
        Ok(Version(version))
    }

    /// Returns what a key has at the latest version; `None` if it is absent.
    ///
    /// # Errors
    /// The store's errors; a damaged record.
    pub fn get(&self, key: B256) -> Result<Option<KeyValueEntry>, KeyValueError> {
        match self.version() {
            None => Ok(None),
            Some(_) => self.latest()?.get(key),
        }
    }

    /// Proves keys, present or absent, at the latest version.
    ///
    /// # Errors
    /// A database without a version; those of [`KeyValueVersion::prove`].
    pub fn prove(&self, keys: &[B256]) -> Result<Box<dyn Proof>, KeyValueError> {
        self.latest()?.prove(keys)
    }

    /// Returns the latest version.
    ///
    /// # Errors
    /// A database without a version.
    pub fn latest(&self) -> Result<KeyValueVersion<'_>, KeyValueError> {
        KeyValueVersion::latest(self.state.reader())
    }

    /// Returns a retained version.
    ///
    /// # Errors
    /// A version that is not retained; the store's errors.
    pub fn at(&self, version: Version) -> Result<KeyValueVersion<'_>, KeyValueError> {
        KeyValueVersion::at(self.state.reader(), version)
    }

    /// Returns the newest retained version with a root. Looks at the versions one after another,
    /// newest first.
    ///
    /// # Errors
    /// No retained version with the root; the store's errors.
    pub fn at_root(&self, root: B256) -> Result<KeyValueVersion<'_>, KeyValueError> {
        KeyValueVersion::at_root(self.state.reader(), root)
    }

    /// Freezes what can be read now, for other threads.
    ///
    /// # Errors
    /// The store's errors.
    pub fn snapshot(&mut self) -> Result<KeyValueSnapshot, KeyValueError> {
        let snapshot = self.state.snapshot()?;
        Ok(KeyValueSnapshot { snapshot })
    }

    /// Returns to a retained version. Later ones are gone. Durable on return.
    ///
    /// # Errors
    /// A version that is not retained; the store's errors.
    pub fn rollback(&mut self, to: Version) -> Result<(), KeyValueError> {
        Ok(self.state.rollback(to)?)
    }

    /// Forgets the history that `retain` does not cover.
    ///
    /// # Errors
    /// The store's errors.
    pub fn prune(&mut self, retain: Retain) -> Result<PruneStats, KeyValueError> {
        Ok(self.state.prune(retain)?)
    }

    /// Writes all versions to the store and makes them durable.
    ///
    /// # Errors
    /// The store's errors. Nothing is lost from memory.
    pub fn flush(&mut self) -> Result<(), KeyValueError> {
        Ok(self.state.flush()?)
    }

    /// Checks the whole database, as [`KeyValueSnapshot::verify`] does.
    ///
    /// # Errors
    /// Those of [`KeyValueSnapshot::verify`].
    pub fn verify(&mut self) -> Result<KeyValueReport, KeyValueError> {
        self.snapshot()?.verify()
    }
}

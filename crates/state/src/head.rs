//! Reading a database: its head, as execution does, and the way to its past.

use std::fmt;
use std::time::Instant;

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_versions::{Meta, View};

use crate::{Account, HeadId, IntermediateRoots, ReadError, StateError, StateView, Tree};
use arbor_state_tree::Ahead;
use arbor_state_tree::{CODE, Rewind};

/// The latest version of a database and the retained ones before it, for reading: of the writer
/// ([`State::reader`](crate::State::reader)), or frozen ([`StateSnapshot`](crate::StateSnapshot)).
#[derive(Clone, Copy)]
pub struct Head<'a> {
    view: View<'a>,
    tree: &'a Tree,
    rewind: Option<&'a dyn Rewind>,
}

impl<'a> Head<'a> {
    pub(crate) fn new(view: View<'a>, tree: &'a Tree) -> Self {
        Self {
            view,
            tree,
            rewind: None,
        }
    }

    pub(crate) fn rewound_by(self, rewind: Option<&'a dyn Rewind>) -> Self {
        Self { rewind, ..self }
    }

    pub(crate) fn rewind(self) -> Option<&'a dyn Rewind> {
        self.rewind
    }

    /// Has every read fail from a moment on; see [`View::until`]. What is rebuilt of an older version
    /// then comes to an end.
    #[must_use]
    pub fn until(self, deadline: Instant) -> Self {
        Self {
            view: self.view.until(deadline),
            ..self
        }
    }

    /// The latest version: its block, its root; `None` before genesis.
    pub fn meta(self) -> Option<&'a Meta> {
        self.view.head()
    }

    /// The root of the latest version; that of the empty tree before genesis.
    pub fn root(self) -> B256 {
        self.meta()
            .map_or(self.tree.empty_root(), |meta| meta.root.into())
    }

    /// The tree that commits to the state.
    pub fn tree(self) -> &'a Tree {
        self.tree
    }

    /// The versioned tables below.
    pub fn view(self) -> View<'a> {
        self.view
    }

    /// Roots of changes laid over the latest version, for receipts from before Byzantium; none of a tree other than the
    /// one that those receipts mean.
    pub fn intermediate_roots(self) -> Option<Box<dyn IntermediateRoots + 'a>> {
        Some(self.tree.inner_roots()?.at_head(self.view))
    }

    /// Computes the Merkle-Patricia root, which headers carry, from the flat tables alone, reading no node, on the threads of the
    /// caller's pool.
    ///
    /// # Errors
    /// The store's errors, and the first record that is not what its table promises.
    pub fn flat_root(self) -> Result<B256, StateError> {
        let tree = self.tree;
        tree.records()
            .root(&Ahead::of(self.view), tree.sort_bytes())
    }
}

impl fmt::Debug for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head")
            .field("tree", &self.tree.kind().name)
            .field("head", &self.meta().map(HeadId::of))
            .finish()
    }
}

impl StateView for Head<'_> {
    fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
        Ok(self.tree.records().account(&self.view, address)?)
    }

    fn accounts(&self, addresses: &[Address]) -> Result<Vec<Option<Account>>, ReadError> {
        Ok(self.tree.records().accounts(&self.view, addresses)?)
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError> {
        Ok(self.tree.records().storage(&self.view, address, slot)?)
    }

    fn has_storage(&self, address: Address) -> Result<bool, ReadError> {
        Ok(self.tree.records().has_storage(&self.view, address)?)
    }

    fn expect(&self, accounts: &[Address], slots: &[(Address, U256)]) {
        for (table, keys) in self.tree.records().keys(accounts, slots) {
            let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            // What is found stays in the cache below, or at least in the system's.
            let _ = self.view.multi_get(table, &keys);
        }
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        match self
            .view
            .get(CODE, code_hash.as_slice())
            .map_err(ReadError::below)?
        {
            Some(bytes) => Ok(Bytes::copy_from_slice(&bytes)),
            None => Err(ReadError::MissingCode(code_hash)),
        }
    }
}

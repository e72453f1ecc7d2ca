//! Opening a database in one call.

use std::path::Path;

use arbor_state::{Network, Registry, State, StateSnapshot, Tree, TreeKind};
use arbor_versions::{HeadFile, Retain};

use crate::folder::{Folder, NO_CHAIN};
use crate::open::{Remembered, in_memory};
use crate::tree_settings::TreeSettings;
use crate::{Budget, DatabaseError, StoreKind};

/// Bytes for everything together if none are asked for.
const MEMORY: u64 = 256 << 20;

/// How a database is opened, or made if its folder has none.
///
/// A folder remembers its tree, hash function, network, history and the settings of its nodes. An option that is not set is what the folder
/// remembers; one that contradicts the folder is an error.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    pub(crate) trees: Registry,
    tree: Option<String>,
    hash: Option<String>,
    tree_settings: Vec<String>,
    store: Option<StoreKind>,
    network: Option<Network>,
    retain: Option<Retain>,
    create_if_missing: bool,
    pub(crate) budget: Budget,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl OpenOptions {
    /// The usual options: a new database has the Merkle-Patricia tree, the first store that the crate is built with, no chain, and keeps
    /// [`RETAINED`](crate::RETAINED) versions. Memory is 256 MiB.
    #[must_use]
    pub fn new() -> Self {
        Self {
            trees: arbor_trees::standard(),
            tree: None,
            hash: None,
            tree_settings: Vec::new(),
            store: None,
            network: None,
            retain: None,
            create_if_missing: true,
            budget: Budget::new(MEMORY),
        }
    }

    /// Sets the trees by whose names databases are opened. Without this call they are the trees that the crate is built with.
    #[must_use]
    pub fn trees(mut self, trees: Registry) -> Self {
        self.trees = trees;
        self
    }

    /// Sets the tree by its name, for example `"verkle"`.
    #[must_use]
    pub fn tree(mut self, name: impl Into<String>) -> Self {
        self.tree = Some(name.into());
        self
    }

    /// Sets the hash function of a tree that has several, for example `"sha256"`.
    #[must_use]
    pub fn hash(mut self, name: impl Into<String>) -> Self {
        self.hash = Some(name.into());
        self
    }

    /// Adds a setting of the tree, by name or as `name=NUMBER`.
    #[must_use]
    pub fn tree_setting(mut self, setting: impl Into<String>) -> Self {
        self.tree_settings.push(setting.into());
        self
    }

    /// Sets the store of a new database.
    #[must_use]
    pub fn store(mut self, store: StoreKind) -> Self {
        self.store = Some(store);
        self
    }

    /// Sets the chain that a new database belongs to.
    #[must_use]
    pub fn network(mut self, network: Network) -> Self {
        self.network = Some(network);
        self
    }

    /// Sets the history that can be read, proven and rolled back.
    #[must_use]
    pub fn retain(mut self, retain: Retain) -> Self {
        self.retain = Some(retain);
        self
    }

    /// Keeps the nodes of all versions from the latest on, so that proofs of retained versions are look-ups; a database that keeps them goes on to. Without it a proof computes
    /// nodes from all that changed since. See [`State::keep_nodes_back`] for versions from before.
    #[must_use]
    pub fn history_proofs(mut self) -> Self {
        self.budget.history_proofs = true;
        self
    }

    /// Sets the bytes of memory for caches, unflushed changes and the store's tables together.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.budget.memory = bytes;
        self
    }

    /// Sets whether a folder that has no database gets one, as it does without this call. With `false` a
    /// path that is wrong is an error, and nothing is made there.
    #[must_use]
    pub fn create_if_missing(mut self, create: bool) -> Self {
        self.create_if_missing = create;
        self
    }

    /// Sets whether every commit is durable before it returns. Without it, commits are durable with the next [`State::flush`].
    #[must_use]
    pub fn durable(mut self, durable: bool) -> Self {
        self.budget.durable = durable;
        self
    }

    /// Opens the database in a folder for writing and locks the folder. Makes the folder and the database if there is none, unless
    /// [`create_if_missing`](Self::create_if_missing) forbids it.
    ///
    /// # Errors
    /// A folder without a database, if none is to be made;
    /// A tree that the registry does not have; a database of another tree, hash function, network or settings; a folder that another process
    /// writes; a database whose load, recovery or conversion did not finish; errors of the store.
    pub fn open(&self, dir: impl AsRef<Path>) -> Result<State, DatabaseError> {
        let folder = Folder::new(dir.as_ref(), &self.trees);
        let kind = self.kind(folder)?;
        folder.check_tree(kind)?;
        let found = folder.head_file().ok();
        let network = self.network.or(found.as_ref().map(network_of));
        let network = network.unwrap_or(NO_CHAIN);
        self.open_agreed(folder, kind, |made_of, budget| {
            folder.open_or_create(made_of, network, budget)
        })
    }

    /// Has a database opened with the store, the tree and the budget on which options and folder
    /// agree, and the folder remember the options.
    pub(crate) fn open_agreed<T>(
        &self,
        folder: Folder<'_>,
        kind: &'static TreeKind,
        open: impl FnOnce((StoreKind, Tree), Budget) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        if !self.create_if_missing {
            folder.must_have_database()?;
        }
        let store = self.store.or(folder.store()).or(StoreKind::usual());
        let store = store.ok_or(DatabaseError::NoStoreOnDisk)?;
        let asked = TreeSettings::new(&self.tree_settings, &self.trees);
        let (settings, _) = folder.agree_on_tree_settings(asked)?;
        let retain = match self.retain {
            Some(retain) => retain,
            None => folder.retention()?,
        };
        let found = folder.head_file().ok();
        let hash = self.hash.clone();
        let hash = hash.or_else(|| Some(found.as_ref()?.identity.hash.clone()));
        let mut tree = settings.tree(kind, hash, self.budget.memory)?;
        if let Some(file) = &found {
            tree = folder.as_it_moves(tree, &file.identity, self.budget.memory)?;
        }
        let budget = Budget {
            retain,
            ..self.budget.for_tree(&tree)
        };
        let opened = open((store, tree), budget)?;
        let what = Remembered {
            retain: self.retain,
            tree_settings: Some(&settings),
            ..Remembered::default()
        };
        folder.remember_settings(kind, what)?;
        Ok(opened)
    }

    /// Opens the database in a folder for reading alone, at its last flushed version, also while another process writes it.
    ///
    /// # Errors
    /// A folder without a database; a database of another tree than the one asked for; one whose load or recovery did not finish; errors of
    /// the store.
    pub fn open_to_read(&self, dir: impl AsRef<Path>) -> Result<StateSnapshot, DatabaseError> {
        let folder = Folder::new(dir.as_ref(), &self.trees);
        if !folder.has("")? {
            return Err(DatabaseError::NoFolder(dir.as_ref().to_owned()));
        }
        let wanted = self.kind(folder)?;
        folder.check_tree(wanted)?;
        folder.open_to_read(self.budget.memory)
    }

    /// Opens an empty database in memory.
    ///
    /// # Errors
    /// A tree that the registry does not have, or that does not have the settings.
    pub fn in_memory(&self) -> Result<State, DatabaseError> {
        let (tree, budget) = self.of_memory(self.named(None)?)?;
        in_memory(tree, self.network.unwrap_or(NO_CHAIN), budget)
    }

    /// The tree and the budget of a database in memory.
    pub(crate) fn of_memory(
        &self,
        kind: &'static TreeKind,
    ) -> Result<(Tree, Budget), DatabaseError> {
        let settings = TreeSettings::new(&self.tree_settings, &self.trees);
        let tree = settings.tree(kind, self.hash.clone(), self.budget.memory)?;
        let budget = Budget {
            retain: self.retain.unwrap_or(crate::RETAINED),
            ..self.budget.for_tree(&tree)
        };
        Ok((tree, budget))
    }

    /// The tree asked for, else the one in the folder, else the usual one.
    fn kind(&self, folder: Folder<'_>) -> Result<&'static TreeKind, DatabaseError> {
        if self.tree.is_none()
            && let Ok(file) = folder.head_file()
            && self.trees.of_identity(&file.identity).is_none()
        {
            return Err(folder.not_a_state(file.identity));
        }
        self.named(folder.tree())
    }

    /// Whether the tree was set by its name.
    pub(crate) fn has_tree_set(&self) -> bool {
        self.tree.is_some()
    }

    pub(crate) fn named(
        &self,
        found: Option<&'static TreeKind>,
    ) -> Result<&'static TreeKind, DatabaseError> {
        let kind = match &self.tree {
            Some(name) => self.trees.find(name),
            None => found.or_else(|| self.trees.rows().next()),
        };
        kind.ok_or_else(|| DatabaseError::NoTree {
            name: self.tree.clone().unwrap_or_default(),
            known: self.trees.rows().map(|row| row.name).collect(),
        })
    }
}

fn network_of(file: &HeadFile) -> Network {
    Network {
        chain_id: file.identity.chain_id,
        genesis_hash: file.identity.genesis.into(),
    }
}

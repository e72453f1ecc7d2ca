//! Opening and creating databases.

use std::sync::Arc;

use arbor_chain::rules::ChainRules;
use arbor_state::{Head, Network, State, StateSnapshot, Tree, TreeKind};
use arbor_store::Store;
use arbor_versions::{DirLock, DirReader, Retain, stored_identity};

use crate::folder::Folder;
use crate::names::{CONVERSION, CONVERSION_JOB};
use crate::store::{memory_store, open_store, open_store_to_read};
use crate::tree_settings::TreeSettings;
use crate::{Budget, DatabaseError, OtherGenesis, StoreKind};

/// A database to create.
#[derive(Clone, Copy, Debug)]
pub struct NewDatabase<'a> {
    /// Its store, which keeps what is put into it.
    pub store: StoreKind,
    /// Its tree.
    pub tree: &'static TreeKind,
    /// Settings of the tree, by name or as `name=NUMBER`.
    pub tree_settings: &'a [String],
    /// The chain that it belongs to, or [`NO_CHAIN`](crate::NO_CHAIN).
    pub network: Network,
    /// The text of the chain's genesis, for the folder to keep.
    pub genesis: Option<&'a str>,
    /// The rules of the chain that its genesis does not have.
    pub rules: ChainRules,
}

/// What a database's folder is to remember; what is `None` stays as it is.
#[derive(Clone, Copy, Default, Debug)]
pub struct Remembered<'a> {
    /// The text of the chain's genesis.
    pub genesis: Option<&'a str>,
    /// History to keep.
    pub retain: Option<Retain>,
    /// The rules of the chain that its genesis does not have.
    pub rules: Option<ChainRules>,
    /// How nodes are stored.
    pub tree_settings: Option<&'a TreeSettings>,
}

/// Opens an empty state in memory.
///
/// # Errors
/// Those of [`State::open`].
pub fn in_memory(tree: Tree, network: Network, budget: Budget) -> Result<State, DatabaseError> {
    let store = memory_store(budget.throttle);
    Ok(State::open(store, None, tree, network, budget.options())?)
}

impl Folder<'_> {
    /// Creates a database and has its folder remember what it is made for, the history of `budget` included. The state is empty: the first version that
    /// is committed to it may be any block.
    ///
    /// # Errors
    /// A folder with a database that has a version; settings that the tree does not have; errors of the store.
    pub fn create(
        self,
        database: &NewDatabase<'_>,
        budget: Budget,
    ) -> Result<State, DatabaseError> {
        let settings = TreeSettings::new(database.tree_settings, self.trees);
        let tree = settings.tree(database.tree, None, budget.memory)?;
        let state = self.open_or_create((database.store, tree), database.network, budget)?;
        if state.head().is_some() {
            return Err(DatabaseError::Exists(self.dir.to_owned()));
        }
        let what = Remembered {
            genesis: database.genesis,
            retain: Some(budget.retain),
            rules: Some(database.rules),
            tree_settings: Some(&settings),
        };
        self.remember(database.tree, what)?;
        Ok(state)
    }

    /// Has the folder of a database that is open remember what is given: the genesis first, then history, rules and tree settings. Returns what the
    /// genesis changes, if another one was kept.
    ///
    /// # Errors
    /// A damaged file; one that cannot be written.
    pub fn remember(
        self,
        tree: &TreeKind,
        what: Remembered<'_>,
    ) -> Result<Option<OtherGenesis>, DatabaseError> {
        let other = match what.genesis {
            Some(text) => self.keep_genesis(text)?,
            None => None,
        };
        if let Some(retain) = what.retain {
            self.remember_retention(retain)?;
        }
        if let Some(rules) = what.rules {
            self.remember_rules(rules)?;
        }
        if let Some(settings) = what.tree_settings {
            self.remember_tree_settings(settings, tree)?;
        }
        Ok(other)
    }

    /// Opens an existing database for reading, at its last flushed version, also while another process writes it, and without the right to write.
    ///
    /// # Errors
    /// A folder without a database; a database whose load or recovery did not finish; errors of the store.
    pub fn open_to_read(self, memory: u64) -> Result<StateSnapshot, DatabaseError> {
        let unfinished = self.unfinished_conversion();
        let opened = self.network().and_then(|network| {
            let opened = self.snapshot(memory, network);
            let opened = opened.map_err(|error| self.open_error(true, error))?;
            self.log_opened(opened.reader(), "to read");
            Ok(opened)
        });
        match (opened, unfinished) {
            (Ok(opened), Some(unfinished)) => {
                tracing::warn!("{unfinished}");
                Ok(opened)
            }
            (Err(_), Some(unfinished)) => Err(unfinished),
            (opened, None) => opened,
        }
    }

    fn log_opened(self, head: Head<'_>, how: &str) {
        let at = head
            .meta()
            .map(|meta| format!("block {}", meta.block_number));
        tracing::info!(
            "opened {} {how}: tree {}, store {}, {}",
            self.dir.display(),
            head.tree().kind().name,
            self.store().map_or("unknown", |store| store.name()),
            at.as_deref().unwrap_or("no block yet"),
        );
    }

    fn snapshot(self, memory: u64, network: Network) -> Result<StateSnapshot, DatabaseError> {
        let head = DirReader::new(self.dir)?;
        let store = open_store_to_read(self.dir, memory)?;
        let settings = self.tree_settings().unwrap_or_else(|error| {
            // Nodes say themselves how they are stored.
            tracing::warn!("{error}");
            None
        });
        let settings = settings.unwrap_or_default();
        let tree = self.known_tree(memory, &settings)?;
        Ok(StateSnapshot::open(store, Some(head), tree, network)?)
    }

    /// Opens an existing database for writing, with the tree settings that the folder remembers, and locks the folder.
    ///
    /// # Errors
    /// A folder without a database; one that another process writes; a database whose load or recovery did not finish; errors of the store.
    pub fn open(self, budget: Budget) -> Result<State, DatabaseError> {
        self.open_known(budget, |_| budget)
    }

    /// Opens an existing database. `for_tree` returns the budget for the database's tree.
    pub(crate) fn open_known(
        self,
        budget: Budget,
        for_tree: impl FnOnce(&Tree) -> Budget,
    ) -> Result<State, DatabaseError> {
        self.refuse_unfinished_conversion()?;
        let network = self.network()?;
        let open = || {
            let lock = DirLock::acquire(self.dir)?;
            let store = open_store(self.dir, None, false, budget)?;
            self.check_head(&*store)?;
            let settings = self.tree_settings()?.unwrap_or_default();
            let tree = self.known_tree(budget.memory, &settings)?;
            let options = for_tree(&tree).options();
            Ok(State::open(store, Some(lock), tree, network, options)?)
        };
        let state = open().map_err(|error| self.open_error(false, error))?;
        self.log_opened(state.reader(), "to write");
        Ok(state)
    }

    /// Opens the database in a folder, or creates one of which the folder remembers nothing yet, and locks the folder.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), but for a folder without a database; a database of another tree or network.
    pub fn open_or_create(
        self,
        made_of: (StoreKind, Tree),
        network: Network,
        budget: Budget,
    ) -> Result<State, DatabaseError> {
        self.refuse_unfinished_conversion()?;
        self.open_by(State::open, made_of, network, budget)
    }

    /// A target that is not verified yet may differ from its source: nothing may go on over it.
    fn refuse_unfinished_conversion(self) -> Result<(), DatabaseError> {
        self.unfinished_conversion().map_or(Ok(()), Err)
    }

    /// Returns an error that names the command of a conversion into the folder that is not finished or not verified yet, if there is
    /// one.
    #[must_use]
    pub fn unfinished_conversion(self) -> Option<DatabaseError> {
        let job = self.dir.join(CONVERSION).join(CONVERSION_JOB);
        let text = std::fs::read(job).ok()?;
        let job: Option<serde_json::Value> = serde_json::from_slice(&text).ok();
        let command = job.as_ref().and_then(|job| job["command"].as_str());
        let command = command.filter(|command| !command.is_empty());
        Some(DatabaseError::UnfinishedConversion {
            dir: self.dir.to_owned(),
            command: command.unwrap_or("arbor convert").to_owned(),
        })
    }

    /// Like [`open_or_create`](Self::open_or_create), but opens a database whose recovery did not finish, too.
    ///
    /// # Errors
    /// Those of `open_or_create`, but for an unfinished recovery.
    pub fn open_to_recover(
        self,
        made_of: (StoreKind, Tree),
        network: Network,
        budget: Budget,
    ) -> Result<State, DatabaseError> {
        self.open_by(State::open_to_recover, made_of, network, budget)
    }

    /// Like [`open_or_create`](Self::open_or_create), but opens a database whose load in parts did not finish, too.
    ///
    /// # Errors
    /// Those of `open_or_create`, but for an unfinished load.
    pub fn open_to_load(
        self,
        made_of: (StoreKind, Tree),
        network: Network,
        budget: Budget,
    ) -> Result<State, DatabaseError> {
        self.open_by(State::open_to_load, made_of, network, budget)
    }

    fn open_by(
        self,
        open: OpenState,
        (store, tree): (StoreKind, Tree),
        network: Network,
        budget: Budget,
    ) -> Result<State, DatabaseError> {
        let opened = || {
            let lock = DirLock::acquire(self.dir)?;
            let store = open_store(self.dir, Some(store), self.may_create(), budget)?;
            self.check_head(&*store)?;
            self.check_tree(tree.kind())?;
            Ok(open(store, Some(lock), tree, network, budget.options())?)
        };
        let state = opened().map_err(|error| self.open_error(false, error))?;
        self.log_opened(state.reader(), "to write");
        Ok(state)
    }

    /// Whether a store may be made in the folder: not if versions were flushed, nor if HEAD cannot be read.
    /// Making one clears away what an engine takes for the rest of an interrupted creation.
    fn may_create(self) -> bool {
        let has_head = self.dir.join("HEAD").exists();
        !has_head || self.head_file().is_ok_and(|file| file.head.is_none())
    }

    /// Refuses a store that has a database if HEAD cannot be read: what else the database is would be guessed from HEAD.
    fn check_head(self, store: &dyn Store) -> Result<(), DatabaseError> {
        if stored_identity(store)?.is_some() {
            self.head_file()?;
        }
        Ok(())
    }

    /// Refuses another tree than the database's by the names that users know.
    fn check_tree(self, wanted: &'static TreeKind) -> Result<(), DatabaseError> {
        match self.tree() {
            Some(found) if found.name != wanted.name => {
                Err(DatabaseError::OtherTree { found, wanted })
            }
            _ => Ok(()),
        }
    }

    fn open_error(self, to_read: bool, error: DatabaseError) -> DatabaseError {
        DatabaseError::Open {
            dir: self.dir.to_owned(),
            to_read,
            source: Box::new(error),
        }
    }
}

/// [`State::open`], [`State::open_to_recover`] or [`State::open_to_load`].
type OpenState = fn(
    Arc<dyn Store>,
    Option<DirLock>,
    Tree,
    Network,
    arbor_versions::Options,
) -> Result<State, arbor_state::StateError>;

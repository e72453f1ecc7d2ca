//! Opening and creating databases.

use std::sync::Arc;

#[cfg(feature = "chain")]
use arbor_chain::rules::ChainRules;
use arbor_state::{Head, Network, State, StateSnapshot, Tree, TreeKind};
use arbor_store::Store;
use arbor_versions::{DirLock, DirReader, Retain, stored_identity};

#[cfg(feature = "chain")]
use crate::OtherGenesis;
use crate::folder::Folder;
use crate::names::{CONVERSION, CONVERSION_JOB, PART};
use crate::scratch::scratch;
use crate::store::{memory_store, open_store, open_store_to_read};
use crate::tree_settings::TreeSettings;
use crate::{Budget, DatabaseError, StoreKind};

/// What a database's folder is to remember; what is `None` stays as it is.
#[derive(Clone, Copy, Default, Debug)]
pub struct Remembered<'a> {
    /// The text of the chain's genesis.
    #[cfg(feature = "chain")]
    pub genesis: Option<&'a str>,
    /// History to keep.
    pub retain: Option<Retain>,
    /// The rules of the chain that its genesis does not have.
    #[cfg(feature = "chain")]
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
    /// Has the folder of a database that is open remember what is given: the genesis first, then rules, history and tree settings. Returns what the
    /// genesis changes, if another one was kept.
    ///
    /// # Errors
    /// A damaged file; one that cannot be written.
    #[cfg(feature = "chain")]
    pub fn remember(
        self,
        tree: &TreeKind,
        what: Remembered<'_>,
    ) -> Result<Option<OtherGenesis>, DatabaseError> {
        let other = match what.genesis {
            Some(text) => self.keep_genesis(text)?,
            None => None,
        };
        if let Some(rules) = what.rules {
            self.remember_rules(rules)?;
        }
        self.remember_settings(tree, what)?;
        Ok(other)
    }

    /// Has the folder of a database that is open remember the history and the tree settings that are given.
    ///
    /// # Errors
    /// A damaged file; one that cannot be written.
    pub(crate) fn remember_settings(
        self,
        tree: &TreeKind,
        what: Remembered<'_>,
    ) -> Result<(), DatabaseError> {
        if let Some(retain) = what.retain {
            self.remember_retention(retain)?;
        }
        match what.tree_settings {
            Some(settings) => self.remember_tree_settings(settings, tree),
            None => Ok(()),
        }
    }

    /// Opens an existing database for reading, at its last flushed version, also while another process writes it, and without the right to write.
    ///
    /// # Errors
    /// A folder without a database; a database whose load or recovery did not finish; errors of the store.
    pub fn open_to_read(self, memory: u64) -> Result<StateSnapshot, DatabaseError> {
        let unfinished = self.unfinished_conversion();
        let identity = || self.head_file().ok().map(|file| file.identity);
        let before = identity();
        let open = || {
            self.network().and_then(|network| {
                let opened = self.snapshot(memory, network);
                opened.map_err(|error| self.open_error(true, error))
            })
        };
        let mut opened = open();
        if opened.is_err() && identity() != before {
            // A writer has made another database of it meanwhile: at the begin or end of a move to another tree.
            opened = open();
        }
        if let Ok(opened) = &opened {
            self.log_opened(opened.reader(), "to read");
        }
        match (opened, unfinished) {
            // It is empty until the conversion has built all of it.
            (Ok(opened), Some(unfinished)) if opened.reader().meta().is_none() => Err(unfinished),
            (Ok(opened), Some(unfinished)) => {
                #[cfg(feature = "tracing")]
                tracing::warn!("{unfinished}");
                #[cfg(not(feature = "tracing"))]
                drop(unfinished);
                Ok(opened)
            }
            (Err(_), Some(unfinished)) => Err(unfinished),
            (Err(error), None) => Err(self.part_of_conversion().unwrap_or(error)),
            (opened, None) => opened,
        }
    }

    #[cfg(not(feature = "tracing"))]
    fn log_opened(self, _: Head<'_>, _: &str) {}

    #[cfg(feature = "tracing")]
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
        // If the file is damaged, nodes say themselves how they are stored.
        let settings = match self.tree_settings() {
            Ok(settings) => settings.unwrap_or_default(),
            Err(_error) => {
                #[cfg(feature = "tracing")]
                tracing::warn!("{_error}");
                TreeSettings::default()
            }
        };
        let tree = self.known_tree(memory, &settings)?;
        let snapshot = StateSnapshot::open(store, Some(head), tree, network)?;
        Ok(match scratch(memory) {
            Some(scratch) => snapshot.with_scratch(scratch),
            None => snapshot,
        })
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
            let lock = self.lock()?;
            let store = open_store(self.dir, None, false, budget)?;
            self.check_head(&*store)?;
            let settings = self.tree_settings()?.unwrap_or_default();
            let tree = self.known_tree(budget.memory, &settings)?;
            let options = for_tree(&tree).options();
            let state = State::open(store, Some(lock), tree, network, options)?;
            Ok(with_scratch(state, budget.memory))
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

    /// Returns an error that says which part of a conversion the folder is, if it is one.
    #[must_use]
    pub fn part_of_conversion(self) -> Option<DatabaseError> {
        let text = std::fs::read(self.dir.join(PART)).ok()?;
        let job: Option<serde_json::Value> = serde_json::from_slice(&text).ok();
        let part = job.as_ref().and_then(|job| {
            let number = |name: &str| job["part"][name].as_u64();
            Some(format!("{}/{}", number("number")?, number("of")?))
        });
        Some(DatabaseError::PartOfConversion {
            dir: self.dir.to_owned(),
            part: part.unwrap_or_else(|| "?".to_owned()),
        })
    }

    /// Locks the folder for a database, which a part of a conversion cannot become.
    pub(crate) fn lock(self) -> Result<DirLock, DatabaseError> {
        match self.part_of_conversion() {
            Some(part) => Err(part),
            None => Ok(DirLock::acquire(self.dir)?),
        }
    }

    /// Like [`open_or_create`](Self::open_or_create), but opens a database whose recovery did not finish, too.
    ///
    /// # Errors
    /// The errors of `open_or_create`, except for an unfinished recovery.
    pub fn open_to_recover(
        self,
        made_of: (StoreKind, Tree),
        network: Network,
        budget: Budget,
    ) -> Result<State, DatabaseError> {
        self.refuse_unfinished_conversion()?;
        self.open_by(State::open_to_recover, made_of, network, budget)
    }

    /// Like [`open_or_create`](Self::open_or_create), but opens a database whose load in parts did not finish, too.
    ///
    /// # Errors
    /// The errors of `open_or_create`, except for an unfinished load.
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
            let lock = self.lock()?;
            let store = open_store(self.dir, Some(store), self.may_create(), budget)?;
            self.check_head(&*store)?;
            self.check_tree(tree.kind())?;
            let state = open(store, Some(lock), tree, network, budget.options())?;
            Ok(with_scratch(state, budget.memory))
        };
        let state = opened().map_err(|error| self.open_error(false, error))?;
        self.log_opened(state.reader(), "to write");
        Ok(state)
    }

    /// Whether a store may be made in the folder: not if versions were flushed, nor if HEAD cannot be read.
    /// Making one clears away what an engine takes for the rest of an interrupted creation.
    pub(crate) fn may_create(self) -> bool {
        let has_head = self.dir.join("HEAD").exists();
        !has_head || self.head_file().is_ok_and(|file| file.head.is_none())
    }

    /// Refuses a store that has a database if HEAD cannot be read: what else the database is would be guessed from HEAD.
    pub(crate) fn check_head(self, store: &dyn Store) -> Result<(), DatabaseError> {
        if stored_identity(store)?.is_some() {
            self.head_file()?;
        }
        Ok(())
    }

    /// Refuses another tree than the database's by the names that users know.
    pub(crate) fn check_tree(self, wanted: &'static TreeKind) -> Result<(), DatabaseError> {
        let Ok(file) = self.head_file() else {
            return Ok(());
        };
        if let Some(found) = self.trees.of_key_value(&file.identity) {
            return Err(DatabaseError::KeysAndValues(found));
        }
        match self.tree() {
            Some(found) if found.name != wanted.name => {
                Err(DatabaseError::OtherTree { found, wanted })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn open_error(self, to_read: bool, error: DatabaseError) -> DatabaseError {
        DatabaseError::Open {
            dir: self.dir.to_owned(),
            to_read,
            source: Box::new(error),
        }
    }
}

/// Gives a database temporary stores for versions that lie far back.
fn with_scratch(state: State, memory: u64) -> State {
    match scratch(memory) {
        Some(scratch) => state.with_scratch(scratch),
        None => state,
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

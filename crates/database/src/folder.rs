//! A database's folder, and what can be told of it without its store.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloy_primitives::B256;
#[cfg(feature = "chain")]
use arbor_chain::genesis::Genesis;
use arbor_state::{Network, Registry, State, Tree, TreeKind};
use arbor_trees::Moving;
use arbor_versions::{HeadFile, Identity, VersionsError, read_head_file};

use crate::tree_settings::TreeSettings;
use crate::{DatabaseError, StoreKind};

/// The network of a state that belongs to no chain, such as that of a load test.
pub const NO_CHAIN: Network = Network {
    chain_id: 0,
    genesis_hash: B256::ZERO,
};

/// The network that a genesis begins.
#[cfg(feature = "chain")]
#[must_use]
pub fn network(genesis: &Genesis) -> Network {
    Network {
        chain_id: genesis.spec.chain_id(),
        genesis_hash: genesis.hash,
    }
}

/// The folder of a database, which may not exist yet, and the trees that the database can have.
#[derive(Clone, Copy, Debug)]
pub struct Folder<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) trees: &'a Registry,
}

impl<'a> Folder<'a> {
    /// Names a folder. Nothing is looked up.
    #[must_use]
    pub const fn new(dir: &'a Path, trees: &'a Registry) -> Self {
        Self { dir, trees }
    }

    /// The path of the folder.
    #[must_use]
    pub const fn path(self) -> &'a Path {
        self.dir
    }

    /// Returns the kind of the store in the folder.
    #[must_use]
    pub fn store(self) -> Option<StoreKind> {
        StoreKind::found_in(self.dir)
    }

    /// Returns the name of the store in the folder, also of one that this program cannot open.
    #[must_use]
    pub fn store_name(self) -> Option<&'static str> {
        let mut names = StoreKind::FOLDERS.into_iter();
        names.find(|name| self.dir.join(name).is_dir())
    }

    /// Reads what HEAD says of the database.
    ///
    /// # Errors
    /// No HEAD, or a damaged one.
    pub fn head_file(self) -> Result<HeadFile, VersionsError> {
        read_head_file(self.dir)
    }

    /// Returns the tree that HEAD names; `None` if HEAD cannot be read or the registry does not have the tree.
    #[must_use]
    pub fn tree(self) -> Option<&'static TreeKind> {
        let file = self.head_file().ok()?;
        self.trees.of_identity(&file.identity)
    }

    /// Makes the tree that an identity names, which changes nodes as the settings say.
    ///
    /// # Errors
    /// A tree that the registry does not have; a setting that the tree does not have.
    pub fn tree_of(
        self,
        identity: &Identity,
        memory: u64,
        settings: &TreeSettings,
    ) -> Result<Tree, DatabaseError> {
        let Some(kind) = self.trees.of_identity(identity) else {
            return Err(self.not_a_state(identity.clone()));
        };
        let tree = settings.tree(kind, Some(identity.hash.clone()), memory)?;
        self.as_it_moves(tree, identity, memory)
    }

    /// The tree of a database that moves to another tree, if an identity says that it does.
    ///
    /// # Errors
    /// A tree that the registry does not have.
    pub fn as_it_moves(
        self,
        tree: Tree,
        identity: &Identity,
        memory: u64,
    ) -> Result<Tree, DatabaseError> {
        let (Some(moved), Some(to)) = (identity.moved(), &identity.moves_to) else {
            return Ok(tree);
        };
        let Some(kind) = self.trees.of_identity(&moved) else {
            return Err(self.not_a_state(moved));
        };
        let target = TreeSettings::default().tree(kind, Some(to.hash.clone()), memory)?;
        Ok(Arc::new(Moving::new(tree, target, to.at, to.stride)))
    }

    /// The state of a database once it has [arrived](State::arrived) at another tree: with that tree alone. Any other state stays as it is.
    ///
    /// # Errors
    /// Those of [`State::open_again`]; a file that cannot be written.
    pub fn arrive(self, state: State) -> Result<State, DatabaseError> {
        let Some(tree) = state.arrived()? else {
            return Ok(state);
        };
        // They are those of the tree before.
        self.forget_tree_settings()?;
        Ok(state.open_again(tree)?)
    }

    /// The error for an identity that is none of a state under a tree of the registry.
    pub(crate) fn not_a_state(self, identity: Identity) -> DatabaseError {
        match self.trees.of_key_value(&identity) {
            Some(kind) => DatabaseError::KeysAndValues(kind),
            None => DatabaseError::UnknownTree(Box::new(identity)),
        }
    }

    /// Makes the tree that HEAD names. If HEAD does not name one, opening the database says why.
    pub(crate) fn known_tree(
        self,
        memory: u64,
        settings: &TreeSettings,
    ) -> Result<Tree, DatabaseError> {
        match self.head_file() {
            Ok(file) => self.tree_of(&file.identity, memory, settings),
            Err(error) => match self.trees.rows().next() {
                Some(usual) => Ok(usual.tree()),
                None => Err(error.into()),
            },
        }
    }

    /// Returns the network of the database: that in HEAD, or that of the kept genesis if HEAD cannot be read and the feature `chain` is
    /// on.
    ///
    /// # Errors
    /// Neither of them can be read.
    pub fn network(self) -> Result<Network, DatabaseError> {
        match self.head_file() {
            Ok(HeadFile { identity, .. }) => Ok(Network {
                chain_id: identity.chain_id,
                genesis_hash: identity.genesis.into(),
            }),
            #[cfg(feature = "chain")]
            Err(_) => Ok(network(&self.genesis()?)),
            #[cfg(not(feature = "chain"))]
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the database belongs to a chain, so that its versions have headers.
    ///
    /// # Errors
    /// Those of [`network`](Self::network).
    pub fn has_chain(self) -> Result<bool, DatabaseError> {
        Ok(self.network()? != NO_CHAIN)
    }

    /// Whether the database has blocks after its genesis.
    #[cfg(feature = "chain")]
    pub(crate) fn has_blocks(self) -> bool {
        let head = self.head_file().ok().and_then(|file| file.head);
        head.is_some_and(|head| head.block_number > 0)
    }

    /// Returns the bytes of disk that the files of the store occupy, in allocated blocks.
    ///
    /// # Errors
    /// Files that cannot be listed.
    pub fn disk_bytes(self) -> Result<u64, DatabaseError> {
        let folders = StoreKind::FOLDERS.map(|store| self.dir.join(store));
        let sizes = folders.into_iter().map(|path| {
            let size = arbor_store::occupied_bytes(&path);
            size.map_err(|source| io_error("reading", path, source))
        });
        sizes.sum()
    }

    /// Copies the database, which no process may have open, to a folder that is made for it. Files that its store never writes
    /// again are hard links where the file system has them: they take no time and no room on the disk.
    ///
    /// # Errors
    /// Files that cannot be read or written.
    pub fn copy_to(self, to: &Path) -> Result<(), DatabaseError> {
        let store = self.store();
        let of_store = store.map(|store| (store, self.dir.join(store.name())));
        copy_files(self.dir, to, &|path| {
            let below = |(store, folder): &(StoreKind, PathBuf)| {
                let path = path.strip_prefix(folder).ok()?;
                Some(store.is_written_once(path))
            };
            of_store.as_ref().and_then(below).unwrap_or(false)
        })
    }

    /// Whether a file or folder in this one, or this one itself (`""`), exists.
    ///
    /// # Errors
    /// A folder that may not be searched.
    pub fn has(self, name: &str) -> Result<bool, DatabaseError> {
        let path = match name {
            "" => self.dir.to_owned(),
            name => self.dir.join(name),
        };
        path.try_exists()
            .map_err(|source| io_error("looking for", path, source))
    }

    /// Checks that the folder has a database.
    pub(crate) fn must_have_database(self) -> Result<(), DatabaseError> {
        let dir = || self.dir.to_owned();
        if !self.has("")? {
            return Err(DatabaseError::NoFolder(dir()));
        }
        if self.store_name().is_none() {
            return Err(DatabaseError::NoStore(dir()));
        }
        match self.has("HEAD")? {
            true => Ok(()),
            false => Err(DatabaseError::NoHead(dir())),
        }
    }
}

/// Copies what a folder has into another one that is made; files that `is_written_once` become hard links where they can.
fn copy_files(
    from: &Path,
    to: &Path,
    is_written_once: &dyn Fn(&Path) -> bool,
) -> Result<(), DatabaseError> {
    fs::create_dir_all(to).map_err(|cause| io_error("making", to.to_owned(), cause))?;
    let unread = |cause| io_error("reading", from.to_owned(), cause);
    for entry in fs::read_dir(from).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().map_err(unread)?.is_dir() {
            copy_files(&path, &copy, is_written_once)?;
        } else if !is_written_once(&path) || fs::hard_link(&path, &copy).is_err() {
            fs::copy(&path, copy).map_err(|cause| io_error("copying", path, cause))?;
        }
    }
    Ok(())
}

/// An error of the operating system, with the file or folder.
pub(crate) fn io_error(
    action: &'static str,
    path: PathBuf,
    source: std::io::Error,
) -> DatabaseError {
    DatabaseError::Io {
        action,
        path,
        source,
    }
}

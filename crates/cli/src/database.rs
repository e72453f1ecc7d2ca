//! Databases on disk: a folder with a store, its genesis and the head record.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloy_primitives::B256;
use anyhow::{Context, Result, anyhow, bail};
use arbor_chain::genesis::Genesis;
use arbor_chain::replay::genesis_state_root;
use arbor_state::{Head, Network, Settings, State, StateSnapshot, Tree, TreeKind};
use arbor_store::disk::{Disk, Limits};
use arbor_store::{MemoryStore, Reader, Store};
use arbor_store_fjall::FjallStore;
use arbor_versions::{
    DirLock, DirReader, HeadFile, Identity, Meta, Options, Retain, read_head_file, stored_identity,
};

use crate::args::{Database, StoreChoice, parse_retain, show_retain};
use crate::bytes;
use crate::remembered::{self, write_whole};
use crate::tree_settings::TreeSettings;
use crate::trees::{self, TREES};

/// How memory and history are divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Bytes for everything together.
    pub(crate) memory: u64,
    /// Bytes of unflushed changes; [`bytes::usual_write_back`] if not given.
    pub(crate) write_back: Option<u64>,
    /// History to keep.
    pub(crate) retain: Retain,
    /// Whether every version is made durable.
    pub(crate) durable: bool,
    /// How slow a disk the store is on; as fast as it is, if none is given.
    pub(crate) throttle: Option<Limits>,
}

impl Budget {
    pub(crate) fn options(self) -> Options {
        let usual = bytes::usual_write_back(self.memory);
        let dirty = self.write_back.unwrap_or(usual);
        Options {
            cache_bytes: self.memory / 4,
            dirty_bytes: usize::try_from(dirty).unwrap_or(usize::MAX),
            durable_each: self.durable,
            retain: self.retain,
            ..Options::default()
        }
    }

    fn store_cache(self) -> u64 {
        self.memory / 16
    }

    /// Bytes for accounts and slots that execution used lately.
    pub(crate) fn names(self) -> usize {
        usize::try_from(self.memory / 16).unwrap_or(usize::MAX)
    }
}

/// The tree to make a new database with.
pub(crate) fn tree(kind: &TreeKind, memory: u64, settings: &TreeSettings) -> Result<Tree> {
    made(kind, None, memory, settings)
}

/// The tree that a database says it has; `None` if nothing says so.
pub(crate) fn tree_kind(dir: &Path) -> Option<&'static TreeKind> {
    let file = read_head_file(dir).ok()?;
    TREES.of_identity(&file.identity)
}

/// The tree of an existing database, which changes nodes as its settings say. If HEAD does not name it, opening the database says why.
fn tree_in(dir: &Path, memory: u64, settings: &TreeSettings) -> Result<Tree> {
    let Ok(HeadFile { identity, .. }) = read_head_file(dir) else {
        return Ok(trees::usual().tree());
    };
    known_tree(&identity, memory, settings)
}

/// The tree that an identity names, which changes nodes as its settings say.
pub(crate) fn known_tree(
    identity: &Identity,
    memory: u64,
    settings: &TreeSettings,
) -> Result<Tree> {
    let Some(kind) = TREES.of_identity(identity) else {
        let Identity {
            tree,
            revision,
            hash,
            ..
        } = identity;
        bail!(
            "its tree is {tree} of revision {revision}, hashed with {hash}, which this version of arbor does not know"
        );
    };
    made(kind, Some(identity.hash.clone()), memory, settings)
}

fn made(
    kind: &TreeKind,
    hash: Option<String>,
    memory: u64,
    settings: &TreeSettings,
) -> Result<Tree> {
    let words = settings.as_slice().to_vec();
    Ok((kind.make)(&Settings {
        hash,
        memory: Some(memory),
        words,
    })?)
}

/// History that a database keeps where nothing else was ever asked for: versions below the head.
const RETAINED: Retain = Retain::Last(128);

/// Where a folder remembers the history to keep.
fn retention_path(dir: &Path) -> PathBuf {
    dir.join("retain")
}

/// The history that a folder remembers to keep; `None` where it never was asked for.
pub(crate) fn stored_retention(dir: &Path) -> Result<Option<Retain>> {
    let wanted =
        "none, all or a number, as `arbor replay --retain` writes it anew, or to be removed";
    remembered::stored(&retention_path(dir), wanted, |text| {
        parse_retain(text.trim()).ok()
    })
}

/// The history to keep: what is asked for, or else what was asked for before.
pub(crate) fn retention(dir: Option<&Path>, asked: Option<Retain>) -> Result<Retain> {
    match (asked, dir) {
        (Some(asked), _) => Ok(asked),
        (None, Some(dir)) => Ok(stored_retention(dir)?.unwrap_or(RETAINED)),
        (None, None) => Ok(RETAINED),
    }
}

/// Remembers what history was asked for, in the folder of a database that is open: a replay that was refused must not decide what the next one forgets.
pub(crate) fn remember_retention(dir: &Path, retain: Retain) -> Result<()> {
    let path = retention_path(dir);
    write_whole(&path, &show_retain(retain)).with_context(|| format!("writing {}", path.display()))
}

/// Whether a store may be made in a database folder: not where versions were flushed, nor where HEAD cannot tell.
/// Making one clears away what an engine takes for the rest of an interrupted creation.
fn may_create(dir: &Path) -> bool {
    !dir.join("HEAD").exists() || read_head_file(dir).is_ok_and(|file| file.head.is_none())
}

/// Opens the store in a database folder, or makes one of the kind given.
pub(crate) fn open_store(
    dir: &Path,
    wanted: Option<StoreChoice>,
    budget: Budget,
) -> Result<Arc<dyn Store>> {
    let present = store_in(dir);
    let choice = match (present, wanted) {
        (Some(found), Some(wanted)) if found != wanted && wanted != StoreChoice::Memory => {
            bail!("{} holds a {found:?} store, not {wanted:?}", dir.display())
        }
        (Some(found), _) => found,
        (None, Some(wanted)) => wanted,
        (None, None) => bail!(
            "{} is not a database: there is no store in it",
            dir.display()
        ),
    };
    let create = wanted.is_some() && may_create(dir);
    let store: Arc<dyn Store> = match choice {
        StoreChoice::Memory => Arc::new(MemoryStore::default()),
        StoreChoice::Fjall => {
            let options = arbor_store_fjall::Options {
                cache_bytes: budget.store_cache(),
                create,
                ..Default::default()
            };
            Arc::new(FjallStore::open(&dir.join("fjall"), &options)?)
        }
        #[cfg(feature = "rocksdb")]
        StoreChoice::Rocksdb => {
            let options = arbor_store_rocksdb::Options {
                cache_bytes: budget.store_cache(),
                create,
                ..Default::default()
            };
            Arc::new(arbor_store_rocksdb::RocksStore::open(
                &dir.join("rocksdb"),
                &options,
            )?)
        }
    };
    Ok(Disk::new(store, budget.throttle))
}

/// Opens the store in a database folder for reading alone, beside whoever writes it.
fn open_store_to_read(dir: &Path, memory: u64) -> Result<Arc<dyn Reader>> {
    // No cache lies above a store that is only read.
    let cache_bytes = memory / 4;
    let reader = match store_in(dir) {
        Some(StoreChoice::Fjall) => {
            let options = arbor_store_fjall::Options {
                cache_bytes,
                ..Default::default()
            };
            FjallStore::open_to_read(&dir.join("fjall"), &options)?
        }
        #[cfg(feature = "rocksdb")]
        Some(StoreChoice::Rocksdb) => {
            let options = arbor_store_rocksdb::Options {
                cache_bytes,
                ..Default::default()
            };
            arbor_store_rocksdb::RocksStore::open_to_read(&dir.join("rocksdb"), &options)?
        }
        _ => bail!(
            "{} is not a database: there is no store in it",
            dir.display()
        ),
    };
    Ok(Arc::from(reader))
}

/// The store that a database folder holds.
pub(crate) fn store_in(dir: &Path) -> Option<StoreChoice> {
    if dir.join("fjall").is_dir() {
        return Some(StoreChoice::Fjall);
    }
    #[cfg(feature = "rocksdb")]
    if dir.join("rocksdb").is_dir() {
        return Some(StoreChoice::Rocksdb);
    }
    None
}

/// The size of a database on disk: the bytes that the files of its store occupy. The glossary defines it.
pub(crate) fn disk_bytes(dir: &Path) -> Result<u64> {
    let folders = ["fjall", "rocksdb"].map(|store| dir.join(store));
    let sizes = folders.iter().map(|folder| {
        let size = arbor_store::occupied_bytes(folder);
        size.with_context(|| format!("reading {}", folder.display()))
    });
    sizes.sum()
}

/// Where a database keeps the genesis it was made from.
pub(crate) fn genesis_path(dir: &Path) -> PathBuf {
    dir.join("genesis.json")
}

/// Opens an existing database for a command that only looks at it: at the last flushed version, also while another
/// process writes it, and without the right to write.
pub(crate) fn look(args: &Database) -> Result<StateSnapshot> {
    let network = network_in(&args.db)?;
    open_snapshot(args, network)
}

/// Bytes for looking at a database's own records alone.
const LOOK: u64 = 16 << 20;

/// The latest version of a database, and the oldest block whose state can be read. Both are of one moment, also where another process writes.
pub(crate) fn head_and_oldest(dir: &Path) -> Result<(Meta, u64)> {
    let state = look(&Database {
        db: dir.to_owned(),
        memory: LOOK,
        write_back: None,
    })?;
    let state = state.reader();
    Ok((head(state)?.clone(), oldest_block(state)?))
}

/// As [`look`], for a command that needs the rules of the chain.
pub(crate) fn open_to_read(args: &Database) -> Result<(StateSnapshot, Genesis)> {
    let genesis = genesis_in(&args.db)?;
    let state = open_snapshot(args, network(&genesis))?;
    Ok((state, genesis))
}

fn open_snapshot(args: &Database, network: Network) -> Result<StateSnapshot> {
    let dir = args.db.as_path();
    let context = || format!("opening the database {} for reading", dir.display());
    let head = DirReader::new(dir).with_context(context)?;
    let store = open_store_to_read(dir, args.memory).with_context(context)?;
    let settings = TreeSettings::to_read(dir).unwrap_or_default();
    let tree = tree_in(dir, args.memory, &settings).with_context(context)?;
    StateSnapshot::open(store, Some(head), tree, network).with_context(context)
}

/// What has no chain is said to be of this one: what `arbor loadtest` makes.
pub(crate) const NO_CHAIN: Network = Network {
    chain_id: 0,
    genesis_hash: B256::ZERO,
};

/// The chain of the database in a folder: as HEAD says, or by its genesis where HEAD cannot tell.
fn network_in(dir: &Path) -> Result<Network> {
    match read_head_file(dir) {
        Ok(HeadFile { identity, .. }) => Ok(Network {
            chain_id: identity.chain_id,
            genesis_hash: identity.genesis.into(),
        }),
        Err(_) => Ok(network(&genesis_in(dir)?)),
    }
}

/// Whether a database belongs to a chain, so that its versions have headers.
pub(crate) fn has_chain(dir: &Path) -> Result<bool> {
    Ok(network_in(dir)? != NO_CHAIN)
}

/// The text of the genesis in a database's folder, and what chain that is; no text where the database belongs to none.
pub(crate) fn chain_in(dir: &Path) -> Result<(Network, Option<String>)> {
    let network = network_in(dir)?;
    let path = genesis_path(dir);
    match path.exists() {
        false => Ok((network, None)),
        true => {
            let text = Genesis::read_text(&path);
            Ok((network, Some(text.context("reading the genesis")?)))
        }
    }
}

/// Drops what the operating system keeps in memory of a database's files, so that the next reads come from the disk.
#[cfg(target_os = "linux")]
pub(crate) fn forget_files(dir: &Path) -> Result<()> {
    use rustix::fs::{Advice, fadvise};
    for entry in std::fs::read_dir(dir).with_context(|| format!("listing {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            forget_files(&path)?;
            continue;
        }
        let forget = || {
            let file = std::fs::File::open(&path)?;
            // What is not written yet would stay.
            file.sync_data()?;
            Ok::<(), std::io::Error>(fadvise(&file, 0, None, Advice::DontNeed)?)
        };
        match forget() {
            // A writer beside us may have removed it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            done => done.with_context(|| format!("dropping {} from memory", path.display()))?,
        }
    }
    Ok(())
}

/// Elsewhere there is no call for it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn forget_files(_: &Path) -> Result<()> {
    bail!("files can be dropped from memory on Linux only: there is no cold reading elsewhere")
}

/// Opens an existing database for a command that edits its history.
pub(crate) fn open(args: &Database) -> Result<State> {
    open_existing(&args.db, editing(args))
}

/// Opens the store in a database folder, whatever is known of the database.
pub(crate) fn open_store_alone(args: &Database) -> Result<Arc<dyn Store>> {
    open_store(&args.db, None, editing(args))
}

/// The budget of a command that edits a database.
fn editing(args: &Database) -> Budget {
    Budget {
        memory: args.memory,
        write_back: args.write_back,
        // What is not asked for is not pruned.
        retain: Retain::All,
        durable: false,
        throttle: None,
    }
}

/// Opens the database in a folder, which must hold one.
fn open_existing(dir: &Path, budget: Budget) -> Result<State> {
    let network = network_in(dir)?;
    let context = || format!("opening the database {}", dir.display());
    let lock = DirLock::acquire(dir).with_context(context)?;
    let store = open_store(dir, None, budget).with_context(context)?;
    has_head(dir, &*store).with_context(context)?;
    let settings = TreeSettings::stored(dir).with_context(context)?;
    let settings = settings.unwrap_or_default();
    let tree = tree_in(dir, budget.memory, &settings).with_context(context)?;
    State::open(store, Some(lock), tree, network, budget.options()).with_context(context)
}

/// Refuses a store that has a database where HEAD cannot be read: what else the database is would be guessed from it.
fn has_head(dir: &Path, store: &dyn Store) -> Result<()> {
    if stored_identity(store)?.is_some() {
        read_head_file(dir)?;
    }
    Ok(())
}

/// The genesis that a database keeps.
fn genesis_in(dir: &Path) -> Result<Genesis> {
    let path = genesis_path(dir);
    let anew = |what: &str| {
        format!(
            "{} is {what}; `arbor replay --db {} --genesis FILE CHAIN` writes it anew",
            path.display(),
            dir.display()
        )
    };
    if !is_there(&path)? {
        match read_head_file(dir) {
            Ok(file) if file.identity.genesis == NO_CHAIN.genesis_hash.0 => bail!(
                "{} belongs to no chain, and this cannot be done without one",
                dir.display()
            ),
            Ok(_) => bail!(anew("missing")),
            Err(_) if !is_there(dir)? => bail!("there is no database at {}", dir.display()),
            Err(_) => bail!("{} is not a database: it has no HEAD", dir.display()),
        }
    }
    if !path.is_file() {
        bail!(anew("no regular file"));
    }
    Genesis::from_file(&path, &genesis_state_root).with_context(|| anew("damaged"))
}

/// Whether a file or folder is there, as far as that can be told.
///
/// # Errors
/// What keeps that from being told, such as a folder that may not be looked into.
pub(crate) fn is_there(path: &Path) -> Result<bool> {
    path.try_exists()
        .with_context(|| format!("looking for {}", path.display()))
}

/// Opens the database in a folder, or makes one from a genesis, of which the folder keeps the text.
pub(crate) fn open_or_create(
    dir: Option<&Path>,
    (choice, tree): (StoreChoice, Tree),
    genesis: &Genesis,
    text: &str,
    budget: Budget,
) -> Result<State> {
    let Some(dir) = dir else {
        let store = Arc::new(MemoryStore::default());
        return Ok(State::open(
            Disk::new(store, budget.throttle),
            None,
            tree,
            network(genesis),
            budget.options(),
        )?);
    };
    let state = open_or_begin(dir, (choice, tree), network(genesis), budget)?;
    keep_genesis(dir, text)?;
    Ok(state)
}

/// Opens the database of a chain in a folder, or makes one, of which nothing is said yet but what it is.
pub(crate) fn open_or_begin(
    dir: &Path,
    (choice, tree): (StoreChoice, Tree),
    network: Network,
    budget: Budget,
) -> Result<State> {
    let context = || format!("opening the database {}", dir.display());
    let (store, lock) = open_or_begin_store(dir, choice, budget)?;
    State::open(store, Some(lock), tree, network, budget.options()).with_context(context)
}

/// Like [`open_or_begin`], but opens a database whose recovery did not finish, too.
pub(crate) fn open_to_recover(
    dir: &Path,
    (choice, tree): (StoreChoice, Tree),
    network: Network,
    budget: Budget,
) -> Result<State> {
    let context = || format!("opening the database {}", dir.display());
    let (store, lock) = open_or_begin_store(dir, choice, budget)?;
    State::open_to_recover(store, Some(lock), tree, network, budget.options()).with_context(context)
}

/// Locks a folder and opens the store in it, or makes one.
fn open_or_begin_store(
    dir: &Path,
    choice: StoreChoice,
    budget: Budget,
) -> Result<(Arc<dyn Store>, DirLock)> {
    let context = || format!("opening the database {}", dir.display());
    let lock = DirLock::acquire(dir).with_context(context)?;
    let store = open_store(dir, Some(choice), budget).with_context(context)?;
    has_head(dir, &*store).with_context(context)?;
    Ok((store, lock))
}

/// Keeps the text of the genesis in the folder, with which the database agrees: the latest, since forks to come are no part of its hash.
pub(crate) fn keep_genesis(dir: &Path, text: &str) -> Result<()> {
    let path = genesis_path(dir);
    // What is no file is not waited for, and takes its place.
    match path.is_file().then(|| Genesis::read_text(&path)) {
        Some(Ok(kept)) if kept == text => return Ok(()),
        Some(Ok(kept)) if !kept.is_empty() => tell_other_genesis(&path, &kept, text),
        _ => (),
    }
    write_whole(&path, text).with_context(|| format!("writing {}", path.display()))
}

/// Says what another genesis than the one before changes, if it is more than spaces.
fn tell_other_genesis(path: &Path, kept: &str, text: &str) {
    let read = |text| Genesis::from_json(text, &genesis_state_root);
    let (Ok(kept), Ok(now)) = (read(kept), read(text)) else {
        return tracing::warn!("{} is damaged: it is written anew", path.display());
    };
    let path = path.display();
    if kept.hash != now.hash {
        let (kept, now) = (kept.hash, now.hash);
        tracing::warn!("{path} is that of genesis {kept}: that of {now} takes its place");
    } else if let Some(difference) = kept.spec.differences(&now.spec).first() {
        tracing::warn!("by the genesis now given {difference}: it takes the place of {path}");
    }
}

pub(crate) fn network(genesis: &Genesis) -> Network {
    Network {
        chain_id: genesis.spec.chain_id(),
        genesis_hash: genesis.hash,
    }
}

/// The latest version of a database that has one.
pub(crate) fn head(state: Head<'_>) -> Result<&Meta> {
    state
        .meta()
        .ok_or_else(|| anyhow!("the database is empty: replay a chain into it first"))
}

/// The oldest block whose state can be read.
pub(crate) fn oldest_block(state: Head<'_>) -> Result<u64> {
    let head = head(state)?;
    let view = state.view();
    let oldest = view.oldest().unwrap_or(head.version);
    let meta = view.meta(oldest)?;
    Ok(meta.map_or(head.block_number, |meta| meta.block_number))
}

//! Databases as the command line names them.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use arbor_chain::genesis::Genesis;
use arbor_database::{Budget, Folder, NO_CHAIN, Remembered};
use arbor_state::{Head, State, StateSnapshot, TreeKind};
use arbor_versions::{Meta, Retain};

use crate::args::Database;
use crate::moves::StoredMove;
use crate::trees::TREES;

/// The folder of a database, whose tree is one of those that this program knows.
pub(crate) fn folder(dir: &Path) -> Folder<'_> {
    Folder::new(dir, &TREES)
}

/// Opens an existing database for a command that only reads it.
pub(crate) fn look(args: &Database) -> Result<StateSnapshot> {
    Ok(folder(&args.db).open_to_read(args.memory)?)
}

/// Like [`look`], for a command that needs the genesis of the chain.
pub(crate) fn open_to_read(args: &Database) -> Result<(StateSnapshot, Genesis)> {
    let genesis = folder(&args.db).genesis()?;
    Ok((look(args)?, genesis))
}

/// Refuses a database that belongs to no chain, for a command that adds blocks. A folder without a database is not looked at.
pub(crate) fn refuse_without_chain(dir: &Path) -> Result<()> {
    let head = folder(dir).head_file();
    match head.is_ok_and(|file| file.identity.genesis == NO_CHAIN.genesis_hash.0) {
        true => bail!(
            "{} belongs to no chain, so that no block can follow. If it was converted from a dump, convert the dump again with --ancestors CHAIN",
            dir.display()
        ),
        false => Ok(()),
    }
}

/// Bytes for looking at a database's own records alone.
const LOOK: u64 = 16 << 20;

/// What a database says of its versions.
pub(crate) struct StoredVersions {
    pub(crate) head: Meta,
    /// The oldest block whose state can be read.
    pub(crate) oldest: u64,
    pub(crate) old_nodes: Option<StoredNodes>,
    /// Whether nodes of older versions are still there though they are not kept any more.
    pub(crate) dropped_nodes: bool,
    /// The move to another tree, if there is one.
    pub(crate) moving: Option<StoredMove>,
}

/// What is kept of the nodes of older versions.
pub(crate) struct StoredNodes {
    /// The first block of which they are kept.
    pub(crate) oldest: u64,
    /// About how many bytes they have.
    pub(crate) bytes: u64,
}

/// The versions of a database. All is of one moment, also if another process writes.
pub(crate) fn stored_versions(dir: &Path) -> Result<StoredVersions> {
    let state = folder(dir).open_to_read(LOOK)?;
    let state = state.reader();
    let view = state.view();
    let old_nodes = match (view.keeps_nodes_since(), view.old_node_bytes()?) {
        (Some(since), Some(bytes)) => view.meta(since)?.map(|first| StoredNodes {
            oldest: first.block_number,
            bytes,
        }),
        _ => None,
    };
    Ok(StoredVersions {
        head: head(state)?.clone(),
        oldest: oldest_block(state)?,
        old_nodes,
        dropped_nodes: view.has_dropped_nodes()?,
        moving: StoredMove::of(state)?,
    })
}

/// Opens an existing database for a command that edits its history.
pub(crate) fn open(args: &Database) -> Result<State> {
    Ok(folder(&args.db).open(editing(args))?)
}

/// The budget of a command that edits a database.
pub(crate) fn editing(args: &Database) -> Budget {
    Budget {
        write_back: args.write_back,
        // What is not asked for is not pruned.
        retain: Retain::All,
        ..Budget::new(args.memory)
    }
}

/// Has the folder of a database that is open remember what is given, and warns of what its genesis changes.
pub(crate) fn remember(dir: &Path, tree: &TreeKind, what: Remembered<'_>) -> Result<()> {
    if let Some(other) = folder(dir).remember(tree, what)? {
        tracing::warn!("{other}");
    }
    Ok(())
}

/// The latest version of a database that has one.
pub(crate) fn head(state: Head<'_>) -> Result<&Meta> {
    state
        .meta()
        .ok_or_else(|| anyhow!("the database is empty: replay a chain into it first"))
}

/// Names a block. That of a state without a chain, which was converted from a dump, may not be known.
pub(crate) fn block_name(meta: &Meta) -> String {
    match meta.block_number == 0 && meta.block_hash == [0; 32] {
        true => "an unknown block".to_owned(),
        false => format!("block {}", meta.block_number),
    }
}

/// The oldest block whose state can be read.
pub(crate) fn oldest_block(state: Head<'_>) -> Result<u64> {
    let head = head(state)?;
    let view = state.view();
    let oldest = view.oldest().unwrap_or(head.version);
    let meta = view.meta(oldest)?;
    Ok(meta.map_or(head.block_number, |meta| meta.block_number))
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

//! `arbor status`: what a database is and where it stands, also while another process writes it.

use alloy_primitives::B256;
use anyhow::{Context, Result, bail};
use arbor_database::{DatabaseError, NO_CHAIN, show_retain};
use arbor_state::recovery::is_recovering;
use arbor_versions::{FlushedVersion, Meta, Version, read_head_file};
use serde::Serialize;

use crate::args::Status;
use crate::database::StoredVersions;
use crate::moves::StoredMove;
use crate::{bytes, database, described, output, rules};

/// What a database says of itself, as `--json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Standing<'a> {
    tree: &'a str,
    revision: &'a str,
    hash: &'a str,
    layout: u32,
    chain_id: u64,
    genesis: B256,
    /// None if they are not known.
    rules: Option<Vec<String>>,
    tree_settings: Option<Vec<String>>,
    store: Option<&'a str>,
    version: u64,
    block: u64,
    block_hash: B256,
    state_root: B256,
    recovering: bool,
    disk_bytes: u64,
    retain: Option<String>,
    retained: Option<Retained>,
    /// Which blocks' nodes are kept for proofs; none if none are.
    old_nodes: Option<OldNodes>,
    /// The move to another tree; none if there is none.
    moving: Option<StoredMove>,
}

/// The blocks whose nodes are kept.
#[derive(Serialize)]
struct OldNodes {
    oldest: u64,
    newest: u64,
    /// About how many bytes the records of the nodes have, without their index.
    bytes: u64,
}

/// The blocks whose state can be read.
#[derive(Serialize)]
pub(super) struct Retained {
    pub(super) oldest: u64,
    pub(super) newest: u64,
}

pub(crate) fn run(args: &Status) -> Result<()> {
    let dir = args.db.as_path();
    let folder = database::folder(dir);
    if !folder.has("")? {
        bail!(
            "{} is not a database: there is no such folder",
            dir.display()
        );
    }
    if !dir.is_dir() {
        bail!("{} is not a database: it is no folder", dir.display());
    }
    if let Some(unfinished) = folder.unfinished_conversion()
        && read_head_file(dir).is_ok_and(|file| file.head.is_none())
    {
        return Err(unfinished.into());
    }
    if !folder.has("HEAD")? {
        let unfinished = folder.unfinished_conversion();
        if let Some(error) = unfinished.or_else(|| folder.part_of_conversion()) {
            return Err(error.into());
        }
        if let Some(store) = folder.store_name() {
            bail!(
                "{} has a {store} store, but no HEAD file, which names the version that was flushed last. If the command that made the database was interrupted, run it again. If the file was lost, `arbor repair` restores it",
                dir.display()
            );
        }
        bail!(
            "{} is not a database: there is no HEAD file in it",
            dir.display()
        );
    }
    let file = read_head_file(dir)?;
    let store = folder.store_name();
    let size = folder.disk_bytes()?;
    let identity = &file.identity;
    let recovering = file
        .head
        .as_ref()
        .is_some_and(|head| is_recovering(&head.block_hash));
    let settings = known(folder.tree_settings()).map(|settings| settings.as_slice().to_vec());
    let rules = known(folder.rules()).map(rules::words);
    // None: not known; Some(None): never asked for.
    let retain = known(folder.stored_retention().map(Some));
    let setting = retain.flatten().map(show_retain);
    let stored = match recovering {
        true => Ok(None),
        false => database::stored_versions(dir).map(Some),
    };
    // What the folder tells without its store is told nevertheless, before the error.
    let (stored, opened) = match stored {
        Ok(stored) => (stored, Ok(())),
        Err(error) => (None, Err(error)),
    };
    // Beside a writer, and after a kill, the store may be a flush ahead of HEAD, which stands where the store does not open.
    let dropped_nodes = stored.as_ref().is_some_and(|stored| stored.dropped_nodes);
    let (head, oldest, old_nodes, moving) = match (stored, file.head) {
        (Some(stored), _) => {
            let StoredVersions {
                head,
                oldest,
                old_nodes,
                moving,
                ..
            } = stored;
            (head, Some(oldest), old_nodes, moving)
        }
        (None, Some(head)) => (of_file(&head), None, None, None),
        (None, None) => {
            let nothing = || format!("nothing was flushed to {} yet", dir.display());
            return opened.with_context(nothing);
        }
    };
    let retained = oldest.map(|oldest| [oldest, head.block_number]);
    let old_nodes = old_nodes.map(|kept| OldNodes {
        oldest: kept.oldest,
        newest: head.block_number,
        bytes: kept.bytes,
    });
    let (hash, root) = (B256::from(head.block_hash), B256::from(head.root));
    if args.json {
        output::json(&Standing {
            tree: &identity.tree,
            revision: &identity.revision,
            hash: &identity.hash,
            layout: identity.layout,
            chain_id: identity.chain_id,
            genesis: identity.genesis.into(),
            rules,
            tree_settings: settings,
            store,
            version: head.version.0,
            block: head.block_number,
            block_hash: hash,
            state_root: root,
            recovering,
            disk_bytes: size,
            retain: setting,
            retained: retained.map(|[oldest, newest]| Retained { oldest, newest }),
            old_nodes,
            moving,
        })?;
        return opened;
    }
    let row = arbor_trees::standard().of_identity(identity);
    output::line(&format!(
        "tree        {} ({}, {}, {}, layout {})",
        row.map_or("unknown here", |row| row.name),
        identity.tree,
        identity.revision,
        identity.hash,
        identity.layout
    ))?;
    match settings.as_deref() {
        None => output::line("settings    not known")?,
        Some([]) => {}
        Some(names) => output::line(&format!("settings    {}", names.join(",")))?,
    }
    let genesis = B256::from(identity.genesis);
    let of_no_chain = genesis == NO_CHAIN.genesis_hash;
    match of_no_chain {
        true => output::line("chain       none: no block can follow")?,
        false => output::line(&format!(
            "chain       id {}, genesis {genesis}",
            identity.chain_id
        ))?,
    }
    match rules.as_deref() {
        None => output::line("rules       not known")?,
        Some([]) => {}
        Some(words) => output::line(&format!("rules       {}", words.join(" ")))?,
    }
    output::line(&format!(
        "store       {}, {} on disk",
        store.unwrap_or("none"),
        bytes::show(size)
    ))?;
    if recovering {
        return output::line("being recovered: `arbor recover` with the same file goes on with it");
    }
    let is_known = !of_no_chain || head.block_number > 0 || !hash.is_zero();
    match (is_known, hash.is_zero()) {
        (false, _) => output::line("block       not known")?,
        (true, true) => output::line(&format!(
            "block       {}, of unknown hash",
            head.block_number
        ))?,
        (true, false) => output::line(&format!("block       {} {hash}", head.block_number))?,
    }
    output::line(&format!("state root  {root}"))?;
    let range = retained.map_or_else(|| "not known".to_owned(), blocks);
    let setting = match (retain, setting) {
        (None, _) => ", by what --retain is not known".to_owned(),
        (_, None) => String::new(),
        (_, Some(setting)) => format!("; blocks to come by --retain {setting}"),
    };
    output::line(&format!("retained    {range}{setting}"))?;
    if let Some(kept) = old_nodes {
        output::line(&format!(
            "old nodes   {}, about {}",
            blocks([kept.oldest, kept.newest]),
            bytes::show(kept.bytes)
        ))?;
    }
    if dropped_nodes {
        output::line("old nodes   not all dropped: `arbor history-proofs --drop` goes on")?;
    }
    if let Some(moving) = moving {
        moving.tell()?;
    }
    opened
}

/// Names the blocks from the first to the second.
fn blocks([oldest, newest]: [u64; 2]) -> String {
    match oldest == newest {
        true => format!("block {newest} alone"),
        false => format!("blocks {oldest} to {newest}"),
    }
}

/// What a folder remembers, or its default; `None`, and the user is told why, if that cannot be known.
fn known<T: Default>(stored: Result<Option<T>, DatabaseError>) -> Option<T> {
    match stored {
        Ok(stored) => Some(stored.unwrap_or_default()),
        Err(error) => {
            tracing::warn!("{}", described(&error.into()));
            None
        }
    }
}

/// The latest version as HEAD has it.
fn of_file(head: &FlushedVersion) -> Meta {
    Meta {
        version: Version(head.version),
        block_number: head.block_number,
        block_hash: head.block_hash,
        root: head.root,
        extra: Vec::new(),
    }
}

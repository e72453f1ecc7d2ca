//! `arbor rollback` and `arbor prune`.

use alloy_primitives::B256;
use anyhow::{Context, Result, bail};
use arbor_database::show_retain;
use arbor_state::State;
use arbor_versions::Retain;
use serde::Serialize;

use super::status::Retained;
use crate::args::{Prune, Rollback};
use crate::{bytes, database, metrics_server, output};

/// What a rollback did, as `--json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RolledBack {
    /// The latest block before.
    from: u64,
    /// The latest block now.
    to: u64,
    block_hash: B256,
    state_root: B256,
}

pub(crate) fn rollback(args: &Rollback) -> Result<()> {
    let mut state = database::open(&args.database)?;
    let from = database::head(state.reader())?.block_number;
    let to = args.to.version(state.reader())?;
    state.rollback(to)?;
    let head = database::head(state.reader())?;
    let done = RolledBack {
        from,
        to: head.block_number,
        block_hash: head.block_hash.into(),
        state_root: head.root.into(),
    };
    if args.json {
        return output::json(&done);
    }
    output::line(&format!(
        "rolled back from block {from} to block {}, state root {}",
        done.to, done.state_root
    ))
}

/// What pruning did, as `--json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Pruned {
    /// Versions whose state cannot be read any more.
    versions: u64,
    /// The blocks whose state can be read, from the oldest to the newest.
    retained: Retained,
    /// Bytes of disk that the store's files occupied before and after.
    disk_bytes_before: u64,
    disk_bytes_after: u64,
}

pub(crate) fn prune(args: &Prune) -> Result<()> {
    if args.retain == Some(Retain::All) {
        bail!(
            "--retain all: to keep all history nothing is pruned; give none, or a number of versions"
        );
    }
    metrics_server::serve(args.metrics)?;
    let dir = args.database.db.as_path();
    let before = database::folder(dir).disk_bytes()?;
    let mut state = database::open(&args.database)?;
    let retain = retained_by(args, &state)?;
    tracing::info!(
        "deleting history except what --retain {} keeps",
        show_retain(retain)
    );
    let stats = state.prune(retain)?;
    tracing::info!(
        "deleted the history of {}, {} of the index",
        output::counted(stats.versions, "version"),
        output::counted(stats.epochs, "epoch")
    );
    let retained = Retained {
        oldest: database::oldest_block(state.reader())?,
        newest: database::head(state.reader())?.block_number,
    };
    // The tree before a move may not be needed any more.
    let state = database::folder(dir).arrive(state)?;
    // The size is that of a closed database: closing writes what is left.
    drop(state);
    let done = Pruned {
        versions: stats.versions,
        retained,
        disk_bytes_before: before,
        disk_bytes_after: database::folder(dir).disk_bytes()?,
    };
    match args.json {
        true => output::json(&done),
        false => print(&done, args, retain),
    }
}

/// The history to keep: the last versions, or those of the blocks from `--before` on.
fn retained_by(args: &Prune, state: &State) -> Result<Retain> {
    match (args.retain, args.before) {
        (Some(retain), _) => Ok(retain),
        (None, Some(block)) => {
            let head = database::head(state.reader())?.version;
            let first = block.version(state.reader())?;
            Ok(Retain::Last(head.0 - first.0))
        }
        (None, None) => None.context("invariant: the parser asks for one of both"),
    }
}

fn print(done: &Pruned, args: &Prune, retain: Retain) -> Result<()> {
    let Retained { oldest, newest } = done.retained;
    let blocks = match oldest == newest {
        true => format!("block {newest} alone"),
        false => format!("blocks {oldest} to {newest}"),
    };
    output::line(&format!(
        "pruned {} (--retain {}): the state of {blocks} can be read",
        output::counted(done.versions, "version"),
        show_retain(retain)
    ))?;
    let (before, after) = (done.disk_bytes_before, done.disk_bytes_after);
    output::line(&match before.checked_sub(after) {
        Some(freed) => format!(
            "size on disk {}, {} less than before",
            bytes::show(after),
            bytes::show(freed)
        ),
        None => format!(
            "size on disk {}, {} more than before: what was deleted is written down first",
            bytes::show(after),
            bytes::show(after - before)
        ),
    })?;
    output::line(&format!(
        "the space of deleted records comes back when the store merges its files; `arbor compact --db {}` merges them now",
        args.database.db.display()
    ))
}

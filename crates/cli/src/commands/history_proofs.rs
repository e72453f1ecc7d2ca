//! `arbor history-proofs`: the nodes of retained states, kept or dropped.

use std::time::Instant;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::args::HistoryProofs;
use crate::progress::PartDone;
use crate::{bytes, database, metrics_server, output, stop};

/// What is kept, as `--json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    /// The first and the last block of which the nodes are kept; none if none are.
    blocks: Option<[u64; 2]>,
    /// Bytes of disk that the store's files occupied before and after.
    disk_bytes_before: u64,
    disk_bytes_after: u64,
    seconds: f64,
}

pub(crate) fn run(args: &HistoryProofs) -> Result<()> {
    metrics_server::serve(args.metrics)?;
    let dir = args.database.db.as_path();
    let before = database::folder(dir).disk_bytes()?;
    let start = Instant::now();
    let mut state = database::open(&args.database)?;
    let newest = database::head(state.reader())?.block_number;
    match args.drop {
        true => state.forget_nodes().context("dropping old nodes")?,
        false => {
            stop::listen_between("block");
            let progress = PartDone::new("history-proofs");
            let mut go_on = |done: u64, of: u64| {
                progress.set(
                    done as f64 / of.max(1) as f64,
                    &format!("block {done} of {of}"),
                );
                !stop::asked()
            };
            let kept = state.keep_nodes_back(&mut go_on);
            progress.finish();
            kept.context("keeping old nodes")?;
        }
    }
    let since = state.keeps_nodes_since();
    let view = state.reader().view();
    let first = since.map(|since| view.meta(since)).transpose()?.flatten();
    let blocks = first.map(|first| [first.block_number, newest]);
    // The size is that of a closed database: closing writes what is left.
    drop(state);
    let done = Kept {
        blocks,
        disk_bytes_before: before,
        disk_bytes_after: database::folder(dir).disk_bytes()?,
        seconds: start.elapsed().as_secs_f64(),
    };
    match args.json {
        true => output::json(&done),
        false => print(&done),
    }
}

fn print(done: &Kept) -> Result<()> {
    let kept = match done.blocks {
        None => "no nodes of older blocks are kept".to_owned(),
        Some([first, newest]) if first == newest => {
            format!("nodes are kept from block {first} on, the latest")
        }
        Some([first, newest]) => format!("nodes are kept of blocks {first} to {newest}"),
    };
    if stop::asked() {
        output::tell("stopped: the same command goes on");
    }
    output::line(&format!(
        "{kept}; size on disk {}, before {}; {:.1} s",
        bytes::show(done.disk_bytes_after),
        bytes::show(done.disk_bytes_before),
        done.seconds
    ))
}

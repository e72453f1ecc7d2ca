//! `arbor backup`: a copy of a whole database, made while the database is written.

use std::path::Path;
use std::time::Instant;

use alloy_primitives::B256;
use anyhow::{Context, Result, bail};
use arbor_database::DatabaseSnapshot;
use serde::Serialize;

use super::verify;
use crate::args::Backup;
use crate::progress::PartDone;
use crate::{bytes, database, files, metrics_server, output};

/// A copy that is whole, as `--json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BackedUp<'a> {
    /// The folder of the copy.
    to: &'a Path,
    /// The latest block of the copy; null if no version was flushed.
    block: Option<u64>,
    root: B256,
    records: u64,
    /// Bytes of keys and values.
    record_bytes: u64,
    /// Bytes of disk that the files of the copy's store occupy.
    disk_bytes: u64,
    seconds: f64,
}

pub(crate) fn run(args: &Backup) -> Result<()> {
    metrics_server::serve(args.metrics)?;
    let (dir, to) = (args.database.db.as_path(), args.to.as_path());
    files::not_of_database("--to", to, Some(dir))?;
    let folder = database::folder(dir);
    let size = folder.disk_bytes()?.max(1);
    let start = Instant::now();
    let progress = PartDone::new("backup");
    let tell = |records: u64, copied: u64| {
        // Records are compressed on the disk, so this is an estimate.
        let done = (copied as f64 / size as f64).min(1.0);
        progress.set(done, &format!("{records} records, {}", bytes::show(copied)));
    };
    let made = folder.backup(to, args.database.memory, &tell, |copy| {
        tracing::info!(
            "copied in {:.1} s; checking the copy",
            start.elapsed().as_secs_f64()
        );
        check(args, copy)
    });
    progress.finish();
    let made = made.with_context(|| format!("backing up {}", dir.display()))?;
    let done = BackedUp {
        to,
        block: made.version.map(|_| made.block),
        root: made.root,
        records: made.records,
        record_bytes: made.bytes,
        disk_bytes: database::folder(to).disk_bytes()?,
        seconds: start.elapsed().as_secs_f64(),
    };
    if args.json {
        return output::json(&done);
    }
    let block = done.block.map_or_else(
        || "without a block".to_owned(),
        |block| format!("at block {block} with root {}", done.root),
    );
    output::line(&format!(
        "copied {}, {}, {block} to {} and checked the copy in {:.1} s",
        output::counted(done.records, "record"),
        bytes::show(done.record_bytes),
        to.display(),
        done.seconds
    ))
}

/// Checks the whole copy, headers included if the database is of a chain.
fn check(args: &Backup, copy: &DatabaseSnapshot) -> Result<()> {
    let dir = args.database.db.as_path();
    match copy {
        // An empty database has nothing else to check.
        DatabaseSnapshot::State(state) if state.reader().meta().is_some() => {
            let has_headers = database::folder(dir).has_chain()?;
            let checked = verify::check(state, has_headers, args.threads)?;
            for fault in checked.faults() {
                output::tell(&format!("fault: {fault}"));
            }
            let verdict = checked.verdict(dir);
            verdict.context("the copy has the faults of its source, so it is not kept")
        }
        copy => match copy.faults()?.first() {
            Some(fault) => bail!("{}: {fault}", dir.display()),
            None => Ok(()),
        },
    }
}

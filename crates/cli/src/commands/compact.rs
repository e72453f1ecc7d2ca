//! `arbor compact`: gives the space of deleted records back.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use arbor_metrics::ProcessUsage;
use arbor_state::{State, StateError};
use serde::Serialize;

use crate::args::Compact;
use crate::progress::PartDone;
use crate::{bytes, database, metrics_server, output};

/// Space that a merge gave back, as `--json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Compacted {
    /// Bytes of disk that the store's files occupied before and after.
    disk_bytes_before: u64,
    disk_bytes_after: u64,
    seconds: f64,
}

pub(crate) fn run(args: &Compact) -> Result<()> {
    metrics_server::serve(args.metrics)?;
    let dir = args.database.db.as_path();
    let before = database::folder(dir).disk_bytes()?;
    let start = Instant::now();
    let state = database::open(&args.database)?;
    tracing::info!("merging files of {}", bytes::show(before));
    merge(&state, before).with_context(|| format!("merging the files of {}", dir.display()))?;
    // Closing empties the journals.
    drop(state);
    let done = Compacted {
        disk_bytes_before: before,
        disk_bytes_after: database::folder(dir).disk_bytes()?,
        seconds: start.elapsed().as_secs_f64(),
    };
    tracing::info!("merged in {:.1} s, and closed the database", done.seconds);
    if args.json {
        return output::json(&done);
    }
    output::line(&format!(
        "size on disk {}, before {}; merged in {:.1} s",
        bytes::show(done.disk_bytes_after),
        bytes::show(before),
        done.seconds
    ))
}

/// How often the operating system is asked what was written.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// Merges the files, and shows the progress. The engine does not report which part of a merge is done. A merge writes
/// at most as many bytes as the files have, so the part is the bytes that the process has written, of those.
fn merge(state: &State, before: u64) -> Result<(), StateError> {
    let progress = PartDone::new("compact");
    let written_before = ProcessUsage::bytes_written_so_far();
    let (merging, merged) = mpsc::channel::<()>();
    let result = thread::scope(|scope| {
        let progress = &progress;
        scope.spawn(move || {
            while merged.recv_timeout(ASK_EVERY) == Err(RecvTimeoutError::Timeout) {
                let written = ProcessUsage::bytes_written_so_far().zip(written_before);
                let written = written.map_or(0, |(now, then)| now - then).min(before);
                let what = format!(
                    "{} written, {} at most",
                    bytes::show(written),
                    bytes::show(before)
                );
                progress.set(written as f64 / before.max(1) as f64, &what);
            }
        });
        let result = state.compact();
        drop(merging);
        result
    });
    progress.finish();
    result
}

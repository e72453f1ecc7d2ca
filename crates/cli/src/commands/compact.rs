//! `arbor compact`: gives the space of deleted records back.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::args::Compact;
use crate::{bytes, database, output};

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
    let dir = args.database.db.as_path();
    let before = database::folder(dir).disk_bytes()?;
    let start = Instant::now();
    let state = database::open(&args.database)?;
    let spinner = spinner();
    state
        .compact()
        .with_context(|| format!("merging the files of {}", dir.display()))?;
    // Closing empties the journals.
    drop(state);
    if let Some(spinner) = spinner {
        spinner.finish_and_clear();
    }
    let done = Compacted {
        disk_bytes_before: before,
        disk_bytes_after: database::folder(dir).disk_bytes()?,
        seconds: start.elapsed().as_secs_f64(),
    };
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

/// Shows that the command works. The engine does not tell which part of a merge is done.
fn spinner() -> Option<ProgressBar> {
    std::io::stderr().is_terminal().then(|| {
        let spinner = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} merging files, {elapsed}");
        spinner.set_style(style.expect("invariant: the template is well formed"));
        spinner.enable_steady_tick(Duration::from_millis(200));
        spinner
    })
}

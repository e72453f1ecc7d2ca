//! `arbor verify`: the whole database.

use std::path::Path;

use anyhow::{Result, bail};
use arbor_chain::replay::HeaderCheck;
use arbor_state::{RootPlace, StateSnapshot, VerifyProgress};

use crate::args::Verify;
use crate::progress::PartDone;
use crate::rules::Rules;
use crate::{database, output};

pub(crate) fn run(args: &Verify) -> Result<()> {
    let state = database::look(&args.database)?;
    let dir = args.database.db.as_path();
    check(&state, dir, database::has_chain(dir)?, args.threads)?;
    // They say what the blocks to come mean, not whether what is stored holds.
    Rules::stored(dir).map(drop)
}

/// Checks the whole database in a folder, whose versions have headers if it is of a chain, on so many threads.
pub(crate) fn check(
    state: &StateSnapshot,
    dir: &Path,
    has_headers: bool,
    threads: usize,
) -> Result<()> {
    let head = database::head(state.reader())?;
    let mut headers = HeaderCheck::new(state.reader().tree());
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()?;
    let progress = PartDone::new("verify");
    let report = pool.install(|| {
        let tell = |now: VerifyProgress| {
            let what = format!(
                "{} accounts, {} slots, {} nodes",
                now.accounts, now.slots, now.nodes
            );
            progress.set(now.done, &what);
        };
        state.verify(&tell, &mut |meta| match has_headers {
            true => headers.check(meta),
            false => Ok(()),
        })
    })?;
    progress.finish();
    output::line(&format!(
        "checked {} accounts, {} slots, {} codes and {} nodes at block {}",
        report.accounts, report.slots, report.codes, report.nodes, head.block_number
    ))?;
    let versions = if has_headers { "headers" } else { "versions" };
    output::line(&format!(
        "checked {} {versions}, {} undo records and {} index entries, and rebuilt {} older versions",
        report.records.metas,
        report.records.undo_chunks,
        report.records.index_entries,
        report.versions
    ))?;
    for fault in &report.faults {
        output::tell(&format!("fault: {fault}"));
    }
    let flat_root = report.flat_root;
    let other = headers.state_root().filter(|root| *root != flat_root);
    if let Some(expected) = other {
        output::tell(&format!(
            "fault: the Merkle-Patricia root of the flat tables is {flat_root}, the header of block {} has {expected}",
            head.block_number
        ));
    }
    let root = state.reader().root();
    match report.fault_count {
        0 if other.is_some() => bail!(
            "{}: every node and record agrees with root {root}, but the accounts and slots are not those that the header of block {} means: that header is false, or what the blocks were executed by",
            dir.display(),
            head.block_number
        ),
        0 if !has_headers => {
            output::line(&format!("every node and record agrees with root {root}"))
        }
        0 if state.reader().tree().kind().roots == RootPlace::InHeaders => output::line(&format!(
            "every node and record agrees with state root {root}"
        )),
        0 => output::line(&format!(
            "every node and record agrees with root {root}, and the accounts and slots with the header's state root {flat_root}"
        )),
        faults => {
            let faults = faults + u64::from(other.is_some());
            bail!("{} is damaged: {faults} faults found", dir.display())
        }
    }
}

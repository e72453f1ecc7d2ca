//! `arbor verify --part` and `--join`: a check of a whole database that machines share.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use arbor_state::{PartOf, StateError, StateSnapshot, VerifiedPart, VerifiedParts, VerifyProgress};
use serde_json::json;

use crate::args::Verify;
use crate::progress::PartDone;
use crate::{database, files, output};

/// Checks one part, and writes its results to a file.
pub(super) fn one(args: &Verify, state: &StateSnapshot, part: PartOf, to: &Path) -> Result<()> {
    files::not_of_database("--to", to, Some(&args.database.db))?;
    let cannot = || format!("--to {} cannot be written", to.display());
    files::check(to).with_context(cannot)?;
    database::head(state.reader())?;
    let found = on_threads(args.threads, |tell| state.verify_part(part, tell))?;
    files::write(to, &found.encode()).with_context(cannot)?;
    match args.json {
        true => output::json(&json!({
            "part": part.to_string(),
            "block": found.block,
            "root": found.root,
            "holds": found.fault_count == 0,
            "accounts": found.accounts,
            "slots": found.slots,
            "codes": found.codes,
            "nodes": found.nodes,
            "faultCount": found.fault_count,
            "faults": found.faults,
        }))?,
        false => output::line(&format!(
            "checked part {part}: {}, {}, {} and {} at block {}",
            output::counted(found.accounts, "account"),
            output::counted(found.slots, "slot"),
            output::counted(found.codes, "code"),
            output::counted(found.nodes, "node"),
            found.block
        ))?,
    }
    if found.fault_count == 0 {
        return Ok(());
    }
    if !args.json {
        let faults = found.faults.iter();
        faults.for_each(|fault| output::tell(&format!("fault: {fault}")));
    }
    bail!(
        "{} is damaged: {} found in part {part}",
        args.database.db.display(),
        output::counted(found.fault_count, "fault")
    )
}

/// Reads the files of all parts.
pub(super) fn read(state: &StateSnapshot, paths: &[PathBuf]) -> Result<VerifiedParts> {
    let mut parts = Vec::new();
    for path in paths {
        let name = || path.display().to_string();
        if path.is_dir() {
            bail!(
                "--join {} is a folder: give the files that `arbor verify --part I/N --to FILE` has written",
                path.display()
            );
        }
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
        read.with_context(name)?;
        parts.push(VerifiedPart::decode(&bytes).with_context(name)?);
    }
    match state.all_parts(parts) {
        Ok(parts) => Ok(parts),
        Err(error) => match error.at() {
            Some(at) => Err(error).with_context(|| paths[at].display().to_string()),
            None => Err(error.into()),
        },
    }
}

/// Runs a check on a number of threads, which is given what to call with its progress.
pub(super) fn on_threads<T: Send>(
    threads: usize,
    check: impl FnOnce(&(dyn Fn(VerifyProgress) + Sync)) -> Result<T, StateError> + Send,
) -> Result<T> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()?;
    tracing::info!(
        "checking every record and node, threads: {}",
        pool.current_num_threads()
    );
    let progress = PartDone::new("verify");
    let tell = |now: VerifyProgress| {
        let what = format!(
            "{} accounts, {} slots, {} nodes",
            now.accounts, now.slots, now.nodes
        );
        progress.set(now.done, &what);
    };
    let checked = pool.install(|| check(&tell))?;
    progress.finish();
    Ok(checked)
}

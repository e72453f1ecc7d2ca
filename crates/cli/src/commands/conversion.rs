//! What `arbor convert`, its parts and their joining have in common: the facts about a source, messages, reports and progress.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use anyhow::{Context, Result, bail};
use arbor_chain::rules::ChainRules;
use arbor_convert::{Audit, ConvertError, Converted, Counts, Job, PhaseDone, SourceBlock};
use arbor_database::{PART, is_own_name};
use arbor_state::Network;
use arbor_versions::read_head_file;
use serde_json::{Value, json};

use crate::progress::PartDone;
use crate::{bytes, database, output};

/// The facts that a source gives for the database that is made of it.
pub(super) struct Facts {
    /// Description of the source, by which a conversion that goes on is recognised.
    pub(super) name: String,
    pub(super) network: Network,
    pub(super) genesis: Option<String>,
    pub(super) rules: Option<ChainRules>,
    pub(super) blocks: Vec<SourceBlock>,
    pub(super) state_root: Option<B256>,
}

/// Refuses a file in place of the target's folder, and a folder with files that are neither a database's nor a conversion's.
pub(super) fn check_target(to: &Path) -> Result<()> {
    if !to.exists() {
        return Ok(());
    }
    let shown = to.display();
    if !to.is_dir() {
        bail!("--to {shown} is a file: name a folder for the new database");
    }
    let folder = database::folder(to);
    let marks = ["HEAD", PART];
    let has_mark = marks.iter().any(|mark| to.join(mark).exists());
    if has_mark || folder.store_name().is_some() || Job::read(to)?.is_some() {
        return Ok(());
    }
    let listing = || format!("listing {shown}");
    for entry in std::fs::read_dir(to).with_context(listing)? {
        let name = entry.with_context(listing)?.file_name();
        let name = name.to_string_lossy();
        // A run that ended early may have left some of its own, and the root of a disk may have the folder lost+found.
        if !is_own_name(&name) && name != "lost+found" {
            bail!(
                "--to {shown} has other files (such as {name:?}), and neither a database nor a conversion: name a new folder, or an empty one"
            );
        }
    }
    Ok(())
}

/// Says what to do about a full disk, if an error of a conversion into a folder comes of one.
pub(super) fn with_remedy<T>(dir: &Path, result: Result<T>) -> Result<T> {
    result.map_err(|error| match is_full(&error) {
        true => error.context(format!(
            "no space is left on the disk of {}: free space on it, then the same command goes on",
            dir.display()
        )),
        false => error,
    })
}

/// Whether an error comes of a full disk.
pub(super) fn is_full(error: &anyhow::Error) -> bool {
    error.chain().any(is_full_disk)
}

/// Whether an error says that a disk or a quota is full. Not all errors of stores and trees have the system's error as their source.
fn is_full_disk(error: &(dyn std::error::Error + 'static)) -> bool {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return matches!(
            error.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        );
    }
    let text = error.to_string().to_lowercase();
    text.contains("no space left on") || text.contains("disk quota exceeded")
}

/// The number of the block of a state, the last one of some; `None` if nothing says which block it is.
pub(super) fn known_block(blocks: &[SourceBlock]) -> Option<u64> {
    let block = &blocks.last()?.block;
    (block.number > 0 || !block.hash.is_zero()).then_some(block.number)
}

/// Says that there is nothing to do.
pub(super) fn finished(dir: &Path, json: bool) -> Result<()> {
    let done = format!(
        "{} was converted from this source and is finished: there is nothing to do",
        dir.display()
    );
    output::remark(json, &done)
}

/// Says how a conversion that was stopped goes on.
pub(super) fn stopped(json: bool) -> Result<()> {
    output::remark(
        json,
        "stopped as asked; run the same command again to go on",
    )
}

/// Lists hashed keys without names, which are an error.
pub(super) fn missing(audit: Box<Audit>) -> anyhow::Error {
    let lines = audit.missing.iter();
    let lines = lines.map(|missing| format!("no preimage: {missing}"));
    tell_some(lines, audit.missing_accounts + audit.missing_slots);
    ConvertError::MissingNames(audit).into()
}

/// The phases of a run, for a report.
pub(super) fn phases(phases: &[PhaseDone]) -> Value {
    let phases = phases.iter().map(|done| {
        json!({
            "phase": done.phase.name(),
            "seconds": done.time.as_secs_f64(),
            "accounts": done.counts.accounts,
            "slots": done.counts.slots,
        })
    });
    phases.collect()
}

/// Whether a folder has a database with a version.
pub(super) fn has_version(dir: &Path) -> bool {
    read_head_file(dir).is_ok_and(|file| file.head.is_some())
}

/// Whether this conversion has made the database in a folder and is finished. Refuses any other database that is whole.
pub(super) fn is_finished(dir: &Path, job: &Job) -> Result<bool> {
    if !has_version(dir) {
        return Ok(false);
    }
    match (Job::finished(dir)?, Job::read(dir)?) {
        (Some(found), _) if found.is_same(job) => {
            // A kill may have come while its files were being removed.
            Job::remove(dir)?;
            Ok(true)
        }
        (_, Some(_)) => Ok(false),
        (Some(found), None) => bail!(
            "{} has a database already: it was converted from {} to {}. Name another folder",
            dir.display(),
            found.source,
            found.target
        ),
        (None, None) => bail!(
            "{} has a database already: name another folder",
            dir.display()
        ),
    }
}

/// The command as it was given, for the message about a conversion that is not finished.
pub(super) fn command() -> String {
    let quoted = |word: String| {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=+,".contains(letter);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word,
            false => format!("'{}'", word.replace('\'', "'\\''")),
        }
    };
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| quoted(word.to_string_lossy().into_owned()));
    let words: Vec<String> = std::iter::once("arbor".to_owned()).chain(words).collect();
    words.join(" ")
}

pub(super) fn results(converted: &Converted, block: Option<u64>, disk_bytes: u64) -> Value {
    let found = &converted.comparison;
    json!({
        "block": block,
        "root": converted.root,
        "stateRoot": converted.flat_root,
        "accounts": found.counts.accounts,
        "slots": found.counts.slots,
        "codes": found.codes,
        "codeBytes": found.code_bytes,
        "diskBytes": disk_bytes,
        "differenceCount": found.difference_count,
        "differences": found.differences.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "phases": phases(&converted.phases),
    })
}

pub(super) fn print(
    converted: &Converted,
    block: Option<u64>,
    (seconds, disk_bytes): (f64, u64),
) -> Result<()> {
    let found = &converted.comparison;
    for phase in &converted.phases {
        output::line(&format!(
            "  {}: {:.2} s",
            phase.phase.name(),
            phase.time.as_secs_f64()
        ))?;
    }
    if !found.is_same() {
        return Ok(());
    }
    let block = block.map_or("an unknown block".to_owned(), |block| {
        format!("block {block}")
    });
    output::line(&format!(
        "converted {} accounts, {} slots and {} codes of {block} in {seconds:.2} s ({:.0} accounts and slots/s): root {}, {}",
        found.counts.accounts,
        found.counts.slots,
        found.codes,
        rate(found.counts, Duration::from_secs_f64(seconds)),
        converted.root,
        bytes::show(disk_bytes)
    ))?;
    output::line(&format!(
        "all of it was read again and compared with the source: the state root is {}",
        converted.flat_root
    ))
}

pub(super) fn verdict(converted: &Converted, dir: &Path) -> Result<()> {
    let found = &converted.comparison;
    let differences = found.differences.iter();
    let lines = differences.map(|difference| format!("difference: {difference}"));
    tell_some(lines, found.difference_count);
    match found.is_same() {
        true => Ok(()),
        false => bail!(
            "{} is not the state that it was converted from: {} differences found",
            dir.display(),
            found.difference_count
        ),
    }
}

/// Lines of one kind that are printed; the report has more.
const SHOWN: u64 = 20;

/// Prints the first lines of a list, and how many there are further.
pub(super) fn tell_some(lines: impl Iterator<Item = String>, count: u64) {
    lines
        .take(SHOWN as usize)
        .for_each(|line| output::tell(&line));
    if count > SHOWN {
        output::tell(&format!("and {} more", count - SHOWN));
    }
}

fn rate(counts: Counts, time: Duration) -> f64 {
    (counts.accounts + counts.slots) as f64 / time.as_secs_f64().max(1e-3)
}

/// The progress of the phase that is under way.
#[derive(Default)]
pub(super) struct Shown(Mutex<Option<(&'static str, Instant, PartDone)>>);

impl Shown {
    /// Takes the name of the phase, the part of it that is done, and what it has read.
    pub(super) fn tell(&self, phase: &'static str, done: f64, counts: Counts) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.as_ref().is_none_or(|(before, _, _)| *before != phase) {
            end(shown.take());
            tracing::info!("{phase}: begins");
            *shown = Some((phase, Instant::now(), PartDone::new(phase)));
        }
        let Some((_, begin, progress)) = &*shown else {
            return;
        };
        let what = match counts == Counts::default() {
            true => phase.to_owned(),
            false => format!(
                "{} accounts, {} slots, {:.0}/s",
                counts.accounts,
                counts.slots,
                rate(counts, begin.elapsed())
            ),
        };
        progress.set(done, &what);
    }

    pub(super) fn finish(&self) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        end(shown.take());
    }
}

/// Ends the progress of a phase.
fn end(shown: Option<(&'static str, Instant, PartDone)>) {
    if let Some((phase, begin, progress)) = shown {
        progress.finish();
        tracing::info!(
            "{phase}: ended after {:.1} s",
            begin.elapsed().as_secs_f64()
        );
    }
}

//! `arbor preimages`: the names behind hashed keys.

use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use arbor_convert::{
    ConvertError, Counts, Dump, HashedSource, Hooks, Phase, Preimages as Work, WrittenForm,
};
use serde_json::json;
use tempfile::{NamedTempFile, TempDir};

use crate::args::{Database, Preimages, PreimagesAudit, PreimagesExport, PreimagesImport};
use crate::commands::conversion::Shown;
use crate::{bytes, database, output, stop};

pub(crate) fn run(args: &Preimages) -> Result<()> {
    stop::listen_between("part");
    match args {
        Preimages::Audit(args) => pool(args.work.threads)?.install(|| audit(args)),
        Preimages::Export(args) => pool(args.work.threads)?.install(|| export(args)),
        Preimages::Import(args) => pool(args.work.threads)?.install(|| import(args)),
    }
}

fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().context("starting threads")
}

/// Makes a folder for files on the way, which goes away with it.
fn scratch(named: Option<&Path>, beside: Option<&Path>) -> Result<TempDir> {
    let folder = named.map(Path::to_owned).or_else(|| {
        let folder = beside?.parent()?;
        Some(match folder == Path::new("") {
            true => Path::new(".").to_owned(),
            false => folder.to_owned(),
        })
    });
    let made = match &folder {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    made.context("making a folder for files on the way")
}

/// Prepares the work in a folder. Progress goes to `progress`.
fn work<'a>(
    folder: &'a Path,
    memory: u64,
    progress: &'a (dyn Fn(Phase, f64, Counts) + Sync),
) -> Work<'a> {
    Work {
        folder,
        memory: memory / 4,
        hooks: Hooks {
            progress,
            stop: &stop::asked,
        },
    }
}

/// Missing preimages that are printed as lines.
const SHOWN: usize = 20;

fn audit(args: &PreimagesAudit) -> Result<()> {
    let folder = scratch(args.work.scratch.as_deref(), None)?;
    let work = work(folder.path(), args.memory, &|_, _, _| ());
    let found = match args.from.is_dir() {
        false => {
            let dump = Dump::open(&args.from);
            let dump = dump.with_context(|| format!("reading {}", args.from.display()))?;
            work.audit(HashedSource::Dump(dump), &args.preimages)
        }
        true => {
            let snapshot = database::look(&Database {
                db: args.from.clone(),
                memory: args.memory,
                write_back: None,
            })?;
            let reader = snapshot.reader();
            let then = reader.at(database::head(reader)?.version)?;
            work.audit(HashedSource::State(&then), &args.preimages)
        }
    };
    let found = found.with_context(|| format!("auditing {}", args.from.display()))?;
    let missing = found.missing.iter();
    if args.json {
        output::json(&json!({
            "accounts": found.counts.accounts,
            "slots": found.counts.slots,
            "preimages": found.names,
            "missingAccounts": found.missing_accounts,
            "missingSlots": found.missing_slots,
            "missing": missing.map(|missing| json!({
                "key": missing.account,
                "address": missing.address,
                "slotKey": missing.slot,
            })).collect::<Vec<_>>(),
        }))?;
    } else {
        for missing in missing.take(SHOWN) {
            output::line(&format!("no preimage: {missing}"))?;
        }
        let all = found.missing_accounts + found.missing_slots;
        if all > SHOWN as u64 {
            let more = all - SHOWN as u64;
            output::line(&format!("and {more} more; --json lists up to 1,000 of all"))?;
        }
        output::line(&format!(
            "{} accounts and {} slots, {} preimages: {} accounts and {} slots have none",
            found.counts.accounts,
            found.counts.slots,
            found.names,
            found.missing_accounts,
            found.missing_slots
        ))?;
    }
    match found.is_complete() {
        true => Ok(()),
        false => bail!(
            "{} of {} hashed keys have no preimage",
            found.missing_accounts + found.missing_slots,
            found.counts.accounts + found.counts.slots
        ),
    }
}

fn export(args: &PreimagesExport) -> Result<()> {
    let snapshot = database::look(&args.database)?;
    let reader = snapshot.reader();
    let then = reader.at(args.at.version(reader)?)?;
    let folder = scratch(args.work.scratch.as_deref(), Some(&args.out))?;
    let shown = Shown::default();
    let tell = |phase, done, counts| shown.tell(name(phase), done, counts);
    let work = work(folder.path(), args.database.memory, &tell);
    write(&args.out, (args.form.into(), args.json), |form, out| {
        let names = work.export(&then, form, out);
        shown.finish();
        names
    })
}

fn import(args: &PreimagesImport) -> Result<()> {
    let folder = scratch(args.work.scratch.as_deref(), Some(&args.out))?;
    let shown = Shown::default();
    let tell = |phase, done, counts| shown.tell(name(phase), done, counts);
    let work = work(folder.path(), args.memory, &tell);
    write(&args.out, (args.form.into(), args.json), |form, out| {
        let names = match &args.from {
            None => work.import(&args.files, form, out),
            Some(from) => work.import_of(Dump::open(from)?, &args.files, form, out),
        };
        shown.finish();
        names
    })
}

/// The word for a phase of work that builds nothing.
fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Build => "write",
        phase => phase.name(),
    }
}

/// Writes a new file as a whole, and prints what it has, as JSON if asked.
fn write(
    path: &Path,
    (form, json): (WrittenForm, bool),
    write: impl FnOnce(WrittenForm, &mut dyn Write) -> Result<u64, ConvertError>,
) -> Result<()> {
    if path.symlink_metadata().is_ok() {
        bail!("{} is there already", path.display());
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let file = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")));
    let file = file.with_context(|| format!("writing {}", path.display()))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let names = write(form, &mut out)?;
    let file = out
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error)?;
    file.as_file().sync_all()?;
    let file = file.persist_noclobber(path)?;
    let length = file.metadata()?.len();
    if json {
        return output::json(&json!({
            "file": path,
            "fileBytes": length,
            "preimages": names,
        }));
    }
    output::line(&format!(
        "wrote {}, {}, to {}",
        output::counted(names, "preimage"),
        bytes::show(length),
        path.display()
    ))
}

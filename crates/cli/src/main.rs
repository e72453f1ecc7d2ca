//! The `arbor` command line.
#![forbid(unsafe_code)]
// They panic where nobody reads: see `output`.
#![warn(clippy::print_stderr, clippy::print_stdout)]

mod args;
mod block_choice;
mod block_rows;
mod bytes;
mod commands;
mod database;
mod files;
mod genesis;
mod leaf_file;
mod leaf_list;
mod logging;
mod memory_replay;
mod metrics_server;
mod moves;
mod names;
mod output;
mod progress;
mod report;
mod retained;
mod rules;
mod stop;
mod trees;
mod version;

use std::path::Path;
use std::process::ExitCode;
#[cfg(unix)]
use std::sync::Arc;

use anyhow::Context;
use arbor_allocations::Counting;
use arbor_cpu::{BACKEND_VARIABLE, Backend, UnsupportedBackend};
use arbor_database::DatabaseError;
use arbor_state::StateError;
use arbor_versions::VersionsError;
use args::{Arbor, Command};
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};
use commands::replay_witness::Partial;
use commands::verify_proof::Doubtful;

/// Records and undo entries are many small allocations of mixed sizes, made on one thread and freed on another. `bench` asks for the counts.
#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

/// Exit codes: 0 done, 1 failed (what and where is on stderr), 2 the command line is not understood, 3 no fault was found
/// but a verdict is partial (`replay --witness`), 130 stopped when asked to (by
/// Ctrl-C or SIGTERM), with what was done until then kept.
fn main() -> ExitCode {
    // Where a tree's tables were made and a block was computed, as much is freed as a replay then lives on. It comes first: what is freed
    // before goes back after the allocator's own delay of a second, and all that is freed until then with it.
    arbor_allocations::purge_after(100);
    take_full_files_for_errors();
    end_with_parent();
    let mut arbor = Arbor::try_parse().unwrap_or_else(|error| {
        // Help goes here, too. If it cannot be written, nobody reads.
        let _ = error.print();
        if is_of_environment(&error) {
            output::tell("hint: the value is that of the environment variable ARBOR_MEMORY");
        }
        std::process::exit(error.exit_code())
    });
    arbor.command.ignore_unused_environment();
    logging::begin(arbor.verbose, arbor.log_format);
    match check_backend().and_then(|()| run(&arbor.command)) {
        Ok(()) if stop::asked() => ExitCode::from(stop::EXIT_CODE),
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Partial>() || error.is::<Doubtful>() => {
            output::tell(&format!("partial: {error}"));
            ExitCode::from(Partial::EXIT_CODE)
        }
        Err(error) => {
            output::tell(&format!("error: {}", described(&error)));
            if let Some(hint) = hint(&error) {
                output::tell(&format!("hint: {hint}"));
            }
            ExitCode::FAILURE
        }
    }
}

/// Has the system end a run of a comparison together with the comparison. Ctrl-C does not reach the run, which has a
/// group of its own.
#[cfg(target_os = "linux")]
fn end_with_parent() {
    use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
    let parent = std::env::var(arbor_compare::PARENT_VARIABLE).ok();
    let Some(parent) = parent.and_then(|parent| parent.parse::<i32>().ok()) else {
        return;
    };
    let signalled = set_parent_process_death_signal(Some(Signal::KILL));
    // It may have ended before that.
    let is_gone = getppid().map(Pid::as_raw_pid) != Some(parent);
    if signalled.is_ok() && is_gone {
        std::process::exit(i32::from(stop::EXIT_CODE));
    }
}

#[cfg(not(target_os = "linux"))]
fn end_with_parent() {}

/// Whether the command line is refused for a value of `--memory` that it does not have: the environment has it.
fn is_of_environment(error: &clap::Error) -> bool {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let variable = std::env::var(args::MEMORY_VARIABLE);
    let is_given = std::env::args().any(|word| word.starts_with("--memory"));
    !is_given
        && text(ContextKind::InvalidArg).starts_with("--memory")
        && variable.is_ok_and(|value| value == text(ContextKind::InvalidValue))
}

/// The command that mends what an error comes of, if there is one.
fn hint(error: &anyhow::Error) -> Option<String> {
    if let Some(dir) = without_head(error) {
        let dir = dir.display();
        return Some(format!(
            "`arbor repair --db {dir}` restores HEAD from the store"
        ));
    }
    error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(DatabaseError::Genesis { path, .. }) => {
            let dir = path.parent().unwrap_or(path).display();
            Some(format!(
                "`arbor replay --db {dir} --genesis FILE CHAIN` writes it anew"
            ))
        }
        _ => None,
    })
}

/// Reports a name in [`BACKEND_VARIABLE`] that [`Backend::detect`] would panic at.
pub(crate) fn check_backend() -> anyhow::Result<()> {
    let Some(name) = std::env::var_os(BACKEND_VARIABLE) else {
        return Ok(());
    };
    let backend: Backend = name.to_string_lossy().parse().context(BACKEND_VARIABLE)?;
    match backend.is_available() {
        true => Ok(()),
        false => Err(UnsupportedBackend::Missing(backend)).context(BACKEND_VARIABLE),
    }
}

/// Has a write beyond the greatest size of a file (`ulimit -f`) fail like one to a full disk. The signal that comes with it would otherwise end the process without a word.
#[cfg(unix)]
fn take_full_files_for_errors() {
    let signal = rustix::process::Signal::XFSZ.as_raw();
    // Whether it came is of no interest: the write tells. Where it cannot be caught, it does what it would have done.
    let _ = signal_hook::flag::register(signal, Arc::default());
}

#[cfg(not(unix))]
fn take_full_files_for_errors() {}

/// The error of the versioned tables that a cause is.
fn of_versions<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a VersionsError> {
    match (cause.downcast_ref(), cause.downcast_ref::<DatabaseError>()) {
        (Some(StateError::Versions(error)), _) => Some(&**error),
        (_, Some(error)) => error.versions(),
        _ => cause.downcast_ref(),
    }
}

/// The folder of a database that has a store but no HEAD that can be read, if that is what an error comes of.
fn without_head(error: &anyhow::Error) -> Option<&Path> {
    let path = error.chain().find_map(|cause| match of_versions(cause) {
        Some(VersionsError::HeadFile { path, .. }) => Some(path),
        _ => None,
    });
    path?
        .parent()
        .filter(|dir| database::folder(dir).store().is_some())
}

/// Characters of an error that are told: it may have a whole name or value of a file in it.
const TOLD: usize = 4_000;

/// An error with its causes, each told once: many messages repeat their cause. Nothing in it is a terminal's to obey.
pub(crate) fn described(error: &anyhow::Error) -> String {
    let text = with_causes(error);
    let mut letters = text.chars();
    let mut shown = String::new();
    for letter in letters.by_ref().take(TOLD) {
        match letter.is_control() && letter != '\n' {
            true => shown.extend(letter.escape_debug()),
            false => shown.push(letter),
        }
    }
    if letters.next().is_some() {
        shown.push('…');
    }
    shown
}

fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

pub(crate) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Demo(args) => commands::demo::run(args),
        Command::Generate(args) => commands::generate::run(args),
        Command::Replay(args) => commands::replay::run(args),
        Command::Status(args) => commands::status::run(args),
        Command::Get(args) => commands::get::run(args),
        Command::Dump(args) => commands::dump::run(args),
        Command::Roots(args) => commands::roots::run(args),
        Command::Oracle(args) => commands::oracle::run(args),
        Command::Diff(args) => commands::diff::run(args),
        Command::Prove(args) => commands::prove::run(args),
        Command::VerifyProof(args) => commands::verify_proof::run(args),
        Command::Witness(args) => commands::witness::run(args),
        Command::VerifyWitness(args) => commands::verify_witness::run(args),
        Command::Verify(args) => commands::verify::run(args),
        Command::Repair(args) => commands::repair::run(args),
        Command::Rollback(args) => commands::history::rollback(args),
        Command::Prune(args) => commands::history::prune(args),
        Command::Backup(args) => commands::backup::run(args),
        Command::HistoryProofs(args) => commands::history_proofs::run(args),
        Command::Compact(args) => commands::compact::run(args),
        Command::Serve(args) => commands::serve::run(args),
        Command::Inspect(args) => commands::inspect::run(args),
        Command::Convert(args) => commands::convert::run(args),
        Command::Preimages(args) => commands::preimages::run(args),
        Command::Snapshot(args) => commands::recover::snapshot(args),
        Command::Recover(args) => commands::recover::recover(args),
        Command::Loadtest(args) => commands::loadtest::run(args),
        Command::Accesses(args) => commands::accesses::run(args),
        Command::Compare(args) => commands::compare::run(args),
        Command::Bench(args) => commands::bench::run(args),
        Command::Evm384 { word } => commands::evm384::run(word),
        Command::Completions { shell } => {
            // Not straight to standard output: clap panics if that cannot be written.
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arbor::command(), "arbor", &mut script);
            output::line(String::from_utf8(script)?.trim_end())
        }
        Command::Man(args) => commands::man::run(args),
    }
}

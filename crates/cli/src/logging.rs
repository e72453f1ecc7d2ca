//! Log lines on standard error.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line of text each
    Text,
    /// A JSON object each
    Json,
}

/// Begins to log to standard error. RUST_LOG, if it is set, says what is logged instead of `verbose`.
pub(crate) fn begin(verbose: u8, format: LogFormat) {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(directives(verbose)));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // If standard error cannot be written, the subscriber would say so there, and panic.
        .log_internal_errors(false)
        .with_target(verbose > 0);
    match format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => lines.json().init(),
    }
}

/// What is logged: our own lines by level, and the storage engine's from warnings on. Without `-v` the engine is silent
/// but for its background threads, because the command reports the errors that the engine returns.
fn directives(verbose: u8) -> &'static str {
    match verbose {
        0 => "warn,fjall=off,lsm_tree=off,fjall::worker_pool=error",
        1 => "warn,arbor=info",
        2 => "warn,arbor=debug",
        _ => "debug,arbor=trace",
    }
}

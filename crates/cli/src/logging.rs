//! Log lines on standard error.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line of text each
    Text,
    /// A JSON object each
    Json,
}

/// Begins to log to standard error. If RUST_LOG has directives of the form `target=level`, they replace `verbose`.
pub(crate) fn begin(verbose: u8, format: LogFormat) {
    let asked = std::env::var("RUST_LOG").ok();
    let asked = asked.and_then(|directives| directives.parse::<Targets>().ok());
    let subscriber = tracing_subscriber::registry().with(asked.unwrap_or_else(|| targets(verbose)));
    let lines = layer()
        .with_writer(std::io::stderr)
        // If standard error cannot be written, the subscriber would say so there, and panic.
        .log_internal_errors(false)
        // Not every line is ours: those of the storage engine come without a flag, too.
        .with_target(true);
    match format {
        LogFormat::Text => {
            let lines = lines.with_ansi(std::io::stderr().is_terminal());
            subscriber.with(lines).init();
        }
        LogFormat::Json => subscriber.with(lines.json()).init(),
    }
}

/// What is logged: our own lines by level, and the storage engine's from warnings on. Without `-v` the engine is silent
/// but for its background threads, because the command reports the errors that the engine returns.
fn targets(verbose: u8) -> Targets {
    let directives = match verbose {
        0 => "warn,fjall=off,lsm_tree=off,fjall::worker_pool=error",
        1 => "warn,arbor=info",
        2 => "warn,arbor=debug",
        _ => "debug,arbor=trace",
    };
    directives
        .parse()
        .expect("invariant: the directives above are well formed")
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn our_lines_come_with_the_flag_and_the_engines_only_if_they_matter() {
        for (verbose, arbor, engine) in [
            (0, Level::WARN, None),
            (1, Level::INFO, Some(Level::WARN)),
            (2, Level::DEBUG, Some(Level::WARN)),
            (3, Level::TRACE, Some(Level::DEBUG)),
        ] {
            let targets = targets(verbose);
            for level in [
                Level::ERROR,
                Level::WARN,
                Level::INFO,
                Level::DEBUG,
                Level::TRACE,
            ] {
                let ours = targets.would_enable("arbor_state::state", &level);
                assert_eq!(ours, level <= arbor, "{verbose}: {level}");
                let theirs = targets.would_enable("fjall::journal", &level);
                let wanted = engine.is_some_and(|most| level <= most);
                assert_eq!(theirs, wanted, "{verbose}: {level} of the engine");
            }
        }
        assert!(targets(0).would_enable("fjall::worker_pool", &Level::ERROR));
    }
}

//! Stopping cleanly: the first Ctrl-C asks, the second one does not wait.

use std::sync::atomic::{AtomicBool, Ordering};

/// What shells give a process that SIGINT has ended.
pub(crate) const EXIT_CODE: u8 = 130;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Listens for SIGINT and SIGTERM from now on.
pub(crate) fn listen() {
    let result = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(EXIT_CODE.into());
        }
        eprintln!("stopping after this block; once more stops at once");
    });
    if let Err(error) = result {
        tracing::warn!("Ctrl-C will not be handled: {error}");
    }
}

/// Whether somebody asked to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

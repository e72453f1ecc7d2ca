//! Stopping cleanly: the first Ctrl-C asks, the second one does not wait.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// What shells give a process that SIGINT has ended.
pub(crate) const EXIT_CODE: u8 = 130;

static ASKED: AtomicBool = AtomicBool::new(false);

/// What is nobody's once the process has ended.
static TEMPORARY: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Listens for SIGINT and SIGTERM from now on; what is under way then is done to the end of a block.
pub(crate) fn listen() {
    listen_between("block");
}

/// As [`listen`], for work that is done in other parts than blocks.
pub(crate) fn listen_between(part: &'static str) {
    let result = ctrlc::set_handler(move || {
        if ASKED.swap(true, Ordering::Relaxed) {
            let folder = TEMPORARY.lock().ok().and_then(|folder| folder.clone());
            folder.map(std::fs::remove_dir_all);
            std::process::exit(EXIT_CODE.into());
        }
        eprintln!("stopping after this {part}; once more stops at once");
    });
    if let Err(error) = result {
        tracing::warn!("Ctrl-C will not be handled: {error}");
    }
}

/// Removes a folder if the process ends without waiting; else whoever made it does.
pub(crate) fn remove_if_hurried(folder: &Path) {
    if let Ok(mut temporary) = TEMPORARY.lock() {
        *temporary = Some(folder.to_owned());
    }
}

/// Whether somebody asked to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

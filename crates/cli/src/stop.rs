//! Stopping cleanly: the first Ctrl-C asks, the second one does not wait. What may take long to its end is given up after a while ([`listen_for`]).

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What shells give a process that SIGINT has ended.
pub(crate) const EXIT_CODE: u8 = 130;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Whether what is under way has come to its end since.
static REACHED: AtomicBool = AtomicBool::new(false);

/// What is nobody's once the process has ended.
static TEMPORARY: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Listens for SIGINT and SIGTERM from now on; what is under way then is done to the end of a block.
pub(crate) fn listen() {
    listen_between("block");
}

/// As [`listen`], for work that is done in other parts than blocks.
pub(crate) fn listen_between(part: &'static str) {
    handle(move || eprintln!("stopping after this {part}; once more stops at once"));
}

/// As [`listen`], for blocks that may be of any size: one that has not come to its end ([`reached`]) after `patience` is given up, as if it had been asked once more. Nothing of it is in the
/// database then, nor what was not flushed yet of those before.
pub(crate) fn listen_for(patience: Duration) {
    handle(move || {
        let seconds = patience.as_secs();
        eprintln!(
            "stopping after this block, or in {seconds} seconds without it; once more stops at once"
        );
        std::thread::spawn(move || {
            std::thread::sleep(patience);
            if !REACHED.load(Ordering::Relaxed) {
                eprintln!(
                    "stopped: what was under way did not end in {seconds} seconds and is given up"
                );
                leave();
            }
        });
    });
}

/// Says that what was under way when somebody asked has come to its end.
pub(crate) fn reached() {
    REACHED.store(true, Ordering::Relaxed);
}

fn handle(first: impl Fn() + Send + 'static) {
    let result = ctrlc::set_handler(move || {
        if ASKED.swap(true, Ordering::Relaxed) {
            leave();
        }
        first();
    });
    if let Err(error) = result {
        tracing::warn!("Ctrl-C will not be handled: {error}");
    }
}

/// Ends the process wherever it is.
fn leave() -> ! {
    let folder = TEMPORARY.lock().ok().and_then(|folder| folder.clone());
    folder.map(std::fs::remove_dir_all);
    std::process::exit(EXIT_CODE.into());
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

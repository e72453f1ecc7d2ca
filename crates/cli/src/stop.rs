//! Stopping cleanly: the first Ctrl-C asks, the second one does not wait. What may take long to its end is given up after a while ([`listen_for`]), but for what
//! must come to an end ([`Stop::must_end`]).

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use tempfile::NamedTempFile;

use crate::output;

/// What shells give a process that SIGINT has ended.
pub(crate) const EXIT_CODE: u8 = 130;

/// What Ctrl-C does to this process.
pub(crate) static STOP: Stop = Stop::new();

/// What is nobody's once the process has ended.
static TEMPORARY: Mutex<Option<PathBuf>> = Mutex::new(None);

/// How far a process has got on its way to a stop. All of it is in one word, so that nothing comes between what is decided and what it was decided by: whoever is told
/// that work goes to its end has it done, and whoever gives it up does so alone.
pub(crate) struct Stop(AtomicU8);

impl Stop {
    /// Somebody asked to stop.
    const ASKED: u8 = 1;
    /// What is under way goes to its end however long that takes.
    const MUST_END: u8 = 2;
    /// The process ends wherever it is.
    const LEAVING: u8 = 4;

    pub(crate) const fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    /// Whether somebody asked to stop.
    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Acquire) & Self::ASKED != 0
    }

    /// Begins what is not given up, unless somebody asks twice. Says whether somebody has asked before; never returns where the process is leaving already.
    pub(crate) fn must_end(&self) -> bool {
        loop {
            match self.try_must_end() {
                Some(asked) => return asked,
                None => thread::park(),
            }
        }
    }

    /// As [`must_end`](Self::must_end); `None` where the process is leaving.
    fn try_must_end(&self) -> Option<bool> {
        let before = self.0.fetch_or(Self::MUST_END, Ordering::AcqRel);
        (before & Self::LEAVING == 0).then_some(before & Self::ASKED != 0)
    }

    /// Goes back to what may be given up, unless somebody has asked to stop; says whether it did.
    pub(crate) fn may_be_given_up(&self) -> bool {
        self.change(|state| (state & Self::ASKED == 0).then_some(0))
            .is_ok()
    }

    /// Asks to stop.
    pub(crate) fn ask(&self) -> Ask {
        let asked = |state| match state & Self::ASKED {
            0 => state | Self::ASKED,
            _ => state | Self::LEAVING,
        };
        let (Ok(before) | Err(before)) = self.change(|state| Some(asked(state)));
        match before {
            0 => Ask::First,
            Self::MUST_END => Ask::FirstAtTheEnd,
            before if before & Self::LEAVING == 0 => Ask::Again,
            _ => Ask::WhileLeaving,
        }
    }

    /// Gives up what is under way, if somebody has asked and it may be; says whether the process is now to be left.
    pub(crate) fn give_up(&self) -> bool {
        self.change(|state| (state == Self::ASKED).then_some(state | Self::LEAVING))
            .is_ok()
    }

    fn change(&self, to: impl FnMut(u8) -> Option<u8>) -> std::result::Result<u8, u8> {
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, to)
    }
}

/// What asking to stop has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    /// It is asked for.
    First,
    /// It is asked for during what goes to its end in any case.
    FirstAtTheEnd,
    /// It was asked for before: the process is to be left.
    Again,
    /// The process is being left.
    WhileLeaving,
}

/// Listens for SIGINT and SIGTERM from now on; what is under way then is done to the end of a block.
pub(crate) fn listen() {
    listen_between("block");
}

/// As [`listen`], for work that is done in other parts than blocks.
pub(crate) fn listen_between(part: &'static str) {
    handle(move |_| {
        output::tell(&format!(
            "stopping after this {part}; once more stops at once"
        ));
    });
}

/// As [`listen`], with words of its own.
pub(crate) fn listen_saying(words: &'static str) {
    handle(move |_| output::tell(words));
}

/// As [`listen`], for blocks that may be of any size: one that has not come to its end ([`Stop::must_end`]) after `patience` is given up, as if it had been asked once more. Nothing of it is in the
/// database then, nor what was not flushed yet of those before.
pub(crate) fn listen_for(patience: Duration) {
    handle(move |ask| {
        if ask == Ask::FirstAtTheEnd {
            output::tell(
                "all blocks are in: ending with what follows them; once more stops at once",
            );
            return;
        }
        let seconds = patience.as_secs();
        output::tell(&format!(
            "stopping after this block, or in {seconds} seconds without it; once more stops at once"
        ));
        thread::spawn(move || {
            thread::sleep(patience);
            if STOP.give_up() {
                output::tell(&format!(
                    "stopped: what was under way did not end in {seconds} seconds and is given up"
                ));
                leave();
            }
        });
    });
}

/// A file that is not whole yet, and goes away with the process.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Makes a file. From then on the process ends at once when asked to, and without that file, unless it has become whole and has another name.
///
/// # Errors
/// What keeps it from being made.
pub(crate) fn leave_without(make: impl FnOnce() -> Result<NamedTempFile>) -> Result<NamedTempFile> {
    // Held until the file's name is known: whoever asks to stop meanwhile waits for it.
    let mut unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
    handle(|_| {
        let unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &*unfinished
            && std::fs::remove_file(file).is_ok()
        {
            output::tell("stopped: nothing is written");
        }
        exit()
    });
    let file = make()?;
    *unfinished = Some(file.path().to_owned());
    Ok(file)
}

fn handle(first: impl Fn(Ask) + Send + 'static) {
    let result = ctrlc::set_handler(move || match STOP.ask() {
        Ask::Again => leave(),
        Ask::WhileLeaving => exit(),
        ask => first(ask),
    });
    // A demo's commands run in one process, whose first listener serves all of them.
    if let Err(error) = result
        && !matches!(error, ctrlc::Error::MultipleHandlers)
    {
        tracing::warn!("Ctrl-C will not be handled: {error}");
    }
}

/// Ends the process wherever it is.
fn leave() -> ! {
    let folder = TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(folder) = &*folder
        && let Err((left, error)) = remove(folder, TRIES)
    {
        output::tell(&format!("{} is left behind: {error}", left.display()));
    }
    exit();
}

fn exit() -> ! {
    std::process::exit(EXIT_CODE.into());
}

/// How often a folder is tried to remove that others still write into, and how long is waited between.
const TRIES: u32 = 50;
const BETWEEN: Duration = Duration::from_millis(20);

/// Removes a folder into which others may still write. It is given another name first, under which they find it no more; and since they may have been about to make
/// something in it, or write where there are no other names, it is tried several times.
///
/// # Errors
/// What is left, and why.
fn remove(folder: &Path, tries: u32) -> std::result::Result<(), (PathBuf, io::Error)> {
    let mut name = folder.as_os_str().to_owned();
    name.push(".removed");
    let renamed = PathBuf::from(name);
    let folder = match std::fs::rename(folder, &renamed) {
        Ok(()) => renamed,
        Err(_) => folder.to_owned(),
    };
    let mut left = tries;
    loop {
        left = left.saturating_sub(1);
        match std::fs::remove_dir_all(&folder) {
            Ok(()) => return Ok(()),
            // Of a file in it, which somebody else has removed; or of the folder itself.
            Err(error) if error.kind() == ErrorKind::NotFound && !folder.exists() => return Ok(()),
            Err(error) if left == 0 => return Err((folder, error)),
            Err(_) => thread::sleep(BETWEEN),
        }
    }
}

/// Removes a folder if the process ends without waiting; else whoever made it does.
pub(crate) fn remove_if_hurried(folder: &Path) {
    let mut temporary = TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner);
    *temporary = Some(folder.to_owned());
}

/// Whether somebody asked to stop.
pub(crate) fn asked() -> bool {
    STOP.asked()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn what_must_end_is_not_given_up() {
        let stop = Stop::new();
        assert!(!stop.give_up(), "nobody asked");
        assert!(!stop.must_end() && stop.may_be_given_up());
        assert_eq!(stop.ask(), Ask::First);
        assert!(stop.asked() && !stop.may_be_given_up());
        assert!(stop.must_end());
        assert!(!stop.give_up());
        assert_eq!(stop.ask(), Ask::Again);
        assert_eq!(stop.ask(), Ask::WhileLeaving);

        let stop = Stop::new();
        assert!(!stop.must_end());
        assert_eq!(stop.ask(), Ask::FirstAtTheEnd);
        // What follows would be what may be given up: it does not begin.
        assert!(!stop.may_be_given_up() && !stop.give_up());

        let stop = Stop::new();
        assert_eq!(stop.ask(), Ask::First);
        assert!(stop.give_up() && !stop.give_up(), "once");
        assert_eq!(stop.ask(), Ask::WhileLeaving);
    }

    /// It was looked whether a block's end was reached, and the process left thereafter, whatever was begun between.
    #[test]
    fn work_is_given_up_or_goes_to_its_end_and_never_both() {
        for _ in 0..500 {
            let stop = Stop::new();
            assert_eq!(stop.ask(), Ask::First);
            let (ends, given_up) = thread::scope(|scope| {
                let ends = scope.spawn(|| stop.try_must_end() == Some(true));
                let given_up = stop.give_up();
                (ends.join().expect("it returns"), given_up)
            });
            assert_ne!(ends, given_up);
        }
    }

    /// A file that came between the listing of a folder and its removal left the folder behind without a word.
    #[test]
    fn a_folder_is_removed_though_others_write_into_it() {
        let outside = tempfile::tempdir().expect("a temporary folder");
        let folder = outside.path().join("database");
        std::fs::create_dir_all(folder.join("tables")).expect("made");
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut written = 0;
                while !ended.load(Ordering::Acquire) {
                    let file = folder.join(format!("tables/{written}"));
                    written += u64::from(std::fs::write(file, [0; 100]).is_ok());
                }
                written
            });
            while std::fs::read_dir(folder.join("tables")).map_or(0, Iterator::count) < 50 {
                thread::yield_now();
            }
            remove(&folder, TRIES).expect("removed");
            ended.store(true, Ordering::Release);
            assert!(writer.join().expect("it ends") >= 50);
        });
        let left = std::fs::read_dir(outside.path()).expect("listed").count();
        assert_eq!(left, 0);
        remove(&folder, 1).expect("there is none");
        // What cannot be removed is told.
        std::fs::write(&folder, "no folder").expect("written");
        let (left, _) = remove(&folder, 1).expect_err("no folder");
        assert!(left.exists() && left.starts_with(outside.path()));
    }
}

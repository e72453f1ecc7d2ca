//! The official blockchain tests, imported as a user's chain is.
//!
//! `cargo test -p arbor-chain --test official` runs them all, and with `-- only WORD...` those that have every word in their
//! path, name or network. `-- reopened` and `-- from-witness`, with or without `only`, run them in these modes. docs/official-tests.md says more.

mod archive;
mod fixture;
mod forks;
mod mode;
mod network;
mod reason;
mod run;
mod table;
mod unsupported;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::archive::Text;
use crate::fixture::Fixture;
use crate::mode::{Mode, is_sampled};
use crate::run::{Verdict, run};
use crate::table::Table;

/// Files that wait for a thread.
const WAITING: usize = 64;

/// The collections, below the test data.
const COLLECTIONS: [&str; 2] = ["data/ethereum-tests", "data/eest"];

/// Which fixtures to run.
enum Selection {
    All,
    /// Those with all these words in path, name or network.
    Only(Vec<String>),
}

impl Selection {
    /// Reads the words of the command line; `None` if they are about other tests. `cargo test WORD --flag` gives the same to
    /// all test programs of a crate.
    fn from_arguments() -> Option<(Self, Mode)> {
        let words = std::env::args().skip(1);
        let mut words = words.filter(|word| !word.starts_with('-')).peekable();
        let mode = words.peek().and_then(|word| Mode::named(word));
        if mode.is_some() {
            words.next();
        }
        let selection = match words.next() {
            None => Self::All,
            Some(only) if only == "only" => Self::Only(words.collect()),
            Some(_) => return None,
        };
        Some((selection, mode.unwrap_or(Mode::InOneGo)))
    }

    fn takes(&self, path: &str, name: &str, network: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(words) => words.iter().all(|word| {
                [path, name, network]
                    .iter()
                    .any(|text| text.contains(word.as_str()))
            }),
        }
    }
}

fn main() -> ExitCode {
    let Some((selection, mode)) = Selection::from_arguments() else {
        return ExitCode::SUCCESS;
    };
    let places = COLLECTIONS.map(|place| arbor_testdata::find(&format!("official {place}"), place));
    if places.iter().all(Option::is_none) {
        return ExitCode::SUCCESS;
    }
    let start = Instant::now();
    let table = Mutex::new(Table::default());
    for place in places.iter().flatten() {
        if let Err(error) = run_all(place, (&selection, mode), &table) {
            println!("{}: {error}", place.display());
            return ExitCode::FAILURE;
        }
    }
    let table = table.into_inner().unwrap_or_else(PoisonError::into_inner);
    let names = matches!(selection, Selection::Only(_));
    table.print(start.elapsed(), names);
    match table.is_success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Reads on this thread, runs on as many as there are cores.
fn run_all(
    place: &Path,
    selection: (&Selection, Mode),
    table: &Mutex<Table>,
) -> std::io::Result<()> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (sender, receiver) = sync_channel(WAITING);
    let receiver = Mutex::new(receiver);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| run_files(&receiver, selection, table));
        }
        // The threads end when the last copy of it is gone.
        let sender = sender;
        archive::read(place, &|text| {
            sender
                .send(text)
                .map_err(|_| std::io::Error::other("every thread has panicked"))
        })
    })
}

fn run_files(
    files: &Mutex<Receiver<Text>>,
    (selection, mode): (&Selection, Mode),
    table: &Mutex<Table>,
) {
    let add = |path: &str, name: &str, network: &str, verdict| {
        let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
        table.add(path, name, network, verdict);
    };
    loop {
        let next = files.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Text { path, json }) = next else {
            return;
        };
        let fixtures: BTreeMap<String, Fixture> = match serde_json::from_slice(&json) {
            Ok(fixtures) => fixtures,
            Err(error) => {
                add(
                    &path,
                    "",
                    "",
                    Verdict::Failed(format!("not a fixture: {error}")),
                );
                continue;
            }
        };
        for (name, fixture) in &fixtures {
            if !selection.takes(&path, name, &fixture.network) {
                continue;
            }
            add(&path, name, &fixture.network, run(&path, fixture, mode));
            let is_whole = matches!(selection, Selection::All) && mode == Mode::InOneGo;
            if is_whole && is_sampled(&path, name) {
                for mode in Mode::SAMPLED {
                    let verdict = run(&path, fixture, mode);
                    let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
                    table.add_sampled(&path, name, mode, verdict);
                }
            }
        }
    }
}

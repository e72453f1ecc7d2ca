//! Chains over one large state: a folder for each workload, all with the same genesis.

use std::{
    fmt, fs, io,
    ops::ControlFlow,
    path::{Path, PathBuf},
    str::FromStr,
};

use alloy_primitives::B256;

use super::{
    GeneratorError, GeneratorSettings, Progress, SettingsError, Summary,
    folder::{Folder, lock},
    generate::generate_over,
    ledger::{Ledger, UNDO},
};
use arbor_chain::genesis::Genesis;

/// What the transactions over a large state do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum OverState {
    /// Each reads one slot of one of the population's accounts: it writes the value that is there.
    Read,
    /// Each writes one slot of one of them.
    Write,
    /// Half of them read, half of them write.
    Mixed,
    /// Token transfers between the accounts that send transactions.
    Erc20,
}

impl OverState {
    /// All workloads, in the order in which they are made.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Mixed, Self::Erc20];

    /// The name on the command line, and of the folder.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Mixed => "mixed",
            Self::Erc20 => "erc20",
        }
    }

    /// The settings of its chain: accounts are all alike popular, lest a cache answer for the state.
    pub fn settings(self, state: &GeneratorSettings) -> GeneratorSettings {
        let (mix, visits_that_read) = match self {
            Self::Read => ("visit=1", 1.0),
            Self::Write => ("visit=1", 0.0),
            Self::Mixed => ("visit=1", 0.5),
            Self::Erc20 => ("erc20=1", 0.0),
        };
        GeneratorSettings {
            mix: mix.parse().expect("invariant: the mix is well formed"),
            visits_that_read,
            visited: state.population.max(1),
            zipf: 0.0,
            ..state.clone()
        }
    }
}

impl fmt::Display for OverState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for OverState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|load| load.name() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no workload '{text}', only {names}")
        })
    }
}

/// The folder of a workload's chain below that of the state.
pub fn folder_of(state: &Path, load: OverState) -> PathBuf {
    state.join(load.name())
}

/// Makes a chain for each workload over the same state, in a folder of its name below `out`; the state is computed once. What is there already is left as it
/// is, and an interrupted run is continued by the same call. `progress` is told the workload, too.
///
/// Returns what this call has made; nothing of chains that were complete before.
///
/// # Errors
/// A population of nobody; more blocks than a state can be taken back by; else those of [`generate`](super::generate).
pub fn generate_over_state(
    state: &GeneratorSettings,
    out: &Path,
    mut progress: impl FnMut(OverState, Progress) -> ControlFlow<()>,
) -> Result<Vec<(OverState, Summary)>, GeneratorError> {
    let wrong = |field, reason: String| Err(SettingsError { field, reason }.into());
    if state.population == 0 {
        return wrong("population", "a state has accounts".to_owned());
    }
    if state.blocks > UNDO {
        let most = format!("chains over a large state have at most {UNDO} blocks");
        return wrong("blocks", most);
    }
    let _lock = lock(out)?;
    // Before anything is written: the chains share a state, so that none may have been made over another.
    for load in OverState::ALL {
        let settings = load.settings(state);
        settings.validate()?;
        Folder::new(&folder_of(out, load)).check_manifest(&settings)?;
    }
    let mut made = Vec::new();
    for load in OverState::ALL {
        let settings = load.settings(state);
        let path = folder_of(out, load);
        let folder = Folder::new(&path);
        if folder.open(&settings)?.blocks() == settings.blocks + 1 && known_root(&path).is_some() {
            continue;
        }
        take_state(out, &folder)?;
        let mut paths = OverState::ALL.into_iter().map(|load| folder_of(out, load));
        let root = paths.find_map(|path| known_root(&path));
        let summary = generate_over(&settings, &path, root, |now| progress(load, now))?;
        let complete = summary.complete;
        made.push((load, summary));
        if !complete {
            return Ok(made);
        }
    }
    // Gigabytes, of no more use.
    for load in OverState::ALL {
        Ledger::delete(&Folder::new(&folder_of(out, load)).state())?;
    }
    Ok(made)
}

/// Moves the state that another workload left to this one's folder, which takes it back to block 0.
fn take_state(out: &Path, folder: &Folder) -> Result<(), GeneratorError> {
    let own = folder.state();
    if own.exists() {
        return Ok(());
    }
    for other in OverState::ALL {
        let left = Folder::new(&folder_of(out, other)).state();
        match fs::rename(&left, &own) {
            Ok(()) => return Ok(()),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => return Err(GeneratorError::file(&left, cause)),
        }
    }
    Ok(())
}

/// Returns the root of a workload's genesis; `None` if it has none, or a damaged one, which is written again.
fn known_root(path: &Path) -> Option<B256> {
    let text = Genesis::read_text(&Folder::new(path).genesis()).ok()?;
    let genesis = Genesis::from_json(&text).ok()?;
    Some(genesis.header.state_root)
}

//! `arbor compare --state`: sides that begin with one large state, which is loaded once for each tree.

use std::fs::{File, TryLockError};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use alloy_primitives::B256;
use anyhow::{Context, Result, bail};
use arbor_chain::genesis::Genesis;
use arbor_chain::source::open_sources;
use arbor_compare::{Plan, Side, apart};
use arbor_generator::{folder_of, settings_of};

use crate::args::Compare as Args;
use crate::{database, output, stop};

/// The folder of the databases, below that of a state.
const DATABASES: &str = "databases";

/// The blocks: those that were named, or those over the state.
pub(super) fn chain(args: &Args) -> Result<Vec<PathBuf>> {
    let (Some(state), Some(load)) = (&args.state, args.workload) else {
        return Ok(args.chain.clone());
    };
    let chain = folder_of(state, load);
    if !chain.join("genesis.json").exists() {
        bail!(
            "--state {}: there is no folder {load} with a chain; `arbor generate --state accounts=N --out {0}` makes it",
            state.display()
        );
    }
    check_whole(&chain).with_context(|| {
        format!(
            "--state {}: the `arbor generate --state` that made {} makes it whole",
            state.display(),
            chain.display()
        )
    })?;
    Ok(vec![chain])
}

/// Refuses a chain that has not got all its blocks yet, or is damaged: figures of it would not be those of the whole.
fn check_whole(chain: &Path) -> Result<()> {
    genesis_hash(chain)?;
    let Some(settings) = settings_of(chain)? else {
        return Ok(());
    };
    let mut input = open_sources(&[chain.to_owned()])?;
    let last = input.skip_to(u64::MAX)?.map_or(0, |link| link.number);
    if last < settings.blocks {
        bail!("the chain has {last} of its {} blocks", settings.blocks);
    }
    Ok(())
}

/// The hash of a chain's genesis.
fn genesis_hash(chain: &Path) -> Result<B256> {
    let path = chain.join("genesis.json");
    let text = Genesis::read_text(&path);
    let genesis = text.and_then(|text| Genesis::from_json(&text));
    Ok(genesis.with_context(|| path.display().to_string())?.hash)
}

/// The database that a side begins with.
pub(super) fn start(state: &Path, side: &Side) -> PathBuf {
    let words = std::iter::once(&side.tree).chain(&side.settings);
    let words: Vec<&str> = words.map(String::as_str).collect();
    state.join(DATABASES).join(words.join("+"))
}

/// Loads the state into the databases that are not there yet, each in a process of its own. Breaks off if somebody asked to stop.
///
/// # Errors
/// A load that fails, or another comparison that loads a state into the same folder.
pub(super) fn load(args: &Args, plan: &Plan) -> Result<ControlFlow<()>> {
    let Some(state) = &args.state else {
        return Ok(ControlFlow::Continue(()));
    };
    let sides = plan.trees.iter();
    let sides = sides.filter_map(|side| Some((side, Path::new(side.start.as_deref()?))));
    let (present, missing): (Vec<(&Side, &Path)>, Vec<_>) =
        sides.partition(|(_, start)| start.exists());
    for (_, start) in present {
        check_start(start, plan)?;
    }
    if missing.is_empty() {
        return Ok(ControlFlow::Continue(()));
    }
    let databases = state.join(DATABASES);
    let lock = lock(&databases)?;
    stop::listen_saying("stopping after this load or run; once more stops at once");
    for (done, (side, start)) in missing.iter().enumerate() {
        if stop::asked() {
            let of = missing.len();
            let said =
                format!("stopped: {done} of {of} databases are loaded; the same command goes on");
            output::remark(args.json, &said)?;
            return Ok(ControlFlow::Break(()));
        }
        // Another comparison may have loaded it before the lock was taken.
        if !start.exists() {
            load_side(side, start, plan, &lock)?;
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Refuses a database that is not of the chain's genesis, or none.
fn check_start(start: &Path, plan: &Plan) -> Result<()> {
    let remedy = || {
        format!(
            "{} is not the database of this state: remove it, and the same command loads the state again",
            start.display()
        )
    };
    let found = database::folder(start).head_file().with_context(remedy)?;
    for chain in &plan.paths {
        if B256::from(found.identity.genesis) != genesis_hash(chain)? {
            bail!("{}", remedy());
        }
    }
    Ok(())
}

/// Locks the folder of the databases until the file is dropped, here and in the processes that inherit it.
fn lock(databases: &Path) -> Result<File> {
    std::fs::create_dir_all(databases).with_context(|| databases.display().to_string())?;
    let path = databases.join("LOCK");
    let mut options = File::options();
    let file = options.read(true).write(true).create(true).truncate(false);
    let file = file
        .open(&path)
        .with_context(|| path.display().to_string())?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!(
            "another arbor compare loads a state into {}: wait until it ends, then give the same command again",
            databases.display()
        ),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("locking {}", path.display()))
        }
    }
}

/// Loads the state into the database of a side. The process inherits the lock: if this one is killed, nobody begins before that one has ended, too.
fn load_side(side: &Side, start: &Path, plan: &Plan, lock: &File) -> Result<()> {
    let unfinished = start.with_added_extension("unfinished");
    // A load that was interrupted is begun again.
    if unfinished.exists() {
        std::fs::remove_dir_all(&unfinished)
            .with_context(|| format!("removing {}", unfinished.display()))?;
    }
    output::tell(&format!("{}: loading the state", start.display()));
    let begin = Instant::now();
    let mut command = Command::new(std::env::current_exe()?);
    apart(&mut command);
    command.args(["replay", "--to", "0", "--retain", "none"]);
    command
        .args(["--tree", &side.tree, "--db"])
        .arg(&unfinished);
    command.args(["--memory", &plan.memory_bytes.to_string()]);
    if !side.settings.is_empty() {
        command.args(["--tree-settings", &side.settings.join(",")]);
    }
    command.args(&plan.paths);
    let ended = command
        .stdin(lock.try_clone().context("loading the state")?)
        .stdout(Stdio::null())
        .status()
        .context("loading the state")?;
    if !ended.success() {
        bail!(
            "loading the state into {} failed, for the reason above; the same command begins that load again",
            unfinished.display()
        );
    }
    std::fs::rename(&unfinished, start).with_context(|| start.display().to_string())?;
    let bytes = database::folder(start).disk_bytes()?;
    output::tell(&format!(
        "{}: loaded in {:.0} s, {} on the disk",
        start.display(),
        begin.elapsed().as_secs_f64(),
        crate::bytes::show(bytes)
    ));
    Ok(())
}

/// Sides with each number of a setting: `tree:levels=1..3` is `tree:levels=1`, `tree:levels=2` and `tree:levels=3`.
///
/// # Errors
/// Numbers that do not ascend, or more than 64 of them.
pub(super) fn swept(text: &str) -> Result<Vec<String>> {
    let Some((before, after)) = text.split_once("..") else {
        return Ok(vec![text.to_owned()]);
    };
    let head = before.trim_end_matches(|c: char| c.is_ascii_digit());
    let tail = after.trim_start_matches(|c: char| c.is_ascii_digit());
    let [first, last] = [&before[head.len()..], &after[..after.len() - tail.len()]];
    let numbers = first.parse::<u64>().ok().zip(last.parse::<u64>().ok());
    match numbers {
        Some((first, last)) if head.ends_with('=') && first <= last && last - first < 64 => {
            Ok((first..=last)
                .map(|number| format!("{head}{number}{tail}"))
                .collect())
        }
        _ => bail!("'{text}': write WORD=FIRST..LAST, with at most 64 numbers that ascend"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_swept() {
        let swept = |text| swept(text).map_err(|error| error.to_string());
        assert_eq!(swept("oak").expect("a side"), ["oak"]);
        assert_eq!(
            swept("oak:levels=9..11+deep").expect("sides"),
            [
                "oak:levels=9+deep",
                "oak:levels=10+deep",
                "oak:levels=11+deep"
            ]
        );
        for wrong in [
            "oak:levels=3..1",
            "oak:levels=..3",
            "oak:1..2",
            "oak:levels=1..99",
        ] {
            assert!(
                swept(wrong).expect_err("refused").contains("FIRST..LAST"),
                "{wrong}"
            );
        }
    }
}

//! `arbor compare --state`: sides that begin with one large state, which is loaded once for each tree.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use arbor_compare::{Plan, Side};
use arbor_generator::folder_of;

use crate::args::Compare as Args;
use crate::{database, output};

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
    Ok(vec![chain])
}

/// The database that a side begins with.
pub(super) fn start(state: &Path, side: &Side) -> PathBuf {
    let words = std::iter::once(&side.tree).chain(&side.settings);
    let words: Vec<&str> = words.map(String::as_str).collect();
    state.join("databases").join(words.join("+"))
}

/// Loads the state into the databases that are not there yet, each in a process of its own.
pub(super) fn load(args: &Args, plan: &Plan) -> Result<()> {
    if args.state.is_none() {
        return Ok(());
    }
    for side in &plan.trees {
        let Some(start) = side.start.as_deref().map(Path::new) else {
            continue;
        };
        if start.exists() {
            continue;
        }
        // A load that was interrupted is begun again.
        let unfinished = start.with_added_extension("unfinished");
        if unfinished.exists() {
            std::fs::remove_dir_all(&unfinished)
                .with_context(|| format!("removing {}", unfinished.display()))?;
        }
        if let Some(parent) = start.parent() {
            std::fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
        }
        output::tell(&format!("{}: loading the state", start.display()));
        let begin = Instant::now();
        let mut command = Command::new(std::env::current_exe()?);
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
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .context("loading the state")?;
        if !ended.success() {
            bail!("loading the state into {} failed", unfinished.display());
        }
        std::fs::rename(&unfinished, start).with_context(|| start.display().to_string())?;
        let bytes = database::folder(start).disk_bytes()?;
        output::tell(&format!(
            "{}: loaded in {:.0} s, {} on the disk",
            start.display(),
            begin.elapsed().as_secs_f64(),
            crate::bytes::show(bytes)
        ));
    }
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

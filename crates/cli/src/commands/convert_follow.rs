//! `arbor convert --follow`: keeping a converted database level with its source.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use arbor_chain::replay::KeptBlock;
use arbor_convert::{FollowHooks, Job, Level, catch_up};
use arbor_database::{Budget, RETAINED};
use arbor_state::{State, StateSnapshot};
use arbor_versions::{Pin, Version};
use serde_json::json;

use super::conversion::has_version;
use crate::args::{Conversion, Database};
use crate::progress::PartDone;
use crate::{database, output, stop};

/// How long a flush of a writer is waited for before the conversion begins.
const FLUSH: Duration = Duration::from_secs(2);
/// How often the source is looked at once the target is level.
const POLL: Duration = Duration::from_millis(200);

/// Opens a source for reading, at its last flushed version.
pub(super) fn look(args: &Conversion) -> Result<StateSnapshot> {
    database::look(&Database {
        db: args.from().to_owned(),
        memory: args.work.memory / 4,
        write_back: None,
    })
}

/// Whether a target is converted, so that only following is left.
pub(super) fn is_converted(dir: &Path) -> Result<bool> {
    let is_converted =
        has_version(dir) && Job::read(dir)?.is_none() && Job::finished(dir)?.is_some();
    if is_converted {
        // A kill may have come while they were being removed.
        Job::remove(dir)?;
    }
    Ok(is_converted)
}

/// Keeps a version of a source from being pruned. A source that may not be written is followed without that.
pub(super) fn pin(dir: &Path, version: Version) -> Option<Pin> {
    match Pin::new(dir, version) {
        Ok(pin) => Some(pin),
        Err(error) => {
            tracing::warn!(
                "{error}: the writer of {} may prune what later blocks change, unless it keeps enough (--retain)",
                dir.display()
            );
            None
        }
    }
}

/// Opens a source at its latest version, which its writer then keeps.
///
/// A writer may have forgotten versions after its last flush. So the pin is there first, and the version is that of a flush that came
/// later, if there is one.
pub(super) fn pin_latest(args: &Conversion) -> Result<(Option<Pin>, StateSnapshot)> {
    let dir = args.from();
    let flushed = || database::folder(dir).head_file().ok()?.head;
    let before = flushed();
    let version = before.as_ref().map_or(0, |head| head.version);
    let first = pin(dir, Version(version));
    let begin = Instant::now();
    while begin.elapsed() < FLUSH && flushed() == before {
        thread::sleep(POLL / 4);
    }
    let snapshot = look(args)?;
    let head = database::head(snapshot.reader())?.version;
    let second = first.as_ref().and_then(|_| pin(dir, head));
    drop(first);
    Ok((second, snapshot))
}

/// Takes over the blocks of the source that come after the target's latest one, and goes on until somebody asks to stop.
pub(super) fn follow(args: &Conversion, mut pinned: Option<Pin>) -> Result<()> {
    let (source, dir) = (args.from(), args.to());
    let budget = Budget {
        retain: RETAINED,
        ..Budget::new(args.work.memory / 2)
    };
    let mut target = database::folder(dir).open(budget)?;
    let found = target.tree().kind().name;
    if found != args.tree().kind.name {
        bail!(
            "{} has the tree {found}, not {}",
            dir.display(),
            args.tree().kind.name
        );
    }
    let mut checked = None;
    let mut level;
    loop {
        let seen = database::folder(source).head_file()?.head;
        let snapshot = look(args)?;
        level = step(&snapshot, &mut target)?;
        let next = pinned.as_ref().and_then(|_| pin(source, level.version));
        pinned = next.or(pinned);
        let is_new = level.is_level && (checked.is_none() || level.blocks > 0);
        if is_new {
            if checked.is_none() {
                check(&target)?;
                checked = Some(level.block);
            }
            tell(args, &level, &target)?;
        }
        while !stop::asked() && database::folder(source).head_file()?.head == seen {
            thread::sleep(POLL);
        }
        if stop::asked() {
            break;
        }
    }
    if checked != Some(level.block) {
        check(&target)?;
    }
    let end = format!(
        "stopped as asked at block {}, whose state root is that of the header; the same command goes on",
        level.block
    );
    output::remark(args.work.json, &end)
}

fn step(source: &StateSnapshot, target: &mut State) -> Result<Level> {
    let progress = PartDone::new("follow");
    let begin = target.head().map_or(0, |meta| meta.block_number);
    let hooks = FollowHooks {
        state_root: &|meta| KeptBlock::kept(meta.clone()).state_root,
        progress: &|block, last| {
            let part = (block - begin) as f64 / (last - begin).max(1) as f64;
            progress.set(part, &format!("block {block} of {last}"));
        },
        stop: &stop::asked,
    };
    let level = catch_up(source.reader(), target, &hooks).context("following the source")?;
    progress.finish();
    Ok(level)
}

/// Computes the Merkle-Patricia root of the target's accounts and slots, and compares it with the header's.
fn check(target: &State) -> Result<()> {
    let reader = target.reader();
    let meta = database::head(reader)?;
    let expected = KeptBlock::kept(meta.clone()).state_root;
    let found = reader.flat_root()?;
    match expected {
        Some(expected) if expected != found => bail!(
            "the accounts and slots have the Merkle-Patricia root {found}, and the header of block {} has the state root {expected}",
            meta.block_number
        ),
        _ => Ok(()),
    }
}

fn tell(args: &Conversion, level: &Level, target: &State) -> Result<()> {
    let root = target.root();
    match args.work.json {
        true => output::json(&json!({
            "level": level.block,
            "blocks": level.blocks,
            "root": root,
        })),
        false => output::line(&format!(
            "level with the source at block {}: root {root}; {} blocks were taken over. The target may be switched to",
            level.block, level.blocks
        )),
    }
}

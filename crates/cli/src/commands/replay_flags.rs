//! Checks the flags of a replay against each other.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use arbor_chain::replay::Verify;
use arbor_database::{DatabaseError, SettingsNotice, StoreKind, TreeSettings};
use arbor_state::{Settings, Tree, TreeKind, Zeros};
use arbor_versions::Retain;

use crate::args::{Replay as Args, VerifyChoice};
use crate::trees::{self, TREES, TreeChoice};
use crate::{database, files, output};

/// Refuses files to be written that are the database's, that cannot be written, or that are read.
pub(super) fn check_files(args: &Args) -> Result<()> {
    let db = args.db.as_deref();
    files::check_report(args.report.as_deref(), db)?;
    if let Some(file) = &args.failure_dump {
        files::not_of_database("--failure-dump", file, db)?;
        files::check(file)
            .with_context(|| file.display().to_string())
            .context("a failure dump could not be written")?;
    }
    if let Some(file) = &args.roots {
        files::not_of_database("--roots", file, db)?;
        files::check(file).with_context(|| format!("--roots {}", file.display()))?;
    }
    if let Some(file) = &args.blocks {
        files::not_of_database("--blocks", file, db)?;
        files::check(file).with_context(|| format!("--blocks {}", file.display()))?;
    }
    let written = [
        ("--blocks", &args.blocks),
        ("--report", &args.report),
        ("--failure-dump", &args.failure_dump),
        ("--roots", &args.roots),
    ];
    let written = written
        .iter()
        .filter_map(|(flag, file)| Some((*flag, file.as_deref()?)));
    let genesis = args.genesis.as_ref().map(Path::new);
    let read = args.chain.iter().map(PathBuf::as_path).chain(genesis);
    files::apart(written, read)
}

/// Why roots cannot be had without a tree.
const NO_ROOT: &str = "there is no state that has a root";

/// The hash function that is asked for, or else that of the database that the replay goes on with.
pub(super) fn hash_of(args: &Args, kind: &TreeKind) -> Option<String> {
    let stored = || {
        let identity = database::folder(args.db.as_deref()?)
            .head_file()
            .ok()?
            .identity;
        let found = TREES.of_identity(&identity)?;
        (found.name == kind.name).then_some(identity.hash)
    };
    args.hash.clone().or_else(stored)
}

/// The settings of the tree, which have to be those of the database that the replay goes on with.
pub(super) fn tree_settings(args: &Args) -> Result<TreeSettings> {
    let asked = TreeSettings::new(&args.tree_settings, &TREES);
    let Some(dir) = args.db.as_deref() else {
        return Ok(asked);
    };
    let (settings, notice) = match database::folder(dir).agree_on_tree_settings(asked) {
        Err(DatabaseError::OtherTreeSettings { dir, before, asked }) => bail!(
            "{} was made with {}, not with {}: its nodes would be stored in two ways",
            dir.display(),
            trees::words(&before),
            trees::words(&asked)
        ),
        agreed => agreed?,
    };
    match notice {
        Some(SettingsNotice::NotRemembered) => output::tell(&format!(
            "{} does not say with which --tree-settings it was made; going on with {}",
            dir.display(),
            trees::words(&settings)
        )),
        Some(SettingsNotice::AsBefore(before)) => {
            let before = trees::words(&before);
            output::tell(&format!("going on with {before}, as before"));
        }
        None => {}
    }
    Ok(settings)
}

/// The history to keep: what is asked for, or else what the database remembers.
pub(super) fn retention(args: &Args) -> Result<Retain> {
    match (args.retain, &args.db) {
        (Some(asked), _) => Ok(asked),
        (None, Some(dir)) => database::folder(dir)
            .retention()
            .context("--retain says anew what history to keep"),
        (None, None) => Ok(arbor_database::RETAINED),
    }
}

/// Refuses flags that would be of no use with this tree.
pub(super) fn check_flags(args: &Args, tree: TreeChoice) -> Result<()> {
    let settings = Settings {
        words: args.tree_settings.clone(),
        ..Settings::default()
    };
    let without_tree = tree.kind().is_none();
    match tree.kind() {
        Some(kind) => kind.check(&settings).context("--tree-settings")?,
        None if !settings.words.is_empty() => {
            bail!("--tree-settings is of no use with --tree {}", tree.name())
        }
        None => {}
    }
    for (flag, given, why) in [
        ("--db", args.db.is_some(), "nothing is stored"),
        ("--check-state", args.check_state.is_some(), NO_ROOT),
        ("--roots", args.roots.is_some(), NO_ROOT),
        ("--hash", args.hash.is_some(), NO_ROOT),
        ("--throttle", args.throttle.is_some(), "nothing is stored"),
        (
            "--write-back",
            args.write_back.is_some(),
            "nothing is stored",
        ),
        ("--retain", args.retain.is_some(), "nothing is stored"),
        ("--durable", args.durable, "nothing is stored"),
        ("--compact", args.compact, "nothing is stored"),
        ("--serve", args.serve.is_some(), "there is no state to read"),
        ("--convert-to", args.convert_to.is_some(), NO_ROOT),
        ("--verify last", args.verify == VerifyChoice::Last, NO_ROOT),
    ] {
        if without_tree && given {
            bail!("{flag} is of no use with --tree none: {why}");
        }
    }
    Ok(())
}

/// Blocks whose root is computed once with `--verify last`.
const ROOT_RUN: usize = 64;

/// The roots to compute on the way to block `last`. With `--verify last` every version that is to be retained at the
/// end has its own. If that is every block, a warning says why.
pub(super) fn verification(args: &Args, retain: Retain, last: Option<u64>) -> Verify {
    if args.verify == VerifyChoice::Every {
        return Verify::Every;
    }
    let each_from = match (last, retain) {
        _ if args.durable => Err("--durable writes each block as a version of its own"),
        (_, Retain::All) => Err("every block is kept as a version (--retain all)"),
        (_, Retain::None) => Ok(u64::MAX),
        (Some(last), Retain::Last(versions)) => Ok((last + 1).saturating_sub(versions)),
        (None, Retain::Last(_)) => Err(
            "the chain has no known end, so that any block may be among the last ones, which are kept as versions: give --to N",
        ),
    };
    match each_from {
        Ok(each_from) => Verify::Last {
            blocks: ROOT_RUN,
            each_from,
        },
        Err(why) => {
            tracing::warn!(
                "--verify last has no effect, and every block's root is computed: a version needs its root, and {why}"
            );
            Verify::Every
        }
    }
}

/// Refuses a database in memory that has a folder, and one on disk that has none.
pub(super) fn check_place(args: &Args) -> Result<()> {
    match (&args.db, args.store) {
        (Some(dir), StoreKind::Memory) => bail!(
            "--store memory keeps nothing in {}: leave out one of the two",
            dir.display()
        ),
        (None, store) if store != StoreKind::Memory => {
            bail!("give --db DIR, the folder of the database (or --store memory for none)")
        }
        _ => Ok(()),
    }
}

/// Refuses one root for many blocks under a tree that keeps a leaf for each slot that was ever set.
pub(super) fn check_verification(args: &Args, tree: &Tree) -> Result<()> {
    if args.verify == VerifyChoice::Last && tree.kind().zeros == Zeros::Kept {
        let others = TREES.rows().filter(|kind| kind.zeros == Zeros::Forgotten);
        let others: Vec<&str> = others.map(|kind| kind.name).collect();
        bail!(
            "--verify last cannot be used with the tree {name}. It computes one root for up to {ROOT_RUN} blocks, from the state before and \
             after them. The root of {name} depends on more: a slot that was ever set keeps a leaf, also if it was set and cleared between \
             the two. Leave the option out, which is --verify every, or use one of the trees {others}.",
            name = tree.kind().name,
            others = others.join(", ")
        );
    }
    Ok(())
}

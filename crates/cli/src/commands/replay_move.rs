//! `arbor replay --convert-to`: a state that moves to another tree while blocks go on.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arbor_chain::replay::{Replay, Verify};
use arbor_database::{Budget, TreeSettings};
use arbor_state::{Moves, State, Tree, TreeKind};
use arbor_trees::Moving;

use crate::args::Replay as Args;
use crate::{database, output};

/// Blocks after which it is looked whether the tree before can be dropped.
pub(super) const LOOK_EVERY: usize = 1 << 10;

/// The tree of a database, as one that moves if the database says that it does.
pub(super) fn known(dir: &Path, tree: Tree, memory: u64) -> Result<Tree> {
    let folder = database::folder(dir);
    match folder.head_file() {
        Ok(file) => Ok(folder.as_it_moves(tree, &file.identity, memory)?),
        // Opening the database says what is wrong with it.
        Err(_) => Ok(tree),
    }
}

/// Begins the move that is asked for, if the database has not begun it before.
pub(super) fn begin(args: &Args, state: State) -> Result<State> {
    let state = arrive(args, state)?;
    let (Some(kind), Some(at), Some(stride)) = (args.convert_to, args.at, args.stride) else {
        return Ok(state);
    };
    if let Some(moves) = state.tree().moves() {
        let asked = (kind.name, at, stride.get());
        let hash = args.convert_hash.as_deref();
        if let Some((_, moved)) = state.reader().moved()?
            && moved.last_block.is_some()
            && moves.target().kind().name != kind.name
        {
            bail!(
                "the database has moved to {}, and retained blocks need the tree before: `arbor prune` drops them and it, and then the next move can begin",
                moves.target().kind().name
            );
        }
        let is_hash = hash.is_none_or(|hash| hash == moves.target().hash());
        if (moves.target().kind().name, moves.at(), moves.stride()) != asked || !is_hash {
            bail!(
                "the database already moves to {} ({}). Without --convert-to, --at and --stride it goes on; --convert-abort gives it up",
                words(moves),
                moves.target().hash()
            );
        }
        return Ok(state);
    }
    let before = state.tree().kind();
    if before.name == kind.name {
        bail!(
            "--convert-to {}: the database has that tree already",
            kind.name
        );
    }
    let head = state.head().map_or(0, |head| head.block_number);
    if at <= head {
        bail!(
            "--at {at}: the latest block is {head}, and the first block that moves something comes after it"
        );
    }
    let target = target(args, kind)?;
    let moving = Moving::new(state.tree().clone(), target, at, stride.get());
    tracing::info!("the state moves from {} to {}", before.name, words(&moving));
    Ok(state.open_again(Arc::new(moving))?)
}

fn target(args: &Args, kind: &TreeKind) -> Result<Tree> {
    let hash = args.convert_hash.clone();
    let target = TreeSettings::default().tree(kind, hash, args.memory);
    target.with_context(|| format!("--convert-to {}", kind.name))
}

fn words(moves: &dyn Moves) -> String {
    format!(
        "{} from block {} on, {} accounts and slots a block",
        moves.target().kind().name,
        moves.at(),
        moves.stride()
    )
}

/// Drops the tree before, if the state has moved and no retained version needs it.
pub(super) fn arrive(args: &Args, state: State) -> Result<State> {
    let Some(tree) = state.arrived()? else {
        return Ok(state);
    };
    let name = tree.kind().name;
    let state = match args.db.as_deref() {
        Some(dir) => database::folder(dir).arrive(state)?,
        None => state.open_again(tree)?,
    };
    tracing::info!("the state has moved to {name}; the tree before is dropped");
    Ok(state)
}

/// The same amid a replay.
pub(super) fn look(args: &Args, replay: Replay) -> Result<Replay> {
    match replay.state().arrived()? {
        Some(_) => replay.open_again(|state| arrive(args, state)),
        None => Ok(replay),
    }
}

/// From the first block of a move on, each block is a version: each moves its share.
pub(super) fn each_from(verify: Verify, state: &State) -> Verify {
    match (verify, state.tree().moves()) {
        (Verify::Last { blocks, each_from }, Some(moves)) => Verify::Last {
            blocks,
            each_from: each_from.min(moves.at()),
        },
        (verify, _) => verify,
    }
}

/// Gives up a move.
pub(super) fn abort(args: &Args) -> Result<()> {
    let Some(dir) = args.db.as_deref() else {
        bail!("--convert-abort needs --db");
    };
    let folder = database::folder(dir);
    let budget = Budget {
        retain: folder.retention()?,
        ..Budget::new(args.memory)
    };
    let mut state = folder.open(budget)?;
    let Some(moves) = state.tree().moves() else {
        bail!("{}: the database moves to no other tree", dir.display());
    };
    let (source, target, before) = (
        moves.source().clone(),
        moves.target().kind().name,
        moves.at() - 1,
    );
    if state.reader().moved()?.is_some() {
        let view = state.versions().view();
        let version = view.version_of_block(before)?;
        let version = version.filter(|version| view.retained(*version).is_ok());
        let Some(version) = version else {
            bail!(
                "{}: block {before}, the last one before the move to {target}, is not retained any more",
                dir.display()
            );
        };
        state.rollback(version)?;
    }
    let state = state.open_again(source)?;
    let head = state.head().map_or(0, |head| head.block_number);
    output::remark(
        args.json,
        &format!(
            "the move to {target} is given up: the database has the tree {} alone, at block {head}",
            state.tree().kind().name
        ),
    )
}

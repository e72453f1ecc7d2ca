//! `arbor rollback` and `arbor prune`.

use anyhow::{Result, bail};
use arbor_versions::Retain;

use crate::args::{Prune, Rollback};
use crate::roots::{Cut, RootsFile};
use crate::{database, output};

pub(crate) fn rollback(args: &Rollback) -> Result<()> {
    let mut state = database::open(&args.database)?;
    let from = state.head().map_or(0, |head| head.block_number);
    let to = database::version_of(state.reader(), Some(args.to))?;
    // A file that cannot be cut is told of before anything is changed.
    let roots = RootsFile::cut_after(&RootsFile::of_database(&args.database.db), args.to)?;
    state.rollback(to)?;
    // The next replay cuts it as well.
    roots.map_or(Ok(()), Cut::apply)?;
    output::line(&format!(
        "rolled back from block {from} to block {}, state root {}",
        args.to,
        state.root()
    ))
}

pub(crate) fn prune(args: &Prune) -> Result<()> {
    if args.retain == Retain::All {
        bail!(
            "--retain all: to keep all history nothing is pruned; give none, or a number of versions"
        );
    }
    let mut state = database::open(&args.database)?;
    let stats = state.prune(args.retain)?;
    output::line(&format!("pruned {} versions", stats.versions))
}

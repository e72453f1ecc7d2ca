//! `arbor rollback` and `arbor prune`.

use anyhow::{Result, bail};
use arbor_versions::Retain;

use crate::args::{Prune, Rollback};
use crate::{database, output};

pub(crate) fn rollback(args: &Rollback) -> Result<()> {
    let mut state = database::open(&args.database)?;
    let from = state.head().map_or(0, |head| head.block_number);
    let to = database::version_of(state.reader(), Some(args.to))?;
    state.rollback(to)?;
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

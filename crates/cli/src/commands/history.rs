//! `arbor rollback` and `arbor prune`.

use anyhow::Result;
use arbor_versions::Retain;

use crate::args::{Prune, Rollback};
use crate::roots::RootsFile;
use crate::{database, output};

pub(crate) fn rollback(args: &Rollback) -> Result<()> {
    let mut state = database::open(&args.database)?;
    let from = state.head().map_or(0, |head| head.block_number);
    let to = database::version_of(state.reader(), Some(args.to))?;
    state.rollback(to)?;
    if let Some(head) = state.head() {
        // The next replay cuts them off as well.
        RootsFile::cut(&RootsFile::of_database(&args.database.db), head)?;
    }
    output::line(&format!(
        "rolled back from block {from} to block {}, state root {}",
        args.to,
        state.root()
    ))
}

pub(crate) fn prune(args: &Prune) -> Result<()> {
    let mut state = database::open(&args.database)?;
    if args.retain == Retain::All {
        return output::line("nothing to prune: all history is kept");
    }
    let stats = state.prune(args.retain)?;
    output::line(&format!("pruned {} versions", stats.versions))
}

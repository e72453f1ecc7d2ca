//! `arbor verify`: the whole database.

use anyhow::{Result, bail};

use crate::args::Database;
use crate::{database, output};

pub(crate) fn run(args: &Database) -> Result<()> {
    let (state, _) = database::open_to_read(args)?;
    let state = state.reader();
    let head = database::head(state)?;
    let report = state.verify()?;
    output::line(&format!(
        "checked {} accounts, {} slots, {} codes and {} nodes at block {}",
        report.accounts, report.slots, report.codes, report.nodes, head.block_number
    ))?;
    for fault in &report.faults {
        eprintln!("fault: {fault}");
    }
    match report.fault_count {
        0 => output::line(&format!(
            "every node and record agrees with state root {}",
            state.root()
        )),
        faults => bail!("{} is damaged: {faults} faults found", args.db.display()),
    }
}

//! `arbor verify`: the whole database.

use anyhow::{Result, bail};

use crate::args::Verify;
use crate::progress::PartDone;
use crate::{database, output};

pub(crate) fn run(args: &Verify) -> Result<()> {
    let (state, _) = database::open_to_read(&args.database)?;
    let state = state.reader();
    let head = database::head(state)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.threads)
        .build()?;
    let progress = PartDone::new("verify");
    let report = pool.install(|| {
        state.verify(&|now| {
            let what = format!(
                "{} accounts, {} slots, {} nodes",
                now.accounts, now.slots, now.nodes
            );
            progress.set(now.done, &what);
        })
    })?;
    progress.finish();
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
        faults => bail!(
            "{} is damaged: {faults} faults found",
            args.database.db.display()
        ),
    }
}

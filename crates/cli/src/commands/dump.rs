//! `arbor dump`: the whole state as JSON lines.

use std::io::{BufWriter, Write};

use anyhow::Result;
use arbor_state::DumpHead;

use crate::args::Dump;
use crate::{database, output};

pub(crate) fn run(args: &Dump) -> Result<()> {
    output::until_the_reader_leaves(write(args))
}

fn write(args: &Dump) -> Result<()> {
    let state = database::look(&args.database)?;
    let state = state.reader();
    let then = state.at(database::version_of(state, args.at)?)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    serde_json::to_writer(
        &mut out,
        &DumpHead {
            root: then.meta().root.into(),
        },
    )?;
    writeln!(out)?;
    then.dump::<anyhow::Error>(|account| {
        serde_json::to_writer(&mut out, &account)?;
        Ok(writeln!(out)?)
    })?;
    Ok(out.flush()?)
}

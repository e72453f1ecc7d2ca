//! `arbor dump`: the whole state as JSON lines.

use std::io::{BufWriter, Write};

use anyhow::{Context, Result};
use arbor_state::DumpHead;
use serde::Serialize;

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
    let head = DumpHead {
        root: then.meta().root.into(),
    };
    line(&mut out, &head)?;
    then.dump(|account| line(&mut out, &account))?;
    out.flush().context(WRITING)
}

/// What failed where standard output takes nothing more.
const WRITING: &str = "writing to standard output";

fn line(out: &mut impl Write, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *out, value).context(WRITING)?;
    writeln!(out).context(WRITING)
}

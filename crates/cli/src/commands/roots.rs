//! `arbor roots`: the root of the tree after each block, so that two machines can compare.

use std::io::{BufWriter, Write};

use alloy_primitives::B256;
use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::args::Roots;
use crate::{database, output};

/// The root after a block, as `--json` prints it, a line each.
#[derive(Serialize)]
struct BlockRoot {
    block: u64,
    root: B256,
}

pub(crate) fn run(args: &Roots) -> Result<()> {
    output::until_the_reader_leaves(write(args))
}

fn write(args: &Roots) -> Result<()> {
    const WRITING: &str = "writing to standard output";
    let state = database::look(&args.database)?;
    let reader = state.reader();
    let (from, to) = (args.from.number(reader)?, args.to.number(reader)?);
    if from > to {
        bail!(
            "the range is empty: --from {} is block {from}, which comes after --to {}, block {to}",
            args.from,
            args.to
        );
    }
    let mut out = BufWriter::new(std::io::stdout().lock());
    if args.csv {
        writeln!(out, "block,root").context(WRITING)?;
    }
    let separator = if args.csv { ',' } else { ' ' };
    for row in reader.block_roots(from)? {
        let (block, root) = row?;
        if block > to {
            break;
        }
        match args.json {
            true => {
                serde_json::to_writer(&mut out, &BlockRoot { block, root }).context(WRITING)?;
                writeln!(out).context(WRITING)?;
            }
            false => writeln!(out, "{block}{separator}{root}").context(WRITING)?,
        }
    }
    out.flush().context(WRITING)
}

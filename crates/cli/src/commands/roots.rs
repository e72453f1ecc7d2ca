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
    let mut next = None;
    for row in reader.block_roots(from)? {
        let (block, root) = row?;
        if block > to {
            break;
        }
        if let Some(gap) = next.filter(|next| *next < block) {
            tell_gap(gap, block - 1);
        }
        next = block.checked_add(1);
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

/// Names blocks that have no root between others that have one.
fn tell_gap(first: u64, last: u64) {
    let blocks = match first == last {
        true => format!("block {first} has"),
        false => format!("blocks {first} to {last} have"),
    };
    output::tell(&format!(
        "warning: {blocks} no root here: it was not computed (--verify last computes one for many blocks), or the row is missing"
    ));
}

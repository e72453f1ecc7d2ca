//! `arbor roots`: what a tree makes of each block, so that two machines can compare.

use std::io::{BufWriter, Write};

use anyhow::{Context, Result};

use crate::args::Roots;
use crate::{database, output};

pub(crate) fn run(args: &Roots) -> Result<()> {
    output::until_the_reader_leaves(write(args))
}

fn write(args: &Roots) -> Result<()> {
    const WRITING: &str = "writing to standard output";
    let state = database::look(&args.database)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    if args.csv {
        writeln!(out, "block,root").context(WRITING)?;
    }
    let separator = if args.csv { ',' } else { ' ' };
    for row in state.reader().block_roots(args.from)? {
        let (number, root) = row?;
        if number > args.to {
            break;
        }
        writeln!(out, "{number}{separator}{root}").context(WRITING)?;
    }
    out.flush().context(WRITING)
}

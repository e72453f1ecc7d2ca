//! `arbor dump`: the whole state as JSON lines.

use std::io::{BufWriter, Write};

use anyhow::{Context, Result};
use arbor_state::DumpHead;
use serde::Serialize;

use crate::args::Dump;
use crate::progress::{KeyPart, PartDone};
use crate::{database, metrics_server, output};

pub(crate) fn run(args: &Dump) -> Result<()> {
    metrics_server::serve(args.metrics)?;
    output::until_the_reader_leaves(write(args))
}

fn write(args: &Dump) -> Result<()> {
    let state = database::look(&args.database)?;
    let state = state.reader();
    let then = state.at(args.at.version(state)?)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let head = DumpHead {
        root: then.meta().root.into(),
    };
    line(&mut out, &head)?;
    let progress = PartDone::while_printing("dump");
    // Accounts come in the order of their addresses or of the hashes of these, as the tree has them.
    let (mut by_hash, mut by_address) = (KeyPart::default(), KeyPart::default());
    let mut accounts = 0u64;
    then.dump(|account| {
        accounts += 1;
        let hashed = by_hash.at(account.key.as_slice());
        let plain = by_address.at(account.address.as_slice());
        if accounts.is_multiple_of(TOLD_EVERY)
            && let Some(part) = hashed.or(plain)
        {
            progress.set(part, &format!("{accounts} accounts"));
        }
        line(&mut out, &account)
    })?;
    progress.finish();
    out.flush().context(WRITING)
}

/// Accounts between two looks at the progress, by which their order is known, too.
const TOLD_EVERY: u64 = 64;

/// What failed where standard output takes nothing more.
const WRITING: &str = "writing to standard output";

fn line(out: &mut impl Write, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *out, value).context(WRITING)?;
    writeln!(out).context(WRITING)
}

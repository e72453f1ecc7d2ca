//! `arbor dump`: the whole state as JSON lines.

use std::io::{BufWriter, Write};

use alloy_primitives::B256;
use anyhow::{Context, Result};
use arbor_chain::replay::KeptBlock;
use arbor_state::{DumpHead, Head, Historical, RootPlace};
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
    line(&mut out, &head(state, &then)?)?;
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

/// The first line. Its root is the Merkle-Patricia root, as geth writes it, if that is known without reading all accounts of an older
/// block; else the root of the database's tree, with the tree's name.
fn head(state: Head<'_>, then: &Historical<'_>) -> Result<DumpHead> {
    let meta = then.meta();
    let root = B256::from(meta.root);
    if state.tree().kind().roots == RootPlace::InHeaders {
        return Ok(DumpHead { root, tree: None });
    }
    if let Some(root) = KeptBlock::kept(meta.clone()).state_root {
        return Ok(DumpHead { root, tree: None });
    }
    if state
        .meta()
        .is_some_and(|head| head.version == meta.version)
    {
        let root = state.flat_root()?;
        return Ok(DumpHead { root, tree: None });
    }
    let tree = Some(state.tree().kind().name.to_owned());
    Ok(DumpHead { root, tree })
}

/// Accounts between two looks at the progress, by which their order is known, too.
const TOLD_EVERY: u64 = 64;

/// What failed where standard output takes nothing more.
const WRITING: &str = "writing to standard output";

fn line(out: &mut impl Write, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *out, value).context(WRITING)?;
    writeln!(out).context(WRITING)
}

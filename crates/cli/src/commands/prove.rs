//! `arbor prove` and `arbor verify-proof`.

use anyhow::{Context, Result};
use arbor_state::AccountProof;

use crate::args::{Prove, VerifyProof};
use crate::{database, output};

pub(crate) fn run(args: &Prove) -> Result<()> {
    let (state, _) = database::open_to_read(&args.database)?;
    let state = state.reader();
    let then = state.at(database::version_of(state, args.at)?)?;
    output::json(&then.prove(args.address, &args.slots)?)
}

/// Accepts a bare proof and the whole JSON-RPC response around one.
pub(crate) fn verify(args: &VerifyProof) -> Result<()> {
    let bytes = output::read_input(&args.file)?;
    let mut value: serde_json::Value = serde_json::from_slice(&bytes)
        .with_context(|| format!("{} is not JSON", args.file.display()))?;
    if let Some(result) = value.get_mut("result") {
        value = result.take();
    }
    let proof: AccountProof = serde_json::from_value(value).with_context(|| {
        format!(
            "{} is not a proof as eth_getProof gives it",
            args.file.display()
        )
    })?;
    proof
        .verify(args.root)
        .with_context(|| format!("{}: malformed proof", args.file.display()))?
        .with_context(|| {
            format!(
                "{}: false proof against root {}",
                args.file.display(),
                args.root
            )
        })?;
    let slots = proof.storage_proof.len();
    output::line(&format!(
        "proven: account {} and {slots} slots under root {}",
        proof.address, args.root
    ))
}

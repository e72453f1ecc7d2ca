//! `arbor prove` and `arbor verify-proof`.

use alloy_primitives::B256;
use anyhow::{Context, Result};
use arbor_state::verkle::{Committer, Witness};
use arbor_state::{AccountProof, Tree};

use crate::args::{Prove, VerifyProof};
use crate::{database, output};

pub(crate) fn run(args: &Prove) -> Result<()> {
    let (state, _) = database::open_to_read(&args.database)?;
    let state = state.reader();
    let then = state.at(database::version_of(state, args.at)?)?;
    match then.tree() {
        Tree::MerklePatricia => output::json(&then.prove(args.address, &args.slots)?),
        Tree::Verkle(_) => output::json(&then.prove_leaves(args.address, &args.slots)?),
    }
}

/// Accepts a bare proof and the whole JSON-RPC response around one.
pub(crate) fn verify(args: &VerifyProof) -> Result<()> {
    let bytes = output::read_input(&args.file)?;
    let mut value: serde_json::Value = serde_json::from_slice(&bytes)
        .with_context(|| format!("{} is not JSON", args.file.display()))?;
    if let Some(result) = value.get_mut("result") {
        value = result.take();
    }
    if ["verkleProof", "verkle_proof"]
        .iter()
        .any(|field| value.get(field).is_some())
    {
        return verify_witness(args, value);
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

/// Bytes for the tables that a proof is checked with: larger ones take longer to make than they save.
const TABLE_BYTES: usize = 6_000_000;

/// Checks a witness of a Verkle tree, and prints the keys that it proves.
fn verify_witness(args: &VerifyProof, value: serde_json::Value) -> Result<()> {
    let file = args.file.display();
    let witness: Witness = serde_json::from_value(value)
        .with_context(|| format!("{file} is not a witness of a Verkle tree"))?;
    let committer = Committer::within(TABLE_BYTES);
    let verified = witness
        .verify(&committer, &args.root.0)
        .with_context(|| format!("{file}: malformed witness"))?
        .with_context(|| format!("{file}: false proof against root {}", args.root))?;
    let mut keys = 0;
    for (key, value) in verified.values() {
        let value = value.map_or("absent".to_owned(), |value| B256::from(value).to_string());
        output::line(&format!("{} {value}", B256::from(key)))?;
        keys += 1;
    }
    output::line(&format!("proven: {keys} keys under root {}", args.root))
}

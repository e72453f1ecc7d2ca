//! `arbor prove` and `arbor verify-proof`.

use alloy_primitives::{Address, B256};
use anyhow::{Context, Result, anyhow, bail};
use arbor_chain::json;
use arbor_state::ar16mt::StateProof;
use arbor_state::verkle::{Committer, Witness, WitnessError};
use arbor_state::{AccountProof, Tree};

use super::verify_witness::TABLE_BYTES;
use crate::args::{Prove, VerifyProof};
use crate::{database, output};

pub(crate) fn run(args: &Prove) -> Result<()> {
    let state = database::look(&args.database)?;
    let state = state.reader();
    let then = state.at(database::version_of(state, args.at)?)?;
    match then.tree() {
        Tree::MerklePatricia => output::json(&then.prove(args.address, &args.slots)?),
        Tree::Ar16mt(_) => output::json(&then.prove_paths(args.address, &args.slots)?),
        Tree::Verkle(_) => output::json(&then.prove_leaves(args.address, &args.slots)?),
    }
}

/// Accepts a bare proof and the whole JSON-RPC response around one. No field may be there twice.
pub(crate) fn verify(args: &VerifyProof) -> Result<()> {
    let bytes = output::read_input(&args.file)?;
    let mut value =
        json::parse(&bytes).with_context(|| format!("{}: malformed JSON", args.file.display()))?;
    if let Some(result) = value.get_mut("result") {
        value = result.take();
    }
    let has = |fields: &[&str]| fields.iter().any(|field| value.get(field).is_some());
    if has(&["executionWitness", "execution_witness"]) {
        bail!(
            "{} is a whole block: arbor verify-witness checks it",
            args.file.display()
        );
    }
    if has(&["verkleProof", "verkle_proof"]) {
        return verify_leaves(args, value);
    }
    if has(&["nonceLeaf", "balanceLeaf", "codeHashLeaf", "exists"]) {
        return verify_paths(args, value);
    }
    let proof: AccountProof = json::from_value(value).with_context(|| {
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
    proven(args, proof.address, proof.storage_proof.len())
}

fn proven(args: &VerifyProof, address: Address, slots: usize) -> Result<()> {
    let root = args.root;
    output::line(&format!(
        "proven: account {address} and {slots} slots under root {root}"
    ))
}

/// Checks the paths of an account's and its slots' leaves under AR16MT.
fn verify_paths(args: &VerifyProof, value: serde_json::Value) -> Result<()> {
    let file = args.file.display();
    let proof: StateProof = json::from_value(value)
        .with_context(|| format!("{file} is not a proof of an ar16mt database"))?;
    proof
        .verify(args.root)
        .with_context(|| format!("{file}: malformed proof"))?
        .with_context(|| format!("{file}: false proof against root {}", args.root))?;
    proven(args, proof.address, proof.slots.len())
}

/// Checks a witness of a Verkle tree, and prints the keys that it proves.
fn verify_leaves(args: &VerifyProof, value: serde_json::Value) -> Result<()> {
    let file = args.file.display();
    let witness: Witness = json::from_value(value)
        .with_context(|| format!("{file} is not a witness of a Verkle tree"))?;
    let committer = Committer::within(TABLE_BYTES);
    let verified = witness.verify(&committer, &args.root.0);
    let verified = verified
        .map_err(|error| match error {
            WitnessError::Root(why) => {
                anyhow!("--root {} is no root of a Verkle tree: {why}", args.root)
            }
            error => anyhow!("{file}: malformed witness: {error}"),
        })?
        .with_context(|| format!("{file}: false proof against root {}", args.root))?;
    if let Some(stem) = verified.doubtful().next() {
        bail!(
            "{file}: nothing shows that stem 0x{} is absent: its way ends below a node that may be a leaf, since neither index 0 of it is opened nor a child \
             beyond index 3 (`arbor prove` opens one)",
            alloy_primitives::hex::encode(stem)
        );
    }
    let mut keys = 0;
    for (key, value) in verified.values() {
        let value = value.map_or("absent".to_owned(), |value| B256::from(value).to_string());
        output::line(&format!("{} {value}", B256::from(key)))?;
        keys += 1;
    }
    let new = witness.keys().filter(|(_, diff)| diff.new.is_some());
    match new.count() {
        0 => output::line(&format!("proven: {keys} keys under root {}", args.root)),
        new => output::line(&format!(
            "proven: {keys} keys under root {}; {new} new values are beside them, of which no proof says anything: see verify-witness",
            args.root
        )),
    }
}

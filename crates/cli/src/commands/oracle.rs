//! `arbor oracle`: what a state's root is made of.

use alloy_primitives::{B256, Bytes};
use anyhow::{Context, Result, anyhow, bail};
use arbor_convert::AccountList;
use arbor_database::{Budget, NO_CHAIN, in_memory};
use arbor_state::{BlockRef, State, TreeKind};
use arbor_verify::LeafValues;
use arbor_versions::Version;
use serde::Serialize;
use serde_json::Value;

use crate::args::Oracle as Args;
use crate::{leaf_list, output};

/// Bytes for a state of a few accounts.
const MEMORY: u64 = 64 << 20;

/// A leaf, as `--json` prints it and `arbor diff` reads it.
#[derive(Serialize)]
struct Leaf {
    key: Bytes,
    value: B256,
    /// What the leaf stands for.
    of: Option<String>,
}

/// What is printed.
#[derive(Serialize)]
struct Found {
    tree: &'static str,
    hash: String,
    root: B256,
    accounts: usize,
    leaves: Vec<Leaf>,
    proofs: Vec<Value>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let leaves = args.tree.verify.leaves;
    let leaves = leaves.ok_or_else(|| anyhow!("the leaves of {} have no names", args.tree.name))?;
    let accounts = leaf_list::accounts(&args.state)?;
    let state = loaded(args, &accounts)?;
    let hash = state.tree().hash();
    let list = leaf_list::leaves_of(leaves, hash, &accounts)?;
    let root = state.root();
    // A second opinion: from the leaves alone.
    let values = list.iter().map(|(key, leaf)| (key.clone(), leaf.value));
    let values: LeafValues = values.collect();
    let from_leaves = (leaves.root)(hash, &values).ok_or_else(|| unknown_hash(args.tree, hash))?;
    let from_leaves = from_leaves.map_err(|error| anyhow!(error))?;
    if from_leaves != root {
        bail!("the leaves lead to root {from_leaves}, and the tree has {root}: please report it");
    }
    let mut proofs = Vec::new();
    for named in &args.prove {
        let then = state.at(Version(0))?;
        let mut proof = Vec::new();
        then.prove(named.address, &named.slots)?
            .write_json(&mut proof, false)?;
        proofs.push(serde_json::from_slice(&proof)?);
    }
    let leaves = list.into_iter().map(|(key, leaf)| Leaf {
        key: key.into(),
        value: leaf.value,
        of: leaf.of,
    });
    let found = Found {
        tree: args.tree.name,
        hash: hash.to_owned(),
        root,
        accounts: accounts.accounts.len(),
        leaves: leaves.collect(),
        proofs,
    };
    match args.json {
        true => output::json(&found),
        false => print(&found),
    }
}

fn print(found: &Found) -> Result<()> {
    output::line(&format!("root {}", found.root))?;
    for Leaf { key, value, of } in &found.leaves {
        let of = of.as_deref().unwrap_or_default();
        output::line(&format!("{key} {value} {of}"))?;
    }
    for proof in &found.proofs {
        output::line(&format!("proof {proof}"))?;
    }
    Ok(())
}

fn unknown_hash(kind: &TreeKind, hash: &str) -> anyhow::Error {
    anyhow!("the tree {} is not hashed with {hash}", kind.name)
}

/// The state in memory, under the tree.
fn loaded(args: &Args, accounts: &AccountList) -> Result<State> {
    let settings = arbor_state::Settings {
        hash: args.hash.clone(),
        ..Default::default()
    };
    let tree = (args.tree.make)(&settings).context("--hash")?;
    let order = tree.order();
    let mut state = in_memory(tree, NO_CHAIN, Budget::new(MEMORY))?;
    let source = accounts.sorted(order)?;
    let computed = state.load(&source, &|_, _| ())?;
    let block = BlockRef {
        number: 0,
        hash: B256::ZERO,
        record: Vec::new(),
    };
    state.commit(&block, computed)?;
    drop(source);
    Ok(state)
}

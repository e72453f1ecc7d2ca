//! `arbor oracle`: what a state's root is made of.

use alloy_primitives::{B256, Bytes};
use anyhow::{Context, Result, bail};
use arbor_convert::AccountList;
use arbor_database::{Budget, NO_CHAIN, in_memory};
use arbor_state::{BlockRef, Settings, TreeKind};
use serde::Serialize;
use serde_json::Value;

use crate::args::Oracle as Args;
use crate::leaf_list::{HashedTree, LeafSource, OfDatabase, no_names};
use crate::output;

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
    hash: &'static str,
    root: B256,
    accounts: usize,
    /// `None` for a tree whose leaves have no names.
    leaves: Option<Vec<Leaf>>,
    proofs: Vec<Value>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let state = state(args)?;
    let (tree, hash) = state.tree();
    let leaves = state.own_leaves()?.map(|list| {
        let leaves = list.into_iter().map(|(key, leaf)| Leaf {
            key: key.into(),
            value: leaf.value,
            of: leaf.of,
        });
        leaves.collect::<Vec<Leaf>>()
    });
    let then = state.then()?;
    let mut proofs = Vec::new();
    for named in &args.prove {
        let mut proof = Vec::new();
        then.prove(named.address, &named.slots)?
            .write_json(&mut proof, false)?;
        proofs.push(serde_json::from_slice(&proof)?);
    }
    let found = Found {
        tree: tree.name,
        hash,
        root: state.root(),
        accounts: state.count_accounts()?,
        leaves,
        proofs,
    };
    match args.json {
        true => output::json(&found)?,
        false => print(&found)?,
    }
    if found.leaves.is_none() {
        output::tell(&format!("only the root: {}", no_names(tree)));
    }
    Ok(())
}

fn print(found: &Found) -> Result<()> {
    output::line(&format!("root {}", found.root))?;
    for Leaf { key, value, of } in found.leaves.iter().flatten() {
        let of = of.as_deref().unwrap_or_default();
        output::line(&format!("{key} {value} {of}"))?;
    }
    for proof in &found.proofs {
        output::line(&format!("proof {proof}"))?;
    }
    Ok(())
}

/// The state under the tree: the database itself if that has the tree, otherwise its accounts in a new tree in memory.
fn state(args: &Args) -> Result<OfDatabase> {
    match (LeafSource::read(&args.state)?, args.tree) {
        (LeafSource::Accounts(accounts), Some(tree)) => loaded(args, tree, &accounts),
        (LeafSource::Accounts(_), None) => {
            bail!(
                "{} is not a database, which has a tree: name the tree with --tree",
                args.state
            )
        }
        (LeafSource::Database(found), wanted) if found.moves() => {
            let Some(wanted) = wanted else {
                bail!(
                    "{}: the state moves to another tree, and has the leaves of neither: name the tree with --tree",
                    args.state
                );
            };
            loaded(args, wanted, &AccountList::of(&found.then()?)?)
        }
        (LeafSource::Database(found), wanted) => {
            let (tree, hash) = found.tree();
            let wanted = wanted.unwrap_or(tree);
            let has_hash = args.hash.as_deref().is_none_or(|wanted| wanted == hash);
            if wanted.name == tree.name && has_hash {
                return Ok(found);
            }
            let state = loaded(args, wanted, &AccountList::of(&found.then()?)?)?;
            let (wanted, wanted_hash) = state.tree();
            output::tell(&format!(
                "{} has the tree {}: root and leaves are not its own, but those of its accounts in {}",
                args.state,
                HashedTree::new(tree, hash),
                HashedTree::new(wanted, wanted_hash),
            ));
            Ok(state)
        }
    }
}

/// Loads accounts into a tree in memory.
fn loaded(args: &Args, tree: &TreeKind, accounts: &AccountList) -> Result<OfDatabase> {
    let settings = Settings {
        hash: args.hash.clone(),
        ..Settings::default()
    };
    let tree = (tree.make)(&settings).context("--hash")?;
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
    OfDatabase::new(state.snapshot()?)
}

//! `arbor witness --rpc`: witnesses of blocks, taken from a node or built from its proofs.

use alloy_primitives::B256;
use anyhow::{Context, Result, bail};
use arbor_chain::genesis::Genesis;
use arbor_chain::rules::ChainRules;
use arbor_chain::witness::MadeWitness;
use arbor_remote::{HowMade, Node, WitnessRules, fetch_witness};

use super::witness_files::write_each;
use crate::args::Witness as Args;
use crate::block_choice::BlockChoice;
use crate::{genesis, output, rules};

pub(super) fn run(args: &Args, url: &str, block: BlockChoice) -> Result<()> {
    let node = Node::new(url)?;
    let (genesis, text) = genesis::of_node(args.genesis.as_deref(), None, &node)?;
    for warning in &genesis.warnings {
        tracing::warn!("genesis: {warning}");
    }
    let config = match genesis.network() {
        Some(_) => None,
        None => Some(Genesis::config_of(&text)?),
    };
    let asked = rules::asked(&args.rules);
    let (first, hash) = number(&node, block)?;
    let last = match args.to {
        Some(to) => number(&node, to)?.0,
        None => first,
    };
    if first == 0 {
        bail!("block 0 is the genesis: nothing comes before it");
    }
    if last < first {
        bail!("--to {last} is before --block {first}");
    }
    let rules = WitnessRules {
        genesis: &genesis,
        rules: asked,
    };
    write_each(args, first..=last, |number| {
        let hash = match number == first {
            true => hash,
            false => hash_of(&node, number)?,
        };
        let fetched = fetch_witness(&node, hash, rules, args.from_proofs);
        let fetched = fetched.with_context(|| format!("the witness of block {number}"))?;
        output::tell(&format!("block {number}: {}", described(&fetched.how)));
        let mut made = MadeWitness::from(fetched.witness);
        let beyond = (asked != ChainRules::default()).then_some(asked);
        made.witness.set_rules(config.clone(), beyond);
        Ok(made)
    })
}

/// Says how a witness was made.
fn described(how: &HowMade) -> String {
    let how = match how {
        HowMade::Taken => "taken from debug_executionWitness".to_owned(),
        HowMade::Built { why: None } => "built from eth_getProof".to_owned(),
        HowMade::Built { why: Some(why) } => format!("built from eth_getProof, because {why}"),
    };
    format!("{how}. The block was executed over it, and holds")
}

/// The number and hash of a block of a node.
fn number(node: &Node, block: BlockChoice) -> Result<(u64, B256)> {
    let number = match block {
        BlockChoice::Number(number) => number,
        BlockChoice::Latest => node.latest()?,
        BlockChoice::Back(blocks) => {
            let latest = node.latest()?;
            let number = latest.checked_sub(blocks);
            number.with_context(|| format!("the latest block of the node is {latest}"))?
        }
        BlockChoice::Hash(hash) => return Ok((node.block(hash)?.header.number, hash)),
    };
    Ok((number, hash_of(node, number)?))
}

fn hash_of(node: &Node, number: u64) -> Result<B256> {
    let hash = node.block_hash(number)?;
    hash.with_context(|| format!("the node has no block {number}"))
}

//! `arbor witness diff`: how two witnesses of a block differ.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use arbor_chain::genesis::Genesis;
use arbor_chain::source::open_sources;
use arbor_chain::witness::{
    ExecutionWitness, MptWitness, NodeDifference, NodesFile, ServedName, Side, WitnessDifference,
    compare_witnesses,
};

use crate::args::WitnessDiff as Args;
use crate::commands::replay_witness::with_block;
use crate::{genesis, output};

/// Prints what only one of the witnesses has; it is an error if there is anything.
pub(super) fn run(args: &Args) -> Result<()> {
    if args.first == Path::new("-") && args.second == Path::new("-") {
        bail!("standard input (-) can be one of the two witnesses, not both");
    }
    let genesis = match (&args.genesis, &args.witness_chain[..]) {
        (Some(named), _) => Some(Genesis::load(named)?),
        (None, []) => None,
        (None, chain) => Some(genesis::of_input(None, None, &open_sources(chain)?)?.0),
    };
    let [a, b] = [&args.first, &args.second].map(|file| read(file));
    let (a, b) = (a?, b?);
    let block = block(args, [&a, &b], genesis.as_ref())?;
    let judged = match &block {
        Some(block) => {
            let mut judged = block.judged_by(genesis.as_ref())?;
            let rules = block.rules.unwrap_or_default();
            rules.set(&mut judged.spec);
            Some((block, judged.spec, rules))
        }
        None => None,
    };
    let executed = judged
        .as_ref()
        .map(|(block, spec, rules)| (*block, spec, rules.executor()));
    let found = compare_witnesses(&a.parts, &b.parts, executed)?;
    match args.json {
        true => output::line(&serde_json::to_string(&found)?)?,
        false => print(args, [&a, &b], &found)?,
    }
    let WitnessDifference {
        nodes,
        codes,
        headers,
        ..
    } = &found;
    match found.is_none() {
        true => Ok(()),
        false => bail!(
            "the witnesses differ in {}, {} and {}",
            output::counted(nodes.len() as u64, "node"),
            output::counted(codes.len() as u64, "code"),
            output::counted(headers.len() as u64, "header")
        ),
    }
}

/// A witness that was read.
struct Read {
    parts: ExecutionWitness,
    /// The same with its block, if it has that.
    whole: Option<MptWitness>,
}

fn read(file: &Path) -> Result<Read> {
    let name = || file.display().to_string();
    let (parts, whole) = match NodesFile::read(file)? {
        NodesFile::WithoutBlock(parts) => (parts, None),
        NodesFile::WithBlock(witness) => {
            if let Some(tree) = &witness.tree {
                bail!(
                    "{}: it is of the tree {}, and only witnesses of Merkle-Patricia are compared",
                    name(),
                    tree.name
                );
            }
            witness.decode().with_context(name)?;
            let parts = ExecutionWitness::canonical((*witness).clone());
            (parts, Some(*witness))
        }
    };
    Ok(Read { parts, whole })
}

/// The block of both witnesses: in one of them, or in the chain.
fn block(args: &Args, [a, b]: [&Read; 2], genesis: Option<&Genesis>) -> Result<Option<MptWitness>> {
    let own = a.whole.as_ref().or(b.whole.as_ref()).cloned();
    match (own, genesis) {
        (Some(own), _) => Ok(Some(own)),
        (None, Some(genesis)) if !args.witness_chain.is_empty() => {
            with_block(&args.witness_chain, a.parts.clone(), genesis).map(Some)
        }
        _ => Ok(None),
    }
}

fn print(args: &Args, [a, b]: [&Read; 2], found: &WitnessDifference) -> Result<()> {
    let count = |read: &Read, file: &PathBuf| {
        let nodes = read.parts.state.len() as u64;
        format!("{} has {}", file.display(), output::counted(nodes, "node"))
    };
    output::line(&format!(
        "block {}, state root {} before it: A, {}; B, {}; {} in both",
        found.block,
        found.state_root,
        count(a, &args.first),
        count(b, &args.second),
        found.common_nodes
    ))?;
    if let Some(why) = &found.unnamed {
        output::line(&format!("nodes are listed without names: {why}"))?;
    }
    for node in &found.nodes {
        output::line(&format!(
            "{} node {} ({} bytes), {}: {}{}",
            side(node.only_in),
            node.hash,
            node.bytes,
            places(node),
            names(node, found.unnamed.is_none()),
            canonical(node.canonical)
        ))?;
    }
    for code in &found.codes {
        let accounts = code.accounts.iter().map(|address| format!("{address:#x}"));
        let accounts: Vec<String> = accounts.collect();
        output::line(&format!(
            "{} code {} ({} bytes){}{}",
            side(code.only_in),
            code.hash,
            code.bytes,
            match &accounts[..] {
                [] => String::new(),
                all => format!(": of {}", all.join(", ")),
            },
            canonical(code.canonical)
        ))?;
    }
    for header in &found.headers {
        let number = match header.number {
            Some(number) => format!("block {number}"),
            None => "malformed".to_owned(),
        };
        output::line(&format!(
            "{} header {} ({number})",
            side(header.only_in),
            header.hash
        ))?;
    }
    Ok(())
}

fn side(side: Side) -> &'static str {
    match side {
        Side::A => "only in A:",
        Side::B => "only in B:",
    }
}

fn places(node: &NodeDifference) -> String {
    let places = node.places.iter().map(|place| {
        let path = match &place.path[..] {
            "" => "the root".to_owned(),
            path => format!("path {path}"),
        };
        match place.storage_of {
            None => format!("{path} of the account trie"),
            Some(key) => format!("{path} of the storage trie under {key}"),
        }
    });
    match places.collect::<Vec<_>>() {
        none if none.is_empty() => "to which the state root does not lead".to_owned(),
        all => all.join(", and "),
    }
}

/// Names of a node that are printed: the root serves all.
const SHOWN: usize = 4;

fn names(node: &NodeDifference, are_known: bool) -> String {
    let shown = node.names.iter().take(SHOWN).map(|name| match name {
        ServedName {
            account,
            slot: None,
        } => format!("account {account:#x}"),
        ServedName {
            account,
            slot: Some(slot),
        } => format!("account {account:#x} slot {slot:#x}"),
    });
    let shown: Vec<String> = shown.collect();
    match node.names.len().saturating_sub(SHOWN) {
        _ if shown.is_empty() && are_known => "no name of the block".to_owned(),
        _ if shown.is_empty() => "names not known".to_owned(),
        0 => format!("for {}", shown.join(", ")),
        more => format!("for {} and {more} more", shown.join(", ")),
    }
}

fn canonical(canonical: Option<bool>) -> &'static str {
    match canonical {
        None => "",
        Some(true) => "; the canonical witness has it",
        Some(false) => "; the canonical witness does not have it",
    }
}

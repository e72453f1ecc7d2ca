//! `arbor demo`: a first taste, on a chain made here.

use anyhow::{Context, Result};
use arbor_chain::generator::Preset;
use arbor_chain::genesis::Genesis;
use arbor_chain::replay::genesis_state_root;
use clap::Parser;

use crate::args::{Arbor, Command, Demo};
use crate::commands;
use crate::output;

pub(crate) fn run(args: &Demo) -> Result<()> {
    let (chain, db) = (args.out.join("chain"), args.out.join("db"));
    let (chain, db) = (
        chain.to_string_lossy().into_owned(),
        db.to_string_lossy().into_owned(),
    );
    output::line(&format!("$ arbor generate --preset demo --out {chain}"))?;
    let summary = commands::generate::make(&Preset::Demo.settings(), chain.as_ref())?;
    taste(&["replay", "--db", &db, &chain])?;
    taste(&["status", "--db", &db])?;
    taste(&["verify", "--db", &db])?;
    let genesis = Genesis::from_file(&summary.genesis, &genesis_state_root)?;
    let rich = genesis
        .alloc
        .iter()
        .max_by_key(|account| account.balance)
        .context("the genesis has accounts")?;
    let rich = rich.address.to_string();
    taste(&["get", "--db", &db, &rich])?;
    let earlier = summary.head.saturating_sub(100).to_string();
    taste(&["get", "--db", &db, &rich, "--at", &earlier])?;
    output::line("\nnext: arbor prove, dump, witness, rollback; `arbor help` lists them all")
}

/// Prints a command and runs it.
fn taste(words: &[&str]) -> Result<()> {
    output::line(&format!("\n$ arbor {}", words.join(" ")))?;
    let arbor = Arbor::try_parse_from(std::iter::once("arbor").chain(words.iter().copied()))
        .context("invariant: the demo's commands are well formed")?;
    match &arbor.command {
        Command::Demo(_) => Ok(()),
        other => crate::run(other),
    }
}

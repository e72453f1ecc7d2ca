//! `arbor demo`: a first taste, on a chain made here.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::{Context, Result};
use arbor_chain::genesis::Genesis;
use arbor_generator::Preset;
use clap::Parser;

use crate::args::{Arbor, Command, Demo};
use crate::commands;
use crate::output;
use crate::trees::TREES;

pub(crate) fn run(args: &Demo) -> Result<()> {
    let say = |text: &str| output::remark(args.json, text);
    let (chain, db) = (args.out.join("chain"), args.out.join("db"));
    if chain.exists() {
        say(&format!(
            "{} has the chain of an earlier demo, which is kept: the commands go on from there\n",
            args.out.display()
        ))?;
    }
    say(&format!(
        "$ arbor generate --preset demo --out {}",
        chain.display()
    ))?;
    let summary = commands::generate::make(&Preset::Demo.settings(), &chain, args.json)?;
    let taste = |command: &str, words: &[&OsStr]| {
        let begin = [OsStr::new(command), OsStr::new("--db"), db.as_os_str()];
        taste(&[&begin, words].concat(), args.json)
    };
    taste("replay", &[chain.as_os_str()])?;
    taste("status", &[])?;
    taste("verify", &[])?;
    let genesis = Genesis::from_file(&summary.genesis)?;
    let rich = genesis
        .alloc
        .iter()
        .max_by_key(|account| account.balance)
        .context("the genesis has accounts")?;
    let rich = rich.address.to_string();
    taste("get", &[rich.as_ref()])?;
    let earlier = summary.head.saturating_sub(100).to_string();
    taste("get", &[rich.as_ref(), "--at".as_ref(), earlier.as_ref()])?;
    compare(&args.out.join("compare"), &chain, args.json)?;
    say("\nnext: arbor prove, dump, witness, rollback; `arbor help` lists them all")
}

/// Replays the chain under every tree, and prints their figures next to each other.
fn compare(out: &Path, chain: &Path, json: bool) -> Result<()> {
    // A comparison is one measurement: that of an earlier demo, maybe of another program, is not gone on with.
    if out.join("plan.json").exists() {
        std::fs::remove_dir_all(out).with_context(|| format!("removing {}", out.display()))?;
    }
    let trees: Vec<&str> = TREES.rows().map(|kind| kind.name).collect();
    let trees = trees.join(",");
    // No growth: each point starts two processes, and a demo should be short.
    let words = [
        "compare", "--repeat", "1", "--growth", "0", "--trees", &trees, "--out",
    ]
    .map(OsStr::new);
    taste(
        &[&words[..], &[out.as_os_str(), chain.as_os_str()]].concat(),
        json,
    )
}

/// Prints a command and runs it. With `json`, its result is printed as JSON and the command to standard error.
fn taste(words: &[&OsStr], json: bool) -> Result<()> {
    let flag = json.then_some(OsStr::new("--json"));
    let words: Vec<&OsStr> = words.iter().copied().chain(flag).collect();
    let shown = words.join(OsStr::new(" "));
    output::remark(json, &format!("\n$ arbor {}", shown.display()))?;
    let arbor = Arbor::try_parse_from([OsStr::new("arbor")].iter().chain(&words))
        .context("invariant: the demo's commands are well formed")?;
    match &arbor.command {
        Command::Demo(_) => Ok(()),
        other => crate::run(other),
    }
}

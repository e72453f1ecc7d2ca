//! `arbor witness`: what blocks need of the state before them.

use std::path::Path;

use alloy_primitives::B256;
use anyhow::{Context, Result, bail};
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::{SignatureRules, prepare};
use arbor_chain::replay::{Chain, EarlierBlocks};
use arbor_chain::rules::ChainRules;
use arbor_chain::source::{RawBlock, open_sources};
use arbor_chain::witness::{MadeWitness as Witness, make_witness};
use arbor_state::{Head, Historical};
use serde_json::Value;

use super::witness_files::write_each;
use super::{witness_diff, witness_fetch};
use crate::args::{Witness as Args, WitnessWord};
use crate::block_choice::BlockChoice;
use crate::{database, files, retained};

pub(crate) fn run(args: &Args) -> Result<()> {
    if let Some(WitnessWord::Diff(args)) = &args.word {
        return witness_diff::run(args);
    }
    let Some(block) = args.block else {
        bail!("--block names the block");
    };
    match (&args.rpc, &args.db) {
        (Some(url), None) => witness_fetch::run(args, url, block),
        (Some(_), Some(db)) => bail!(
            "--db {} is of no use with --rpc: a node has the state",
            db.display()
        ),
        (None, Some(db)) => of_database(args, db, block),
        (None, None) => bail!("give --db DIR, the folder of the database, or --rpc URL, a node"),
    }
}

/// Makes witnesses of blocks from the states that a database keeps.
fn of_database(args: &Args, db: &Path, block: BlockChoice) -> Result<()> {
    if crate::rules::asked(&args.rules) != ChainRules::default() {
        bail!("--gas and --evm384 are of no use without --rpc: the database has its rules");
    }
    if let Some(file) = &args.out {
        files::not_of_database("--out", file, Some(db))?;
        if args.to.is_none() {
            let read = args.chain.iter().map(std::path::PathBuf::as_path);
            files::apart([("--out", file.as_path())], read)?;
        }
    }
    let folder = database::folder(db);
    let mut genesis = folder.genesis()?;
    let state = folder.open_to_read(args.memory)?;
    let rules = folder.rules()?.unwrap_or_default();
    rules.set(&mut genesis.spec);
    let state = state.reader();
    let first = block.number(state)?;
    let last = args.to.map_or(Ok(first), |to| to.number(state))?;
    if first == 0 {
        bail!("block 0 is the genesis: nothing comes before it");
    }
    if last < first {
        bail!("--to {last} is before --block {first}");
    }
    for block in [first, last] {
        retained::version_of(state, block - 1)
            .with_context(|| format!("the state before block {block} is needed"))?;
    }
    let before = retained::version_of(state, first - 1)?;
    let earlier = EarlierBlocks::read(state, before, &args.chain)?;
    let mut maker = Maker {
        state,
        parent: None,
        chain: Chain {
            genesis: &genesis,
            earlier: &earlier,
        },
        rules,
        db,
        guarded: args.guarded,
    };
    let mut input = open_sources(&args.chain)?;
    input.skip_to(first)?;
    write_each(args, first..=last, |block| {
        let raw = input.next_raw()?;
        let raw = raw.with_context(|| format!("the chain ends before block {block}"))?;
        maker.make(raw)
    })
}

/// What witnesses are made of.
struct Maker<'a> {
    state: Head<'a>,
    /// That of the block made last.
    parent: Option<Historical<'a>>,
    chain: Chain<'a>,
    rules: ChainRules,
    db: &'a Path,
    /// Whether Verkle witnesses leave no absence in doubt.
    guarded: bool,
}

impl Maker<'_> {
    /// Makes the witness of a block. The block after it costs least next: its parent's state follows from this one's.
    fn make(&mut self, raw: RawBlock) -> Result<Witness> {
        let (state, chain) = (self.state, self.chain);
        let version = retained::version_of(state, raw.header.number - 1)?;
        let parent = match self.parent.take() {
            Some(before) if before.meta().version.0 + 1 == version.0 => before.next()?,
            _ => state.at(version)?,
        };
        let parent = self.parent.insert(parent);
        let block = prepare(raw, SignatureRules::new(&chain.genesis.spec))?;
        let executor = self.rules.executor();
        let mut made = make_witness(parent, chain, &block, executor, self.guarded)?;
        let number = made.witness.number().unwrap_or_default();
        let root = made.witness.complete();
        let root = root.with_context(|| format!("the witness of block {number} is false"))?;
        if let Some(root) = root {
            self.compare(number, root)?;
        }
        let config = match chain.genesis.network() {
            None => Some(config_of(self.db)?),
            Some(_) => None,
        };
        let rules = (self.rules != ChainRules::default()).then_some(self.rules);
        made.witness.set_rules(config, rules);
        Ok(made)
    }

    /// Compares the root after a witness with the one that the database has, if the block is in it.
    fn compare(&self, number: u64, root: B256) -> Result<()> {
        let view = self.state.view();
        let known = view
            .version_of_block(number)?
            .map(|version| view.meta(version))
            .transpose()?
            .flatten();
        match known {
            Some(known) if root != known.root => bail!(
                "the witness of block {number} leads to root {root}, the database has {}",
                B256::from(known.root)
            ),
            _ => Ok(()),
        }
    }
}

/// The chain's configuration, from the genesis that the database keeps.
fn config_of(db: &Path) -> Result<Value> {
    let path = database::folder(db).genesis_path();
    let config = Genesis::read_text(&path).and_then(|text| Genesis::config_of(&text));
    config.with_context(|| format!("reading {}", path.display()))
}

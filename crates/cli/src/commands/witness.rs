//! `arbor witness`: what blocks need of the state before them.

use std::path::Path;

use alloy_primitives::B256;
use anyhow::{Context, Result, bail};
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::{SignatureRules, prepare};
use arbor_chain::replay::{Chain, EarlierBlocks};
use arbor_chain::rules::ChainRules;
use arbor_chain::source::{RawBlock, open_sources};
use arbor_chain::witness::{BlockWitnessSize, MadeWitness as Witness, Named, make_witness};
use arbor_state::{Head, Historical};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::args::Witness as Args;
use crate::{bytes, database, files, output, retained, stop};

pub(crate) fn run(args: &Args) -> Result<()> {
    if let Some(file) = &args.out {
        files::not_of_database("--out", file, Some(&args.database.db))?;
        if args.to.is_none() {
            let read = args.chain.iter().map(std::path::PathBuf::as_path);
            files::apart([("--out", file.as_path())], read)?;
        }
    }
    let (state, mut genesis) = database::open_to_read(&args.database)?;
    let rules = database::folder(&args.database.db)
        .rules()?
        .unwrap_or_default();
    rules.set(&mut genesis.spec);
    let state = state.reader();
    let first = args.block.number(state)?;
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
        db: &args.database.db,
        guarded: args.guarded,
    };
    let mut input = open_sources(&args.chain)?;
    input.skip_to(first)?;
    let mut next = |block: u64| {
        let raw = input.next_raw()?;
        let raw = raw.with_context(|| format!("the chain ends before block {block}"))?;
        maker.make(raw)
    };
    match (args.to, args.out.as_deref()) {
        (Some(_), Some(folder)) => range(first..=last, args, folder, next),
        (_, out) => one(&next(first)?, out, args.json),
    }
}

/// A witness that was written, as `--json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    block: u64,
    file: &'a Path,
    /// The bytes of the file.
    file_bytes: u64,
    #[serde(flatten)]
    size: &'a Size,
    /// The roots before and after the block.
    root_before: Option<B256>,
    root_after: Option<B256>,
}

impl Written<'_> {
    fn print(&self, json: bool) -> Result<()> {
        if json {
            return output::line(&serde_json::to_string(self)?);
        }
        output::line(&format!(
            "block {}: {}; wrote {}, {}",
            self.block,
            self.size.text(),
            self.file.display(),
            bytes::show(self.file_bytes)
        ))
    }
}

/// Writes the witness of a block to standard output or to a file, and says what the file has.
fn one(witness: &Witness, out: Option<&Path>, as_json: bool) -> Result<()> {
    let Some(file) = out.filter(|file| !files::is_output(file)) else {
        return output::line(std::str::from_utf8(&json(witness)?)?);
    };
    let binary = match files::has_extension(file, "ssz") {
        true => witness.witness.to_bytes(),
        false => None,
    };
    let text = binary.map_or_else(|| json(witness), Ok)?;
    let size = Size(witness.size());
    let written = written(witness, file, &size, write(file, &text)?);
    written.print(as_json)?;
    if let (Some(before), Some(after), false) = (written.root_before, written.root_after, as_json) {
        output::line(&format!("root before {before}"))?;
        output::line(&format!("root after  {after}"))?;
    }
    Ok(())
}

fn written<'a>(witness: &Witness, file: &'a Path, size: &'a Size, file_bytes: u64) -> Written<'a> {
    let [root_before, root_after] = witness.witness.roots();
    Written {
        block: number(witness),
        file,
        file_bytes,
        size,
        root_before,
        root_after,
    }
}

/// Writes the witnesses of consecutive blocks into a folder, and tells how large each is, and all.
fn range(
    blocks: std::ops::RangeInclusive<u64>,
    args: &Args,
    folder: &Path,
    mut next: impl FnMut(u64) -> Result<Witness>,
) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    stop::listen();
    let form = args.form;
    let mut sum: Option<Size> = None;
    let (first, mut done) = (*blocks.start(), 0);
    for number in blocks {
        if stop::asked() {
            break;
        }
        done = number;
        let witness = next(number)?;
        let bytes = match form.is_binary() {
            false => json(&witness)?,
            true => witness.witness.to_bytes().with_context(|| {
                let form = form.name();
                format!("--form {form}: the witness of block {number} has no binary form")
            })?,
        };
        let file = folder.join(format!("{number}.{}", form.name()));
        let file_bytes = write(&file, &bytes)?;
        let size = Size(witness.size());
        written(&witness, &file, &size, file_bytes).print(args.json)?;
        match &mut sum {
            Some(sum) => sum.0.add(&size.0),
            None => sum = Some(size),
        }
    }
    match sum {
        Some(sum) if !args.json => {
            output::line(&format!("blocks {first} to {done}: {}", sum.text()))
        }
        _ => Ok(()),
    }
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
        self.compare(number, root)?;
        if let Some(witness) = made.witness.executable_mut() {
            if chain.genesis.network().is_none() {
                witness.config = Some(config_of(self.db)?);
            }
            witness.rules = (self.rules != ChainRules::default()).then_some(self.rules);
        }
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

fn number(witness: &Witness) -> u64 {
    witness.witness.number().unwrap_or_default()
}

fn json(witness: &Witness) -> Result<Vec<u8>> {
    Ok(witness.witness.to_json()?)
}

/// What witnesses have, and their bytes by part.
struct Size(BlockWitnessSize);

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Flat<'a> {
            counts: &'a Named<u64>,
            parts: Named<u64>,
        }
        let counts = &self.0.counts;
        let parts = Named(self.parts().collect());
        Flat { counts, parts }.serialize(to)
    }
}

impl Size {
    /// All parts, those of the state first.
    fn parts(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let parts = self.0.parts.0.iter().chain(&self.0.others.0);
        parts.copied()
    }

    fn text(&self) -> String {
        let listed = |values: &mut dyn Iterator<Item = (&'static str, u64)>, is_counted: bool| {
            let values = values.map(|(name, value)| match is_counted {
                true => format!("{value} {name}"),
                false => format!("{name} {value}"),
            });
            values.collect::<Vec<_>>().join(", ")
        };
        let counts = listed(&mut self.0.counts.0.iter().copied(), true);
        let parts = listed(&mut self.parts(), false);
        format!("{counts}; in bytes: {parts}; in all {}", self.0.bytes())
    }
}

/// Writes a file, gzipped if its name says so; returns the bytes of the file.
fn write(file: &Path, bytes: &[u8]) -> Result<u64> {
    files::write_packed(file, bytes).with_context(|| format!("writing {}", file.display()))
}

/// The chain's configuration, from the genesis that the database keeps.
fn config_of(db: &Path) -> Result<Value> {
    let path = database::folder(db).genesis_path();
    let config = Genesis::read_text(&path).and_then(|text| Genesis::config_of(&text));
    config.with_context(|| format!("reading {}", path.display()))
}

//! `arbor witness` and `arbor verify-witness`.

use std::io::Write;
use std::path::Path;

use alloy_primitives::B256;
use anyhow::{Context, Result, bail};
use arbor_chain::execution_witness::{ExecutionWitness, ExecutionWitnessProblem, Verdict};
use arbor_chain::executor::Executor;
use arbor_chain::genesis::Genesis;
use arbor_chain::replay::{make_execution_witness, make_witness};
use arbor_chain::senders::{RecoveredBlock, SignatureRules, prepare};
use arbor_chain::source::open_sources;
use arbor_chain::witness::{BlockWitness, WitnessFile};
use arbor_state::verkle::{Committer, Verkle};
use arbor_state::{Head, Tree};
use arbor_versions::Version;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::args::{VerifyWitness, Witness};
use crate::rules::Rules;
use crate::{bytes, database, described, output};

/// Bytes for the tables that a proof is checked with: larger ones take longer to make than they save.
pub(super) const TABLE_BYTES: usize = 6_000_000;

pub(crate) fn run(args: &Witness) -> Result<()> {
    let (state, mut genesis) = database::open_to_read(&args.database)?;
    let rules = Rules::stored(&args.database.db)?.unwrap_or_default();
    rules.set(&mut genesis.spec);
    let state = state.reader();
    if args.block == 0 {
        bail!("block 0 is the genesis: nothing comes before it");
    }
    let parent = database::version_of(state, Some(args.block - 1))
        .with_context(|| format!("the state before block {} is needed", args.block))?;
    let mut input = open_sources(&args.chain)?;
    input.skip_to(args.block)?;
    let Some(raw) = input.next_raw()? else {
        bail!("the chain ends before block {}", args.block);
    };
    let block = prepare(raw, SignatureRules::new(&genesis.spec))?;
    match state.tree() {
        Tree::MerklePatricia => {
            let mut witness = make_witness(state, parent, &genesis, &block, rules.executor())?;
            if genesis.network().is_none() {
                witness.config = Some(config_of(&args.database.db)?);
            }
            witness.rules = (rules != Rules::default()).then(|| rules.text());
            write(args, &serde_json::to_vec(&witness)?)
        }
        Tree::Ar16mt(_) => bail!(
            "witnesses are of merkle-patricia and verkle databases; `arbor prove` proves single leaves of this one"
        ),
        Tree::Verkle(verkle) => {
            let block = (&genesis, &block, rules.executor());
            verkle_witness(args, verkle, (state, parent), block)
        }
    }
}

/// Writes a Verkle witness, once it has been checked.
fn verkle_witness(
    args: &Witness,
    verkle: &Verkle,
    (state, parent): (Head<'_>, Version),
    (genesis, block, executor): (&Genesis, &RecoveredBlock, Executor),
) -> Result<()> {
    let binary = named(args.out.as_deref(), "ssz");
    let (mut witness, chunks) = make_execution_witness(state, parent, genesis, block, executor)?;
    match witness.check(verkle.stems().committer())? {
        Verdict::Holds { root_after } => witness.root_after = Some(root_after),
        verdict => bail!("the witness of block {} is false: {verdict:?}", args.block),
    }
    let view = state.view();
    let known = view
        .version_of_block(args.block)?
        .map(|version| view.meta(version))
        .transpose()?
        .flatten();
    if let (Some(known), Some(root)) = (known, witness.root_after)
        && root != known.root
    {
        bail!(
            "the witness of block {} leads to root {root}, the database has {}",
            args.block,
            B256::from(known.root)
        );
    }
    if binary {
        write(args, &witness.witness.to_bytes())?;
    } else {
        write(args, &serde_json::to_vec(&witness.to_json()?)?)?;
    }
    if args.out.is_some() {
        output::line(&made(&witness, chunks))?;
    }
    Ok(())
}

/// The parts of a witness that was made.
fn made(witness: &ExecutionWitness, chunks: usize) -> String {
    let sizes = witness.witness.sizes();
    let root = |root: Option<B256>| root.unwrap_or_default();
    format!(
        "block {}: {} keys under {} stems, {chunks} of them chunks of code read; in bytes: stems {}, suffixes {}, values before {}, after {}, ways {}, \
         commitments {}, multiproof {}, offsets {}\nroot before {}\nroot after  {}",
        witness.number.unwrap_or_default(),
        witness.witness.keys().count(),
        witness.witness.state_diff.len(),
        sizes.stems,
        sizes.suffixes,
        sizes.current,
        sizes.new,
        sizes.ways,
        sizes.commitments,
        sizes.multiproof,
        sizes.offsets,
        root(witness.root_before),
        root(witness.root_after),
    )
}

/// Whether a file has this extension, below .gz or not.
fn named(file: Option<&Path>, extension: &str) -> bool {
    let Some(file) = file else { return false };
    let inner = match is_packed(file) {
        true => file.with_extension(""),
        false => file.to_owned(),
    };
    inner.extension().is_some_and(|found| found == extension)
}

fn is_packed(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "gz")
}

/// Writes a witness where it is wanted.
fn write(args: &Witness, bytes: &[u8]) -> Result<()> {
    let Some(file) = &args.out else {
        return output::line(std::str::from_utf8(bytes).context("a witness in JSON")?);
    };
    let written = if is_packed(file) {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(bytes)?;
        std::fs::write(file, packed.finish()?)
    } else {
        std::fs::write(file, bytes)
    };
    written.with_context(|| format!("writing {}", file.display()))
}

/// The chain's configuration, from the genesis that the database keeps.
fn config_of(db: &Path) -> Result<Value> {
    let path = database::genesis_path(db);
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let mut genesis: Value =
        serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
    let mut config = genesis["config"].take();
    // JSON numbers beyond 64 bits are not kept whole here. A total difficulty that no chain reaches says the same as none.
    if config["terminalTotalDifficulty"].is_f64()
        && let Some(fields) = config.as_object_mut()
    {
        fields.remove("terminalTotalDifficulty");
    }
    Ok(config)
}

/// What was checked, and what of it is bad.
#[derive(Default)]
struct Checked {
    all: usize,
    bad: Vec<anyhow::Error>,
}

impl Checked {
    /// Prints what a witness shows, or keeps what is wrong with it.
    fn add(&mut self, found: Result<String>) -> Result<()> {
        self.all += 1;
        match found {
            Ok(found) => output::line(&found),
            Err(error) => {
                self.bad.push(error);
                Ok(())
            }
        }
    }

    /// Tells of all that is bad, a line each.
    fn finish(mut self) -> Result<()> {
        match (self.bad.len(), self.all) {
            (0, _) => Ok(()),
            (_, 1) => Err(self.bad.remove(0)),
            (bad, all) => {
                for error in &self.bad {
                    eprintln!("error: {}", described(error));
                }
                bail!("{bad} of {all} witnesses are malformed or do not hold")
            }
        }
    }
}

/// One that is bad does not keep the others from being looked at.
pub(crate) fn verify(args: &VerifyWitness) -> Result<()> {
    let mut checked = Checked::default();
    let mut committer = None;
    for file in &args.files {
        match WitnessFile::from_file(file) {
            Err(error) => checked.add(Err(error.into()))?,
            Ok(WitnessFile::MerklePatricia(witness)) => {
                checked.add(verify_nodes(args, file, &witness))?;
            }
            Ok(WitnessFile::Verkle(witnesses)) => {
                let committer = committer.get_or_insert_with(|| Committer::within(TABLE_BYTES));
                for (name, witness) in witnesses {
                    let name = name.map_or(String::new(), |name| format!(", {name}"));
                    let name = format!("{}{name}", file.display());
                    let found = witness.map_err(anyhow::Error::from);
                    let found = found.and_then(|witness| verify_leaves(args, committer, witness));
                    let found = found.map(|found| format!("{name}: {found}"));
                    checked.add(found.with_context(|| name.clone()))?;
                }
            }
        }
    }
    checked.finish()
}

fn verify_nodes(args: &VerifyWitness, file: &Path, witness: &BlockWitness) -> Result<String> {
    if args.root.is_some() || args.root_after.is_some() {
        bail!(
            "{}: --root and --root-after are for witnesses of Verkle trees, which may lack them; this one has its own",
            file.display()
        );
    }
    let reach = witness
        .check()
        .with_context(|| format!("{}", file.display()))?;
    Ok(format!(
        "{}: block {}: state root {} leads to {} nodes and {} codes; {} nodes and {} codes beside them",
        file.display(),
        witness.number,
        witness.pre_state_root,
        reach.nodes,
        reach.codes,
        reach.other_nodes,
        reach.other_codes,
    ))
}

/// Checks a witness of a Verkle tree; says what it shows.
fn verify_leaves(
    args: &VerifyWitness,
    committer: &Committer,
    mut witness: ExecutionWitness,
) -> Result<String> {
    for (given, own, flag) in [
        (args.root, &mut witness.root_before, "--root"),
        (args.root_after, &mut witness.root_after, "--root-after"),
    ] {
        if let (Some(given), Some(own)) = (given, &*own)
            && given != *own
        {
            bail!("{flag} is {given}, but the witness has {own}");
        }
        *own = own.or(given);
    }
    let verdict = match witness.check(committer) {
        Err(error @ ExecutionWitnessProblem::Root { .. }) if args.root == witness.root_before => {
            return Err(error).context("--root");
        }
        verdict => verdict?,
    };
    let before = witness.root_before.unwrap_or_default();
    let keys = witness.witness.keys().count();
    let changes = witness
        .witness
        .keys()
        .filter(|(_, diff)| diff.new.is_some());
    let changes = changes.count();
    let block = match witness.number {
        Some(number) => format!("block {number}: "),
        None => String::new(),
    };
    match verdict {
        Verdict::Holds { root_after } => Ok(format!(
            "{block}{keys} keys under {} stems hold at root {before}; {changes} new values lead to root {root_after}{}, {}",
            witness.witness.state_diff.len(),
            match witness.root_after {
                Some(_) => ", which is the block's",
                None => " (no root is given that it should be)",
            },
            bytes::show(witness.witness.to_bytes().len() as u64),
        )),
        Verdict::FalseProof => bail!("{block}false proof against root {before}"),
        Verdict::OtherRoot { expected, actual } => bail!(
            "{block}{keys} keys hold at root {before}, but {changes} new values lead to root {actual}, and the block has {expected}"
        ),
    }
}

//! `arbor verify-witness`.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result, bail};
use arbor_chain::execution_witness::{ExecutionWitness, ExecutionWitnessProblem, Verdict};
use arbor_chain::json::Shown;
use arbor_chain::witness::{BlockWitness, FoundWitness, NamedWitness, read_witnesses};
use arbor_verify::verkle::{Committer, committer};

use crate::args::VerifyWitness;
use crate::{bytes, described, output};

/// What was checked, and what of it is bad.
#[derive(Default)]
struct Checked {
    /// Witnesses.
    all: u64,
    bad: u64,
    /// Files that could not be read, or not to their end.
    unread: u64,
    /// Whether there may be but one.
    alone: bool,
    /// What is wrong with the first, until there is a second: alone it is the command's own error.
    first: Option<anyhow::Error>,
}

impl Checked {
    /// Prints what a witness shows, or what is wrong with it.
    fn add(&mut self, found: Result<String>) -> Result<()> {
        self.all += 1;
        match found {
            Ok(found) => {
                self.tell_first();
                output::line(&found)
            }
            Err(error) => {
                self.bad += 1;
                self.hear(error);
                Ok(())
            }
        }
    }

    /// Takes a file that cannot be read, or not to its end.
    fn add_unread(&mut self, error: anyhow::Error) {
        self.unread += 1;
        self.hear(error);
    }

    fn tell_first(&mut self) {
        if let Some(error) = self.first.take() {
            tell(&error);
        }
    }

    fn hear(&mut self, error: anyhow::Error) {
        self.tell_first();
        match self.alone && self.all + self.unread == 1 {
            true => self.first = Some(error),
            false => tell(&error),
        }
    }

    fn finish(self) -> Result<()> {
        if let Some(error) = self.first {
            return Err(error);
        }
        let witnesses = (self.bad > 0).then(|| {
            let Self { all, bad, .. } = self;
            format!("{bad} of {all} witnesses are malformed or do not hold")
        });
        let files = match self.unread {
            0 => None,
            1 => Some("1 file is no witness or could not be read to its end".to_owned()),
            files => Some(format!(
                "{files} files are no witnesses or could not be read to their ends"
            )),
        };
        match [witnesses, files].into_iter().flatten().collect::<Vec<_>>() {
            none if none.is_empty() => Ok(()),
            said => bail!("{}", said.join(", and ")),
        }
    }
}

fn tell(error: &anyhow::Error) {
    output::tell(&format!("error: {}", described(error)));
}

/// One that is bad does not keep the others from being looked at.
pub(crate) fn run(args: &VerifyWitness) -> Result<()> {
    let mut checked = Checked {
        alone: args.files.len() == 1,
        ..Checked::default()
    };
    for file in &args.files {
        let mut told = Ok(());
        let read = read_witnesses(file, &mut |found| {
            let shown = match found {
                FoundWitness::MerklePatricia(witness) => verify_nodes(args, file, &witness),
                FoundWitness::Verkle(named) => verify_named(args, file, committer(), named),
            };
            told = checked.add(shown);
            match told {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        told?;
        if let Err(error) = read {
            checked.add_unread(error.into());
        }
    }
    checked.finish()
}

/// Checks a witness of a Verkle tree under its name.
fn verify_named(
    args: &VerifyWitness,
    file: &Path,
    committer: &Committer,
    (name, witness): NamedWitness,
) -> Result<String> {
    let name = name.map_or(String::new(), |name| format!(", {}", Shown(name)));
    let name = format!("{}{name}", file.display());
    let found = witness.map_err(anyhow::Error::from);
    let found = found.and_then(|witness| verify_leaves(args, committer, *witness));
    let found = found.with_context(|| name.clone())?;
    Ok(format!("{name}: {found}"))
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
    let whose = match witness.root_after {
        Some(_) => "which is the block's",
        None => "which is that of --root-after",
    };
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
        Verdict::Holds { doubtful, .. } if args.guarded && doubtful > 0 => bail!(
            "{block}{keys} keys hold at root {before}, but of {doubtful} stems nothing shows that they are absent: their ways end below nodes that may be leaves"
        ),
        Verdict::Holds {
            root_after,
            doubtful,
        } => Ok(format!(
            "{block}{keys} keys under {} stems hold at root {before}{}; {changes} new values lead to root {root_after}{}, {}",
            witness.witness.state_diff.len(),
            match doubtful {
                0 => String::new(),
                stems => format!(", {stems} of them absent if the proof was made honestly"),
            },
            match witness.root_after {
                Some(_) => format!(", {whose}"),
                None => " (no root is given that it should be)".to_owned(),
            },
            bytes::show(witness.witness.sizes().total() as u64),
        )),
        Verdict::FalseProof => bail!("{block}false proof against root {before}"),
        Verdict::OtherRoot { expected, actual } => bail!(
            "{block}{keys} keys hold at root {before}, but {changes} new values lead to root {actual}, and the block has {expected}"
        ),
    }
}

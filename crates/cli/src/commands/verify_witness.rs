//! `arbor verify-witness`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use alloy_primitives::B256;
use anyhow::{Context, Result, bail};
use arbor_chain::json::Shown;
use arbor_chain::witness::verkle::{Verdict, VerkleWitness, VerkleWitnessProblem};
use arbor_chain::witness::{FoundWitness, MptWitness, NamedWitness, read_witnesses};
use arbor_verify::verkle::{Committer, committer};
use serde::Serialize;

use crate::args::VerifyWitness;
use crate::{bytes, described, output};

/// A witness that holds, as `--json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Holding {
    file: PathBuf,
    /// The name of the witness within a file of several.
    name: Option<String>,
    holds: bool,
    block: Option<u64>,
    #[serde(flatten)]
    found: Found,
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Found {
    /// A witness of nodes.
    Nodes {
        state_root: B256,
        nodes: usize,
        codes: usize,
        /// Nodes and codes that nothing leads to.
        other_nodes: usize,
        other_codes: usize,
    },
    /// A witness of leaves.
    Leaves {
        root_before: B256,
        root_after: B256,
        /// Whose root the root after the block was compared with.
        compared_with: Option<Compared>,
        keys: usize,
        stems: usize,
        /// Stems whose absence is shown only if the proof was made honestly.
        doubtful_stems: usize,
        new_values: usize,
        bytes: usize,
    },
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
enum Compared {
    Block,
    RootAfter,
}

impl Holding {
    fn text(&self) -> String {
        let name = self.name.as_ref();
        let name = name.map_or(String::new(), |name| format!(", {name}"));
        let block = match self.block {
            Some(number) => format!("block {number}: "),
            None => String::new(),
        };
        let file = self.file.display();
        match &self.found {
            Found::Nodes {
                state_root,
                nodes,
                codes,
                other_nodes,
                other_codes,
            } => format!(
                "{file}{name}: {block}state root {state_root} leads to {nodes} nodes and {codes} codes; the file has {other_nodes} other nodes and {other_codes} other codes"
            ),
            Found::Leaves {
                root_before,
                root_after,
                compared_with,
                keys,
                stems,
                doubtful_stems,
                new_values,
                bytes,
            } => format!(
                "{file}{name}: {block}{keys} keys under {stems} stems hold at root {root_before}{}; {new_values} new values lead to root {root_after}{}, {}",
                match doubtful_stems {
                    0 => String::new(),
                    stems => format!(", {stems} of them absent if the proof was made honestly"),
                },
                match compared_with {
                    Some(Compared::Block) => ", which is the block's",
                    Some(Compared::RootAfter) => ", which is that of --root-after",
                    None => " (no root is given that it should be)",
                },
                bytes::show(*bytes as u64),
            ),
        }
    }
}

/// A witness that does not hold, as `--json` prints it.
#[derive(Serialize)]
struct Bad<'a> {
    file: &'a Path,
    holds: bool,
    error: String,
}

impl<'a> Bad<'a> {
    fn new(file: &'a Path, error: &anyhow::Error) -> Self {
        Self {
            file,
            holds: false,
            error: described(error),
        }
    }
}

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
    /// Whether results are printed as JSON.
    json: bool,
    /// What is wrong with the first, until there is a second: alone it is the command's own error.
    first: Option<anyhow::Error>,
}

impl Checked {
    /// Prints what a witness shows, or what is wrong with it.
    fn add(&mut self, file: &Path, found: Result<Holding>) -> Result<()> {
        self.all += 1;
        match found {
            Ok(found) if self.json => {
                self.tell_first();
                output::line(&serde_json::to_string(&found)?)
            }
            Ok(found) => {
                self.tell_first();
                output::line(&found.text())
            }
            Err(error) => {
                self.bad += 1;
                let printed = match self.json {
                    true => output::line(&serde_json::to_string(&Bad::new(file, &error))?),
                    false => Ok(()),
                };
                self.hear(error);
                printed
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
        json: args.json,
        ..Checked::default()
    };
    for file in &args.files {
        let mut told = Ok(());
        let read = read_witnesses(file, &mut |found| {
            let shown = match found {
                FoundWitness::MerklePatricia(witness) => verify_nodes(args, file, &witness),
                FoundWitness::Verkle(named) => verify_named(args, file, committer(), named),
            };
            told = checked.add(file, shown);
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
) -> Result<Holding> {
    let name = name.map(|name| Shown(name).to_string());
    let found = witness.map_err(anyhow::Error::from);
    let found = found.and_then(|witness| {
        let block = witness.number;
        Ok((block, verify_leaves(args, committer, *witness)?))
    });
    let (block, found) = found.with_context(|| match &name {
        Some(name) => format!("{}, {name}", file.display()),
        None => file.display().to_string(),
    })?;
    Ok(Holding {
        file: file.to_owned(),
        name,
        holds: true,
        block,
        found,
    })
}

fn verify_nodes(args: &VerifyWitness, file: &Path, witness: &MptWitness) -> Result<Holding> {
    if args.root.is_some() || args.root_after.is_some() {
        bail!(
            "{}: --root and --root-after are for witnesses of Verkle trees, which may lack them; this one has its own",
            file.display()
        );
    }
    let reach = witness
        .check()
        .with_context(|| format!("{}", file.display()))?;
    Ok(Holding {
        file: file.to_owned(),
        name: None,
        holds: true,
        block: Some(witness.number),
        found: Found::Nodes {
            state_root: witness.pre_state_root,
            nodes: reach.nodes,
            codes: reach.codes,
            other_nodes: reach.other_nodes,
            other_codes: reach.other_codes,
        },
    })
}

/// Checks a witness of a Verkle tree; says what it shows.
fn verify_leaves(
    args: &VerifyWitness,
    committer: &Committer,
    mut witness: VerkleWitness,
) -> Result<Found> {
    let whose = match witness.root_after {
        Some(_) => Compared::Block,
        None => Compared::RootAfter,
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
        Err(error @ VerkleWitnessProblem::Root { .. }) if args.root == witness.root_before => {
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
        } => Ok(Found::Leaves {
            root_before: before,
            root_after,
            compared_with: witness.root_after.map(|_| whose),
            keys,
            stems: witness.witness.state_diff.len(),
            doubtful_stems: doubtful,
            new_values: changes,
            bytes: witness.witness.sizes().total(),
        }),
        Verdict::FalseProof => bail!("{block}false proof against root {before}"),
        Verdict::OtherRoot { expected, actual } => bail!(
            "{block}{keys} keys hold at root {before}, but {changes} new values lead to root {actual}, and the block has {expected}"
        ),
    }
}

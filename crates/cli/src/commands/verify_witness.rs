//! `arbor verify-witness`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use arbor_chain::json::Shown;
use arbor_chain::witness::{Checked, FoundWitness, Given, Named, read_witnesses};
use serde::Serialize;
use serde_json::Value;

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
    found: Named<Value>,
    #[serde(skip)]
    text: String,
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
struct Tally {
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

impl Tally {
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
                output::line(&found.text)
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
    let mut checked = Tally {
        alone: args.files.len() == 1,
        json: args.json,
        ..Tally::default()
    };
    for file in &args.files {
        let mut told = Ok(());
        let read = read_witnesses(file, &mut |found| {
            let shown = verify(args, file, found);
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

/// Checks a witness under its name.
fn verify(args: &VerifyWitness, file: &Path, found: FoundWitness) -> Result<Holding> {
    let name = found.name.map(|name| Shown(name).to_string());
    let place = match &name {
        Some(name) => format!("{}, {name}", file.display()),
        None => file.display().to_string(),
    };
    let given = Given {
        root: args.root,
        root_after: args.root_after,
        guarded: args.guarded,
    };
    let mut witness = found.witness.with_context(|| place.clone())?;
    let block = witness.number();
    let number = block.map_or(String::new(), |number| format!("block {number}: "));
    let checked = witness.check(given).map_err(anyhow::Error::from);
    let checked = checked.map_err(|error| anyhow!("{number}{}", described(&error)));
    let Checked {
        text,
        fields,
        bytes,
    } = checked.with_context(|| place.clone())?;
    let size = bytes.map_or(String::new(), |bytes| format!(", {}", bytes::show(bytes)));
    Ok(Holding {
        file: file.to_owned(),
        name,
        holds: true,
        block,
        found: fields,
        text: format!("{place}: {number}{text}{size}"),
    })
}

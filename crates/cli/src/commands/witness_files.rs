//! Files of witnesses: names, forms and sizes.

use std::ops::RangeInclusive;
use std::path::Path;

use alloy_primitives::B256;
use anyhow::{Context, Result};
use arbor_chain::witness::{BlockWitnessSize, MadeWitness as Witness, Named};
use serde::{Serialize, Serializer};

use crate::args::Witness as Args;
use crate::{bytes, files, output, stop};

/// Writes the witness of the first block, or with `--to` those of all.
pub(super) fn write_each(
    args: &Args,
    blocks: RangeInclusive<u64>,
    mut next: impl FnMut(u64) -> Result<Witness>,
) -> Result<()> {
    match (args.to, args.out.as_deref()) {
        (Some(_), Some(folder)) => range(blocks, args, folder, next),
        (_, out) => one(&next(*blocks.start())?, out, args.json),
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
    blocks: RangeInclusive<u64>,
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

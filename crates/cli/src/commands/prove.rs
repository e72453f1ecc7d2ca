//! `arbor prove`.

use std::path::Path;

use anyhow::{Context, Result, bail};
use arbor_state::{AccountSlots, Historical, LeavesThen};
use arbor_verify::Proof;

use crate::args::Prove;
use crate::{bytes, database, files, output};

pub(crate) fn run(args: &Prove) -> Result<()> {
    let written = [("--out", &args.out), ("--storage-logs", &args.storage_logs)];
    for (flag, file) in written {
        if let Some(file) = file {
            files::not_of_database(flag, file, Some(&args.database.db))?;
            // A proof may take long.
            files::check(file).with_context(|| format!("{flag} {}", file.display()))?;
        }
    }
    let state = database::look(&args.database)?;
    let state = state.reader();
    let then = state.at(args.at.version(state)?)?;
    let out = args.out.as_deref();
    if let Some(file) = &args.storage_logs {
        return write_logs(&leaves(&then, "--storage-logs")?, &then, (file, args.json));
    }
    let proof = if let Some((from, to)) = args.range {
        leaves(&then, "--range")?.prove_range(from, to)?
    } else {
        let address = args.address.context("which account is to be proven?")?;
        let slots = args.slots.clone();
        if args.together || !args.also.is_empty() {
            let mut accounts = vec![AccountSlots { address, slots }];
            accounts.extend_from_slice(&args.also);
            then.prove_together(&accounts)?
        } else {
            then.prove(address, &slots)?
        }
    };
    put(out, &*proof)
}

/// The leaves of a version by their keys, which a flag asks for.
fn leaves<'a>(then: &'a Historical<'_>, flag: &str) -> Result<LeavesThen<'a>> {
    then.leaves().with_context(|| {
        let tree = then.tree().kind().name;
        format!("{flag} is for trees with leaves by key alone, which {tree} is not")
    })
}

/// Writes what a version changes in the form of zkSync's prover.
fn write_logs(
    leaves: &LeavesThen<'_>,
    then: &Historical<'_>,
    (file, json): (&Path, bool),
) -> Result<()> {
    let logs = leaves.storage_logs()?;
    let written = write(file, &logs.bytes)?;
    let said = format!(
        "wrote {} logs of block {} in {}, the next index before it {}",
        logs.count,
        then.meta().block_number,
        bytes::show(written),
        logs.next_index
    );
    // Behind them it would be a part of them.
    match (files::is_output(file), json) {
        (true, _) => output::tell(&said),
        (false, false) => output::line(&said)?,
        (false, true) => output::json(&serde_json::json!({
            "file": file,
            "fileBytes": written,
            "block": then.meta().block_number,
            "logs": logs.count,
            "nextIndexBefore": logs.next_index,
        }))?,
    }
    Ok(())
}

/// Prints a proof as JSON, or writes it to a file, which is gzipped if its name ends in .gz.
fn put(out: Option<&Path>, proof: &dyn Proof) -> Result<()> {
    let Some(file) = out else {
        return output::print(&mut |out| proof.write_json(out, true));
    };
    let bytes = match files::has_extension(file, "ssz") {
        true => match proof.to_bytes() {
            Some(bytes) => write(file, &bytes)?,
            None => bail!(
                "proofs of the form {} have no binary form: --out with another extension than .ssz",
                proof.form().name
            ),
        },
        false => files::write_packed_by(file, &mut |out| Ok(proof.write_json(out, false)?))
            .with_context(|| format!("writing {}", file.display()))?,
    };
    if !files::is_output(file) {
        output::tell(&format!(
            "wrote {}, {}: a proof of the form {}",
            file.display(),
            bytes::show(bytes),
            proof.form().name
        ));
    }
    Ok(())
}

fn write(file: &Path, bytes: &[u8]) -> Result<u64> {
    files::write_packed(file, bytes).with_context(|| format!("writing {}", file.display()))
}

//! Standard output and input: a reader that went away is not an error.

use std::io::{BufWriter, ErrorKind, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Serialize;

/// Prints a line to standard error. Where that cannot be written (nobody reads it, a disk is full) nothing else changes: `eprintln!` panics.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints a line.
pub(crate) fn line(text: &str) -> Result<()> {
    match writeln!(std::io::stdout().lock(), "{text}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("writing to standard output"),
    }
}

/// Turns the end of the reader of standard output, as of `head`, into the end of the command.
pub(crate) fn until_the_reader_leaves(result: Result<()>) -> Result<()> {
    let left = |error: &anyhow::Error| {
        let mut causes = error.chain();
        causes.any(|cause| match cause.downcast_ref::<std::io::Error>() {
            Some(error) => error.kind() == ErrorKind::BrokenPipe,
            None => cause
                .downcast_ref::<serde_json::Error>()
                .is_some_and(|error| error.io_error_kind() == Some(ErrorKind::BrokenPipe)),
        })
    };
    match result {
        Err(error) if left(&error) => Ok(()),
        other => other,
    }
}

/// Prints a value as indented JSON, as it is written: its text may be larger than the value.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = serde_json::to_writer_pretty(&mut out, value).map_err(std::io::Error::from);
    match written
        .and_then(|()| writeln!(out))
        .and_then(|()| out.flush())
    {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("writing to standard output"),
    }
}

/// Bytes of a file that is read whole.
pub(crate) const LONGEST_INPUT: u64 = 1 << 30;

/// Reads a file, or standard input for `-`.
///
/// # Errors
/// More than a gigabyte, which no proof has.
pub(crate) fn read_input(path: &Path) -> Result<Vec<u8>> {
    read_within(path, LONGEST_INPUT)
}

/// As [`read_input`], for what has so many bytes at most.
pub(crate) fn read_within(path: &Path, most: u64) -> Result<Vec<u8>> {
    let reading = || match path == Path::new("-") {
        true => "reading standard input".to_owned(),
        false => format!("reading {}", path.display()),
    };
    let input: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(std::fs::File::open(path).with_context(reading)?),
    };
    let mut bytes = Vec::new();
    let mut input = input.take(most + 1);
    input.read_to_end(&mut bytes).with_context(reading)?;
    if bytes.len() as u64 > most {
        bail!(
            "{}: it has more than {most} bytes, which is more than is read",
            reading()
        );
    }
    Ok(bytes)
}

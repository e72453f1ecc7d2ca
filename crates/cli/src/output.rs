//! Standard output: a reader that went away is not an error.

use std::io::{BufWriter, ErrorKind, Write};

use anyhow::{Context, Result};
use arbor_metrics::Table;
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

/// Prints a line about what is done: to standard error if standard output has JSON alone.
pub(crate) fn remark(json: bool, text: &str) -> Result<()> {
    match json {
        true => {
            tell(text);
            Ok(())
        }
        false => line(text),
    }
}

/// Writes a number with its noun, in the plural unless there is one.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// Prints a table in lines that fit the terminal.
pub(crate) fn table(table: &Table) -> Result<()> {
    line(table.text(width()).trim_end())
}

/// Breaks the lines of a text between words, so that they fit the terminal.
pub(crate) fn wrapped(text: &str) -> String {
    match width() {
        None => text.to_owned(),
        Some(width) => broken(text, width),
    }
}

/// Breaks lines between words where they would be longer than a width.
fn broken(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut open = String::new();
        for word in line.split(' ') {
            let length = open.chars().count() + 1 + word.chars().count();
            if !open.is_empty() && length > width {
                lines.push(std::mem::take(&mut open));
            }
            if !open.is_empty() {
                open.push(' ');
            }
            open += word;
        }
        lines.push(open);
    }
    lines.join("\n")
}

/// Prints a line of a table whose rows come one after another and whose groups of columns are parted by `|`: of the
/// groups, as many as the terminal has room for.
pub(crate) fn table_line(text: &str) -> Result<()> {
    line(fitting(text, width()))
}

/// Returns the characters in a line of the terminal: of standard output, unless the environment's `COLUMNS` has a number.
/// `None` if neither is known, for example if the output goes to a file.
fn width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok();
    let columns = columns.and_then(|columns| columns.parse().ok());
    columns.filter(|columns| *columns > 0).or_else(|| {
        let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
        Some(width.0.into())
    })
}

/// Cuts a line of a table behind the last group of columns that fits, but never the first group.
fn fitting(text: &str, width: Option<usize>) -> &str {
    let Some(width) = width.filter(|width| *width < text.chars().count()) else {
        return text;
    };
    let ends = text
        .match_indices('|')
        .map(|(end, _)| text[..end].trim_end());
    let mut kept = text;
    for (place, group) in ends.enumerate() {
        if place == 0 || group.chars().count() <= width {
            kept = group;
        }
    }
    kept
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
    print(&mut |out| serde_json::to_writer_pretty(out, value))
}

/// Prints what writes itself as JSON to standard output.
pub(crate) fn print(write: &mut dyn FnMut(&mut dyn Write) -> serde_json::Result<()>) -> Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = write(&mut out).map_err(std::io::Error::from);
    match written
        .and_then(|()| writeln!(out))
        .and_then(|()| out.flush())
    {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("writing to standard output"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The legend of a load test had lines of 213 characters on a terminal with 60 columns.
    #[test]
    fn long_lines_break_between_words() {
        let text = "one two three\nfour";
        assert_eq!(broken(text, 80), text);
        assert_eq!(broken(text, 9), "one two\nthree\nfour");
        assert_eq!(broken(text, 2), "one\ntwo\nthree\nfour");
    }

    #[test]
    fn tables_lose_whole_groups_of_columns() {
        let row = "     1   0.1s | 20   30 |   400";
        assert_eq!(fitting(row, None), row);
        assert_eq!(fitting(row, Some(80)), row);
        assert_eq!(fitting(row, Some(row.len())), row);
        assert_eq!(fitting(row, Some(row.len() - 1)), "     1   0.1s | 20   30");
        assert_eq!(fitting(row, Some(20)), "     1   0.1s");
        assert_eq!(fitting(row, Some(3)), "     1   0.1s");
        assert_eq!(fitting("no groups", Some(3)), "no groups");
    }
}

//! `arbor man`: the man pages.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap::builder::Resettable;
use clap_mangen::Man as Page;

use crate::args::{Arbor, Man};
use crate::output;

pub(crate) fn run(args: &Man) -> Result<()> {
    let out = args.out.as_path();
    fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))?;
    // The lines below the version would break the page's title.
    let mut arbor = Arbor::command().version(env!("CARGO_PKG_VERSION"));
    arbor = arbor.disable_help_subcommand(true);
    arbor.build();
    let pages = write_pages(arbor, out)?;
    output::line(&format!(
        "{} has {pages} man pages; `man -l {}` shows the first",
        out.display(),
        out.join("arbor.1").display()
    ))
}

/// Writes the pages of a command and of all commands below it; returns their number.
fn write_pages(command: clap::Command, out: &Path) -> Result<usize> {
    let mut pages = 1;
    let below: Vec<_> = command.get_subcommands().cloned().collect();
    for command in below.into_iter().filter(|command| !command.is_hide_set()) {
        pages += write_pages(command, out)?;
    }
    let path = out.join(Page::new(command.clone()).get_filename());
    let written = File::create(&path).and_then(|file| {
        let mut file = BufWriter::new(file);
        render(command, &mut file)?;
        file.flush()
    });
    written.with_context(|| format!("writing {}", path.display()))?;
    Ok(pages)
}

/// Renders a page. The text below the flags becomes sections: the library would fill its lines, and break examples.
fn render(command: clap::Command, out: &mut dyn Write) -> io::Result<()> {
    let closing = command.get_after_help().map(ToString::to_string);
    let page = Page::new(command.after_help(Resettable::Reset));
    page.render(out)?;
    out.write_all(sections(&closing.unwrap_or_default()).as_bytes())
}

/// Makes sections of a text. A part whose first line ends with a colon has that line as its heading, and its lines are
/// kept as they are. Other parts are notes.
fn sections(text: &str) -> String {
    let (mut roff, mut has_notes) = (String::new(), false);
    for part in text.split("\n\n").filter(|part| !part.trim().is_empty()) {
        let (first, rest) = part.split_once('\n').unwrap_or((part, ""));
        match first.strip_suffix(':').filter(|_| !rest.is_empty()) {
            Some(heading) => {
                let heading = match heading {
                    "Example" => "EXAMPLES".to_owned(),
                    heading => heading.to_uppercase(),
                };
                roff += &format!(".SH {}\n.nf\n{}.fi\n", escaped(&heading), lines(rest));
                has_notes = false;
            }
            None if has_notes => roff += &format!(".PP\n{}", lines(part)),
            None => {
                roff += &format!(".SH NOTES\n{}", lines(part));
                has_notes = true;
            }
        }
    }
    roff
}

/// The lines of a text, escaped, each with its end.
fn lines(text: &str) -> String {
    text.lines().map(|line| escaped(line) + "\n").collect()
}

/// Escapes a line for roff: no letter is a command, and hyphens stay what a shell takes.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples stood under EXTRA, all in one paragraph.
    #[test]
    fn examples_have_a_section_and_keep_their_lines() {
        let text = "One sentence.\n\nExamples:\n  arbor get --db db\n  arbor 'x'\n\nExit codes:\n   0  done";
        assert_eq!(
            sections(text),
            ".SH NOTES\nOne sentence.\n.SH EXAMPLES\n.nf\n  arbor get \\-\\-db db\n  arbor 'x'\n.fi\n\
             .SH EXIT CODES\n.nf\n   0  done\n.fi\n"
        );
        assert_eq!(sections(""), "");
        assert_eq!(lines(".x\n'y\\"), "\\&.x\n\\&'y\\e\n");
    }

    #[test]
    fn every_page_ends_with_its_examples() {
        let mut arbor = Arbor::command();
        arbor.build();
        for command in arbor.get_subcommands().filter(|c| c.get_name() != "help") {
            let mut page = Vec::new();
            render(command.clone(), &mut page).expect("rendered");
            let page = String::from_utf8(page).expect("text");
            let name = command.get_name();
            assert!(
                page.contains(".SH EXAMPLES\n.nf\n  arbor "),
                "{name}: {page}"
            );
            assert!(!page.contains("EXTRA"), "{name}");
        }
    }
}

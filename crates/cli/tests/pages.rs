//! The pages agree with the program and with each other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository's folder")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// All Markdown pages for readers: those of the repository's folder and of docs/.
fn all_pages() -> Vec<PathBuf> {
    let root = root();
    let mut found = Vec::new();
    pages(&root.join("docs"), &mut found);
    let top = ["README", "ARCHITECTURE", "CONTRIBUTING", "SECURITY"];
    found.extend(top.map(|name| root.join(name).with_extension("md")));
    found
}

/// The targets of a page's links, without those of other sites.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    targets.filter(|target| !target.contains("://") && !target.contains(' '))
}

/// The anchors of a page's headings, as hosts and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut broken = Vec::new();
    for page in all_pages() {
        let text = read(&page);
        let folder = page.parent().expect("a page is in a folder");
        for link in links(&text) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                page.clone()
            } else {
                folder.join(file)
            };
            let heads = |target: &Path| {
                let is_page = target
                    .extension()
                    .is_some_and(|extension| extension == "md");
                anchor.is_empty() || !is_page || anchors(&read(target)).contains(anchor)
            };
            if !target.exists() || !heads(&target) {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

#[test]
fn the_summary_has_every_page() {
    let docs = root().join("docs");
    let summary = read(&docs.join("SUMMARY.md"));
    let listed: BTreeSet<PathBuf> = links(&summary).map(|link| docs.join(link)).collect();
    let mut found = Vec::new();
    pages(&docs, &mut found);
    let notebook = docs.join("notebook");
    let missing: Vec<_> = found
        .iter()
        .filter(|page| !page.ends_with("SUMMARY.md") && !page.starts_with(&notebook))
        .filter(|page| !listed.contains(*page))
        .collect();
    assert!(
        missing.is_empty(),
        "pages without a line in docs/SUMMARY.md: {missing:?}"
    );
}

/// The subcommands in a help text.
fn commands(words: &[&str]) -> Vec<String> {
    let help = Command::new(env!("CARGO_BIN_EXE_arbor"))
        .args(words)
        .arg("--help")
        .output();
    let help = String::from_utf8(help.expect("arbor runs").stdout).expect("text");
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let list = list.take_while(|line| !line.is_empty());
    // Continued lines are indented further.
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_map_has_every_command() {
    let map = read(&root().join("docs/guide/commands.md"));
    let mut missing = Vec::new();
    let top = commands(&[]);
    assert!(top.len() > 10, "the help lists commands: {top:?}");
    for name in top {
        match name.as_str() {
            "help" => {}
            "bench" | "evm384" | "preimages" => {
                let below = commands(&[&name]);
                assert!(below.len() > 2, "{name} has commands: {below:?}");
                let below = below.iter().filter(|command| *command != "help");
                let listed = |command: &str| {
                    let rows = map
                        .lines()
                        .filter(|line| line.contains(&format!("`arbor {name} ")));
                    rows.filter_map(|line| line.split('|').nth(1)).any(|cell| {
                        cell.contains(&format!("`arbor {name} {command}`"))
                            || cell.contains(&format!("`{command}`"))
                    })
                };
                missing.extend(
                    below
                        .filter(|command| !listed(command))
                        .map(|command| format!("{name} {command}")),
                );
            }
            name if !map.contains(&format!("`arbor {name}`")) => missing.push(name.to_owned()),
            _ => {}
        }
    }
    assert!(
        missing.is_empty(),
        "commands without a row in docs/guide/commands.md: {missing:?}"
    );
}

#[test]
fn the_readme_is_short_and_the_guide_narrow() {
    let readme = read(&root().join("README.md"));
    assert!(
        readme.lines().count() < 150,
        "README.md has 150 lines or more"
    );
    let mut narrow = vec![root().join("README.md"), root().join("SECURITY.md")];
    pages(&root().join("docs/guide"), &mut narrow);
    // Its commands were cut off on the page, with the words that explain them.
    let with_commands = root().join("bench-peers/README.md");
    narrow.push(with_commands.clone());
    for page in narrow {
        let mut is_code = false;
        for (at, line) in read(&page).lines().enumerate() {
            is_code ^= line.starts_with("```") && page != with_commands;
            let columns = line.chars().count();
            let is_prose = !is_code && !line.starts_with('|');
            assert!(
                !is_prose || columns <= 120,
                "{}:{}: {columns} columns",
                page.display(),
                at + 1
            );
        }
    }
}

//! No file asks which tree it has, other than those of the trees themselves.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The folders of the trees.
const TREES: [&str; 2] = ["trees/src", "verify/src"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_file_asks_which_tree_it_has() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let crates = crates.canonicalize().expect("the folder of all crates");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&crates).expect("a folder") {
        let source = entry.expect("an entry").path().join("src");
        if source.is_dir() {
            sources(&source, &mut files);
        }
    }
    let mut ask = BTreeSet::new();
    for file in &files {
        let name = file.strip_prefix(&crates).expect("below it");
        let name = name.to_str().expect("text").replace('\\', "/");
        let text = std::fs::read_to_string(file).expect("readable");
        let asks = ["downcast::<", "wanted::<"].iter().any(|call| {
            let types = ["MerklePatricia>", "Verkle>", "Ar16mt>"];
            types.iter().any(|of| text.contains(&format!("{call}{of}")))
        });
        if asks && !TREES.iter().any(|tree| name.starts_with(tree)) {
            ask.insert(name);
        }
    }
    assert!(
        ask.is_empty(),
        "files that ask which tree they have: {ask:?}"
    );
}

/// The head of the README's table of trees.
const README_HEAD: &str =
    "| `--tree` | what it is, and the date of its text | revision | witnesses, stateless |";

#[test]
fn the_readme_has_a_row_for_each_tree() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).expect("readable");
    let mut rows = readme.lines().skip_while(|line| *line != README_HEAD);
    let table: Vec<&str> = rows
        .by_ref()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    let known: Vec<String> = arbor_trees::standard()
        .rows()
        .map(|row| {
            let witnesses = if row.has_witnesses { "yes" } else { "no" };
            let revision = row.stored_as.revision;
            format!(
                "| `{}` | {} | {revision} | {witnesses} |",
                row.name, row.summary
            )
        })
        .collect();
    assert_eq!(table, known);
}

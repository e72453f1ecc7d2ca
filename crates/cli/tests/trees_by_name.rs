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

/// Files that may name a tree, or call a `downcast`, and why. A name that ends in `*` stands for all files that begin so.
const EXCEPTIONS: [(&str, &str); 6] = [
    ("lab/src/loadtest*", "the load test writes leaves of AR16MT"),
    (
        "cli/src/commands/loadtest.rs",
        "the load test writes leaves of AR16MT",
    ),
    (
        "generator/src/ledger.rs",
        "headers have Merkle-Patricia roots",
    ),
    (
        "state-tree/src/error.rs",
        "it takes an error out of its box",
    ),
    ("convert/src/error.rs", "it takes an error out of its box"),
    (
        "chain/src/bounded_input.rs",
        "it takes an error out of its box",
    ),
];

/// What a source file, without its unit tests, has of particular trees: names of `arbor_trees` other than the list of all, and calls of `downcast`.
fn named_trees(text: &str) -> BTreeSet<String> {
    let tests = text.find("\n#[cfg(test)]\nmod ");
    let code = text[..tests.unwrap_or(text.len())]
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n");
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut found = BTreeSet::new();
    for (place, path) in code.match_indices("arbor_trees::") {
        let rest = &code[place + path.len()..];
        let names = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default(),
            None => rest
                .split(|letter| !is_letter(letter))
                .next()
                .unwrap_or_default(),
        };
        let names = names.split(',').map(str::trim);
        let others = names.filter(|name| !matches!(*name, "" | "standard"));
        found.extend(others.map(|name| format!("arbor_trees::{name}")));
    }
    for (place, call) in code.match_indices("downcast") {
        let rest = &code[place + call.len()..];
        if rest.starts_with('(') || rest.starts_with("::<") {
            found.insert("downcast".to_owned());
        }
    }
    found
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
    let (mut ask, mut unused) = (Vec::new(), EXCEPTIONS.to_vec());
    for file in &files {
        let name = file.strip_prefix(&crates).expect("below it");
        let name = name.to_str().expect("text").replace('\\', "/");
        let text = std::fs::read_to_string(file).expect("readable");
        let found = named_trees(&text);
        if found.is_empty() || TREES.iter().any(|tree| name.starts_with(tree)) {
            continue;
        }
        let is_of = |exception: &str| match exception.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => name == exception,
        };
        if EXCEPTIONS.iter().any(|(exception, _)| is_of(exception)) {
            unused.retain(|(exception, _)| !is_of(exception));
        } else {
            ask.push(format!("{name}: {found:?}"));
        }
    }
    assert!(
        ask.is_empty(),
        "files that ask which tree they have: {ask:#?}"
    );
    assert!(unused.is_empty(), "exceptions of no file: {unused:?}");
}

/// Neither `let x: &Verkle = tree.downcast()` nor a tree that came later was found.
#[test]
fn every_way_to_ask_is_found() {
    for (code, wanted) in [
        ("use arbor_trees::standard;", &[][..]),
        ("// arbor_trees::MPT", &[]),
        (
            "fn f() {}\n#[cfg(test)]\nmod tests {\n    use arbor_trees::MPT;\n}",
            &[],
        ),
        ("error.downcast_ref::<io::Error>()", &[]),
        ("let x: &Verkle = tree.downcast().unwrap();", &["downcast"]),
        ("tree.downcast::<Eip8297>()", &["downcast"]),
        ("use arbor_trees::{MPT, standard};", &["arbor_trees::MPT"]),
        (
            "let tree = arbor_trees::eip8297::EIP8297.tree();",
            &["arbor_trees::eip8297"],
        ),
    ] {
        let found = named_trees(code);
        assert!(found.iter().eq(wanted), "{code}: {found:?}");
    }
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

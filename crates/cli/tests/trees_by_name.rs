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
const EXCEPTIONS: [(&str, &str); 9] = [
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
        "serve/src/account_range.rs",
        "debug_accountRange has storage roots as go-ethereum has them, which Merkle-Patricia's proofs have alone",
    ),
    (
        "serve/src/state_methods.rs",
        "eth_getProof answers with EIP-1186 if the proof has that form",
    ),
    (
        "chain/src/witness/form.rs",
        "it takes a witness out of its box",
    ),
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
        // A state that moves is over any two of them.
        let others = names.filter(|name| !matches!(*name, "" | "standard" | "Moving"));
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

/// The source files of all crates, by their paths below the folder of all crates.
fn all_sources() -> Vec<(String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let crates = crates.canonicalize().expect("the folder of all crates");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&crates).expect("a folder") {
        let source = entry.expect("an entry").path().join("src");
        if source.is_dir() {
            sources(&source, &mut files);
        }
    }
    let named = files.iter().map(|file| {
        let name = file.strip_prefix(&crates).expect("below it");
        let name = name.to_str().expect("text").replace('\\', "/");
        (name, std::fs::read_to_string(file).expect("readable"))
    });
    named.collect()
}

/// The names that a variant for a tree would have: `Mpt` and `MerklePatricia` for one that is called "mpt" and stored as
/// "merkle-patricia".
fn variants() -> BTreeSet<String> {
    let words = |name: &str| -> String {
        let words = name.split('-').map(|word| {
            let (first, rest) = word.split_at(1);
            format!("{}{rest}", first.to_uppercase())
        });
        words.collect()
    };
    let rows = arbor_trees::standard();
    let names = rows.rows().flat_map(|row| [row.name, row.stored_as.tree]);
    names.map(words).collect()
}

/// Whether a text has a word.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// The first line of a file's code that is a variant for a tree in an enum, or names such a variant.
fn variant_of_a_tree(text: &str, variants: &BTreeSet<String>) -> Option<String> {
    let code = text.lines().filter(|line| {
        let line = line.trim_start();
        !line.starts_with("//") && !line.starts_with("use ") && !line.starts_with("pub use ")
    });
    let code: Vec<&str> = code.collect();
    let mut in_enum = false;
    for line in code {
        in_enum = match line.contains("enum ") {
            true => true,
            false => in_enum && !line.starts_with('}'),
        };
        for variant in variants {
            let path = format!("::{variant}");
            let is_path = line.contains(&path) && has_word(line, variant);
            let is_type = line.contains(&format!("::{variant}::")) || line.contains(" as ");
            if is_path && !is_type {
                return Some(line.trim().to_owned());
            }
            let is_variant = in_enum
                && line
                    .trim_start()
                    .strip_prefix(&**variant)
                    .is_some_and(|rest| rest.starts_with([',', '(', ' ', '=']));
            if is_variant {
                return Some(line.trim().to_owned());
            }
        }
    }
    None
}

/// Matches on an enum with a variant for each tree were not found: `FoundWitness` was one.
#[test]
fn no_file_has_a_variant_for_a_tree() {
    let variants = variants();
    let found: Vec<String> = all_sources()
        .into_iter()
        .filter(|(name, _)| !TREES.iter().any(|tree| name.starts_with(tree)))
        .filter_map(|(name, text)| {
            let line = variant_of_a_tree(&text, &variants)?;
            Some(format!("{name}: {line}"))
        })
        .collect();
    let found = found.join("\n");
    assert!(found.is_empty(), "variants for trees:\n{found}");
}

/// The head of the README's table of trees.
const README_HEAD: &str =
    "| `--tree` | what it is, and the date of its text | revision | block witnesses |";

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

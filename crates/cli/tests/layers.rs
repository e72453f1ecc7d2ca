//! The tables of ARCHITECTURE.md, compared with what Cargo sees: dependencies point one way, down.

use serde_json::Value;
use std::{collections::BTreeSet, path::Path, process::Command};

/// What ARCHITECTURE.md allows.
struct Rules {
    /// From the highest layer to the lowest.
    layers: Vec<Layer>,
    /// Crates whose tests may depend on others, whatever the layers say.
    tests: Vec<(String, Vec<String>)>,
    libraries: Vec<Confined>,
}

/// Crates that must not know each other, without the `arbor-` of their packages.
struct Layer {
    crates: Vec<String>,
    /// Crates in lower layers that these must not depend on; one that ends in `*` stands for all that begin so.
    except: Vec<String>,
}

/// A library, with every package whose name is or begins with its name, that only some crates may name.
struct Confined {
    library: String,
    only_in: Vec<String>,
}

impl Rules {
    fn read() -> Self {
        let path = workspace_root().join("ARCHITECTURE.md");
        Self::parse(&std::fs::read_to_string(&path).expect("ARCHITECTURE.md is readable"))
    }

    fn parse(page: &str) -> Self {
        let (_, section) = page
            .split_once("\n## Layers\n")
            .expect("a section of layers");
        let section = section.split("\n## ").next().unwrap_or_default();
        let layers = rows(section, "| layer | crates |").map(|row| Layer {
            crates: quoted(row[1]),
            except: quoted(row[3]),
        });
        let libraries = rows(section, "| library | only in |").flat_map(|row| {
            let libraries = quoted(row[0]).into_iter();
            libraries.map(move |library| Confined {
                library,
                only_in: quoted(row[1]),
            })
        });
        let tests = rows(section, "| tests of | also depend on |");
        let tests = tests.flat_map(|row| {
            let also = quoted(row[1]);
            let names = quoted(row[0]).into_iter();
            names
                .map(move |name| (name, also.clone()))
                .collect::<Vec<_>>()
        });
        Self {
            layers: layers.collect(),
            tests: tests.collect(),
            libraries: libraries.collect(),
        }
    }

    fn layer_of(&self, name: &str) -> Option<usize> {
        let has = |layer: &Layer| layer.crates.iter().any(|pattern| matches(pattern, name));
        self.layers.iter().position(has)
    }

    fn tests_may(&self, name: &str, on: &str) -> bool {
        let mut own = self.tests.iter().filter(|(of, _)| of == name);
        own.any(|(_, also)| also.iter().any(|also| also == on))
    }

    /// What is wrong with the edges of one crate, a line each.
    fn violations(&self, member: &Member) -> Vec<String> {
        let name = short(&member.name);
        let Some(layer) = self.layer_of(name) else {
            return vec![format!(
                "{name}: not in the table of layers in ARCHITECTURE.md; enter it there"
            )];
        };
        let except = &self.layers[layer].except;
        let edges = member
            .dependencies
            .iter()
            // A crate names itself to switch on a feature of its own for its tests.
            .filter(|on| on.starts_with("arbor-") && **on != member.name)
            .filter(|on| !(member.of_tests.contains(*on) && self.tests_may(name, short(on))))
            .filter_map(|on| match (short(on), self.layer_of(short(on))) {
                (on, None) => Some(format!(
                    "{name} -> {on}: {on} is not in the table of layers"
                )),
                (on, Some(below)) if below <= layer => {
                    Some(format!("{name} -> {on}: {on} is not in a row further down"))
                }
                (on, Some(_)) => {
                    let by = except.iter().find(|pattern| matches(pattern, on))?;
                    let allowed = except.iter().filter_map(|name| name.strip_prefix('!'));
                    if allowed.into_iter().any(|allowed| allowed == on) {
                        return None;
                    }
                    Some(format!("{name} -> {on}: the row of {name} excepts `{by}`"))
                }
            });
        let libraries = self.libraries.iter().flat_map(|confined| {
            let library = &confined.library;
            let named = member
                .dependencies
                .iter()
                .filter(move |on| *on == library || on.starts_with(&format!("{library}-")));
            let allowed = confined.only_in.iter().any(|only| only == name);
            named
                .filter(move |_| !allowed)
                .map(move |on| format!("{name} -> {on}: only in {}", confined.only_in.join(", ")))
        });
        edges.chain(libraries).collect()
    }
}

/// The cells of each row of the table whose header begins so.
fn rows<'p>(section: &'p str, header: &'static str) -> impl Iterator<Item = Vec<&'p str>> {
    let mut lines = section
        .lines()
        .skip_while(move |line| !line.starts_with(header));
    let whole = lines.next().expect("ARCHITECTURE.md has the table");
    let columns = whole.matches('|').count() - 1;
    let rows = lines.skip(1).take_while(|line| line.starts_with('|'));
    rows.map(move |row| {
        let row = row.trim_matches('|');
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        assert_eq!(cells.len(), columns, "as many cells as columns: {row}");
        cells
    })
}

/// The names in backticks of a cell, which has nothing else but commas.
fn quoted(cell: &str) -> Vec<String> {
    let names = cell.split(',').map(str::trim).filter(|it| !it.is_empty());
    let name = |quoted: &str| {
        let inside = quoted
            .strip_prefix('`')
            .and_then(|it| it.strip_suffix('`'))
            .filter(|it| !it.contains('`'));
        inside
            .unwrap_or_else(|| panic!("{cell:?} lists names in backticks, with commas between"))
            .to_owned()
    };
    names.map(name).collect()
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

fn short(package: &str) -> &str {
    package.trim_start_matches("arbor-")
}

/// A member of the workspace with the names of all it depends on, whatever the kind of dependency (normal, build or test).
struct Member {
    name: String,
    dependencies: BTreeSet<String>,
    /// Those that its tests alone have.
    of_tests: BTreeSet<String>,
}

fn workspace_root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn members() -> Vec<Member> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(workspace_root())
        .output()
        .expect("cargo runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {message}");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    packages.iter().map(member).collect()
}

fn member(package: &Value) -> Member {
    let name = |of: &Value| of["name"].as_str().expect("a name").to_owned();
    let dependencies = package["dependencies"].as_array().expect("dependencies");
    let (of_tests, others): (Vec<&Value>, Vec<&Value>) =
        dependencies.iter().partition(|on| on["kind"] == "dev");
    let others: BTreeSet<String> = others.into_iter().map(name).collect();
    let of_tests = of_tests.into_iter().map(name);
    Member {
        name: name(package),
        dependencies: dependencies.iter().map(name).collect(),
        of_tests: of_tests.filter(|on| !others.contains(on)).collect(),
    }
}

#[test]
fn dependencies_point_down_and_libraries_stay_where_they_belong() {
    let (rules, members) = (Rules::read(), members());
    assert!(members.len() >= 10, "cargo metadata lists the workspace");
    let found: Vec<String> = members.iter().flat_map(|it| rules.violations(it)).collect();
    let found = found.join("\n");
    assert!(
        found.is_empty(),
        "not what ARCHITECTURE.md allows:\n{found}"
    );
}

#[test]
fn tables_name_crates_once_and_none_that_is_gone() {
    let (rules, members) = (Rules::read(), members());
    let members: BTreeSet<&str> = members.iter().map(|member| short(&member.name)).collect();
    let mut seen = BTreeSet::new();
    for layer in &rules.layers {
        for pattern in &layer.crates {
            let of_pattern = members.iter().filter(|name| matches(pattern, name));
            let of_pattern: Vec<&str> = of_pattern.copied().collect();
            assert!(!of_pattern.is_empty(), "{pattern} is no crate");
            for name in of_pattern {
                assert!(seen.insert(name), "{name} is in two layers");
            }
        }
        for pattern in &layer.except {
            let pattern = pattern.trim_start_matches('!');
            let some = members.iter().any(|name| matches(pattern, name));
            assert!(some, "`{pattern}` stands for no crate");
        }
    }
    for (name, also) in &rules.tests {
        for name in also.iter().chain([name]) {
            assert!(members.contains(&**name), "{name} is no crate");
        }
    }
    for confined in &rules.libraries {
        for name in &confined.only_in {
            assert!(members.contains(&**name), "{name} is no crate");
        }
    }
}

/// A crate that depends on another, by its tests alone or not.
fn depends(name: &str, on: &str, by_tests: bool) -> Member {
    let dependencies = BTreeSet::from([on.to_owned()]);
    Member {
        name: name.to_owned(),
        of_tests: if by_tests {
            dependencies.clone()
        } else {
            BTreeSet::new()
        },
        dependencies,
    }
}

#[test]
fn the_rule_catches_what_it_forbids() {
    let page = "
## Layers

| layer | crates | what they are | not, although further down |
|---|---|---|---|
| front | `cli` | | |
| jobs | `chain` | | `tree-*`, `!tree-b` |
| trees | `tree-*` | | `store*` |
| stores | `store-disk` | | |
| store | `store` | | |

| tests of | also depend on |
|---|---|
| `tree-a` | `chain` |

| library | only in |
|---|---|
| `revm`, `alloy` | `chain` |
";
    let rules = Rules::parse(page);
    let wrong = |name: &str, on: &str| rules.violations(&depends(name, on, false)).join("");
    let of_tests = |name: &str, on: &str| rules.violations(&depends(name, on, true)).join("");
    assert_eq!(of_tests("arbor-tree-a", "arbor-chain"), "");
    assert_ne!(of_tests("arbor-tree-b", "arbor-chain"), "");
    assert_ne!(wrong("arbor-tree-a", "arbor-chain"), "");
    let up = wrong("arbor-store", "arbor-tree-a");
    assert_eq!(up, "store -> tree-a: tree-a is not in a row further down");
    let beside = wrong("arbor-tree-a", "arbor-tree-b");
    assert_eq!(
        beside,
        "tree-a -> tree-b: tree-b is not in a row further down"
    );
    let excepted = wrong("arbor-tree-a", "arbor-store-disk");
    assert_eq!(
        excepted,
        "tree-a -> store-disk: the row of tree-a excepts `store*`"
    );
    let excepted = wrong("arbor-chain", "arbor-tree-a");
    assert_eq!(
        excepted,
        "chain -> tree-a: the row of chain excepts `tree-*`"
    );
    let unknown = wrong("arbor-cli", "arbor-new");
    assert_eq!(unknown, "cli -> new: new is not in the table of layers");
    let missing = wrong("arbor-new", "serde");
    assert!(missing.contains("enter it there"), "{missing}");
    let library = wrong("arbor-cli", "revm-primitives");
    assert_eq!(library, "cli -> revm-primitives: only in chain");
    for (name, on) in [
        ("arbor-cli", "arbor-store"),
        ("arbor-chain", "arbor-tree-b"),
        ("arbor-chain", "revm"),
        ("arbor-tree-a", "arbor-tree-a"),
        ("arbor-store", "revmc"),
    ] {
        assert_eq!(wrong(name, on), "");
    }
}

/// A file of tests that no program has would never run.
#[test]
fn every_file_of_tests_is_in_a_program() {
    let read = |path: &Path| std::fs::read_to_string(path).expect("it is readable");
    for folder in std::fs::read_dir(workspace_root().join("crates")).expect("crates") {
        let folder = folder.expect("a crate").path();
        let manifest = read(&folder.join("Cargo.toml"));
        let Ok(suite) = std::fs::read_to_string(folder.join("tests/suite.rs")) else {
            assert!(!manifest.contains("autotests"), "{}", folder.display());
            continue;
        };
        for file in std::fs::read_dir(folder.join("tests")).expect("tests") {
            let path = file.expect("a file").path();
            let name = path
                .file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            if path.extension().is_some_and(|ending| ending == "rs") && name != "suite" {
                let own = manifest.contains(&format!("\"tests/{name}.rs\""));
                let part = suite.contains(&format!("\nmod {name};"));
                assert!(own || part, "{} is in no program", path.display());
            }
        }
    }
}

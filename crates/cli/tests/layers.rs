//! The rule of ARCHITECTURE.md, checked on what Cargo sees: dependencies point one way, down.

use serde_json::Value;
use std::{collections::BTreeSet, path::Path, process::Command};

/// The crates from the lowest layer to the highest. One may depend on those of lower rows only, whatever
/// the kind of dependency (normal, build or test).
///
/// Crates that share a row must not know each other. A new crate is entered here and in ARCHITECTURE.md.
const LAYERS: &[&[&str]] = &[
    &["arbor-cpu", "arbor-metrics", "arbor-testdata"],
    &["arbor-hashing", "arbor-field"],
    &["arbor-banderwagon", "arbor-secp256k1"],
    &["arbor-ipa"],
    &["arbor-store"],
    &["arbor-store-fjall", "arbor-store-rocksdb"],
    &["arbor-tree"],
    &[
        "arbor-tree-ar16mt",
        "arbor-tree-mpt",
        "arbor-tree-verkle",
        "arbor-versions",
    ],
    &["arbor-state"],
    &["arbor-evm384"],
    &["arbor-chain", "arbor-lab"],
    &["arbor-cli"],
    &["xtask"],
];

/// Libraries that only some crates may name; a rule covers every package whose name is or begins with it.
const CONFINED: &[(&str, &[&str])] = &[
    ("revm", &["arbor-chain", "arbor-evm384"]),
    ("rocksdb", &["arbor-store-rocksdb"]),
    ("librocksdb-sys", &["arbor-store-rocksdb"]),
    ("fjall", &["arbor-store-fjall"]),
    ("clap", &["arbor-cli"]),
    ("anyhow", &["arbor-cli"]),
];

/// A member of the workspace with the names of all it depends on.
struct Member {
    name: String,
    dependencies: BTreeSet<String>,
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
    Member {
        name: name(package),
        dependencies: dependencies.iter().map(name).collect(),
    }
}

fn layer_of(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&name))
}

/// What is wrong with the edges of one crate, a line each.
fn violations(member: &Member) -> Vec<String> {
    let name = &member.name;
    let Some(layer) = layer_of(name) else {
        return vec![format!("{name} is in no layer of this test")];
    };
    let edges = member
        .dependencies
        .iter()
        // A crate names itself to switch on a feature of its own for its tests.
        .filter(|on| on.starts_with("arbor-") && *on != name)
        .filter(|on| layer_of(on).is_none_or(|below| below >= layer))
        .map(|on| format!("{name} must not depend on {on}: it is not in a lower layer"));
    let confined = CONFINED.iter().flat_map(|(library, allowed)| {
        let named = member
            .dependencies
            .iter()
            .filter(move |on| *on == library || on.starts_with(&format!("{library}-")));
        named
            .filter(|_| !allowed.contains(&name.as_str()))
            .map(move |on| format!("{name} must not name {on}: only {} may", allowed.join(", ")))
    });
    edges.chain(confined).collect()
}

#[test]
fn dependencies_point_down_and_libraries_stay_where_they_belong() {
    let members = members();
    assert!(members.len() >= 10, "cargo metadata lists the workspace");
    let found: Vec<String> = members.iter().flat_map(violations).collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn architecture_page_names_every_crate() {
    let path = workspace_root().join("ARCHITECTURE.md");
    let page = std::fs::read_to_string(&path).expect("ARCHITECTURE.md is readable");
    let missing: Vec<String> = members()
        .into_iter()
        .map(|member| member.name.trim_start_matches("arbor-").to_owned())
        .filter(|name| !page.contains(&format!("`{name}`")))
        .collect();
    assert!(missing.is_empty(), "not in ARCHITECTURE.md: {missing:?}");
}

#[test]
fn the_rule_catches_what_it_forbids() {
    let wrong = |name: &str, on: &str| {
        let dependencies = BTreeSet::from([on.to_owned()]);
        !violations(&Member {
            name: name.to_owned(),
            dependencies,
        })
        .is_empty()
    };
    assert!(wrong("arbor-store", "arbor-tree"), "upwards");
    assert!(wrong("arbor-versions", "arbor-tree-mpt"), "sideways");
    assert!(
        wrong("arbor-tree", "arbor-unheard-of"),
        "to an unknown crate"
    );
    assert!(wrong("arbor-unheard-of", "serde"), "from an unknown crate");
    assert!(
        wrong("arbor-state", "revm-primitives"),
        "part of revm below chain"
    );
    assert!(wrong("arbor-cli", "revm"), "revm above chain");
    assert!(wrong("arbor-store", "rocksdb"), "rocksdb outside its crate");
    assert!(
        !wrong("arbor-cli", "arbor-store-rocksdb"),
        "the feature's edge is allowed"
    );
    assert!(!wrong("arbor-chain", "revm"));
}

//! Snapshots of databases whose trees have no leaves by key: recovered, converted, and read by the oracle.

use crate::support::{Folder, roots};

/// Trees whose snapshots are streams of accounts, and the words that choose them.
const TREES: [(&str, &[&str]); 4] = [
    ("mpt", &[]),
    ("verkle", &[]),
    ("eip8297", &["--hash", "sha256"]),
    ("eip7864", &["--hash", "keccak256"]),
];

fn replay(folder: &Folder, db: &str, more: &[&str]) {
    let words = ["replay", "--db", db];
    folder.run(&[&words[..], more, &["chain"]].concat()).ok();
}

/// The accounts of a block, without the first line.
fn dump(folder: &Folder, db: &str, block: &str) -> Vec<String> {
    let text = folder
        .run(&["dump", "--db", db, "--at", block])
        .ok()
        .stdout();
    let mut lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_snapshot_of_every_tree_is_recovered_converted_and_goes_on() {
    let folder = Folder::with_chain();
    for (tree, hash) in TREES {
        replay(&folder, tree, &[&["--tree", tree], hash].concat());
        let whole = roots(&folder, tree);
        let head = folder.status(tree)["block"].as_u64().expect("a number");
        for (name, at) in [("latest", head), ("older", head - 3)] {
            let (file, db) = (format!("{tree}-{name}"), format!("{tree}-{name}.db"));
            let at = at.to_string();
            let words = ["snapshot", "--db", tree, "--at", &at, "--out", &file];
            let told = folder
                .run(&[&words[..], &["--chunk-size", "70"]].concat())
                .ok()
                .stdout();
            assert!(
                told.contains("accounts") && told.contains("codes"),
                "{told}"
            );
            let root = whole[at.parse::<usize>().expect("a number")]
                .rsplit(' ')
                .next();
            let root = root.expect("a root");
            let words = ["recover", "--db", &db, &file, "--root", root];
            let told = folder.run(&words).ok().stdout();
            assert!(told.contains(root), "{told}");
            folder.run(&["verify", "--db", &db]).ok();
            assert_eq!(dump(&folder, &db, &at), dump(&folder, tree, &at), "{file}");
            replay(&folder, &db, &[]);
            assert_eq!(roots(&folder, &db).last(), whole.last(), "{file}");
        }
    }
}

#[test]
fn a_snapshot_is_converted_to_another_tree() {
    let folder = Folder::with_chain();
    replay(&folder, "verkle", &["--tree", "verkle"]);
    folder
        .run(&["snapshot", "--db", "verkle", "--out", "file"])
        .ok();
    let head = folder.status("verkle")["block"].to_string();
    let from = |tree: &str| {
        let to = format!("{tree}.db");
        let words = ["convert", "--from", "file", "--to", &to, "--tree", tree];
        folder.run(&words).ok();
        folder.run(&["verify", "--db", &to]).ok();
        assert_eq!(
            dump(&folder, &to, &head),
            dump(&folder, "verkle", &head),
            "{tree}"
        );
        to
    };
    let mpt = from("mpt");
    from("eip8297");
    from("ar16mt");
    // The header's root is that of the accounts.
    let root = roots(&folder, &mpt);
    folder.run(&["replay", "--db", "replayed", "chain"]).ok();
    assert_eq!(root.last(), roots(&folder, "replayed").last());
    let of = |state: &str| {
        folder
            .run(&["oracle", "--tree", "eip8297", "--json", state])
            .ok()
            .stdout()
    };
    assert_eq!(of("file"), of("verkle"));
    for (words, why) in [
        (["--at", "3"], "of no use with a snapshot"),
        (["--ancestors", "chain"], "of no use with a snapshot"),
    ] {
        let convert = ["convert", "--from", "file", "--to", "new", "--tree", "mpt"];
        folder
            .run(&[&convert[..], &words].concat())
            .fails_with(&[why]);
    }
    let words = [
        "convert", "--from", "file", "--to", "new", "--tree", "mpt", "--follow",
    ];
    folder
        .run(&words)
        .fails_with(&["of no use with a snapshot"]);
    // A changed file, and one of leaves.
    let mut bytes = std::fs::read(folder.path("file")).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(folder.path("changed"), bytes).expect("written");
    let words = [
        "convert", "--from", "changed", "--to", "new", "--tree", "mpt",
    ];
    folder
        .run(&words)
        .fails_with(&["changed", "damaged", "at byte"]);
    folder
        .run(&["recover", "--db", "new", "changed"])
        .fails_with(&["damaged"]);
    replay(&folder, "ar16mt", &["--tree", "ar16mt"]);
    folder
        .run(&["snapshot", "--db", "ar16mt", "--out", "leaves"])
        .ok();
    let words = [
        "convert", "--from", "leaves", "--to", "new", "--tree", "mpt",
    ];
    folder
        .run(&words)
        .fails_with(&["leaves of the tree ar16mt", "arbor recover"]);
}

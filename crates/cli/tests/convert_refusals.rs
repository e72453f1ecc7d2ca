//! What `arbor convert` and its parts refuse, and how they say what to do.

use std::path::Path;
use std::process::Command;

use crate::support::{Folder, Run};

/// With small tables, which are made quickly.
fn convert(folder: &Folder, from: &str, to: &str, more: &[&str]) -> Run {
    let words = ["convert", "--memory", "64MiB", "--from", from, "--to", to];
    folder.run(&[&words[..], more].concat())
}

fn replay(folder: &Folder, db: &str, more: &[&str]) -> Run {
    let words = ["replay", "--memory", "64MiB", "--db", db, "chain"];
    folder.run(&[&words[..], more].concat())
}

/// A chain, and a database with some of its blocks.
fn with_database() -> Folder {
    let folder = Folder::with_chain();
    replay(&folder, "db", &["--to", "6"]).ok();
    folder
}

/// Writes the dump of a database to a file.
fn dump(folder: &Folder, more: &[&str]) -> String {
    let words = [&["dump", "--db", "db"][..], more].concat();
    let text = folder.run(&words).ok().stdout();
    std::fs::write(folder.path("dump"), &text).expect("written");
    text
}

fn parts(folder: &Folder, tree: &str) {
    for number in ["1", "2", "3"] {
        let (to, part) = (format!("part-{number}"), format!("{number}/3"));
        convert(folder, "db", &to, &["--tree", tree, "--part", &part]).ok();
    }
}

fn join(folder: &Folder, parts: &[&str]) -> Run {
    let words = ["convert", "join", "--memory", "64MiB", "--to", "to"];
    folder.run(&[&words[..], parts].concat())
}

/// All files in a folder, with their bytes.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).expect("listed");
    let files = entries.map(|entry| {
        let entry = entry.expect("an entry");
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        (entry.file_name().to_string_lossy().into_owned(), bytes)
    });
    let mut files: Vec<_> = files.collect();
    files.sort();
    files
}

/// A replay into the folder of a finished part made a database of it, and its genesis another.
#[test]
fn no_command_makes_a_database_of_a_part() {
    let folder = with_database();
    let tree = "mpt";
    parts(&folder, tree);
    folder
        .run(&["snapshot", "--db", "db", "--out", "snapshot"])
        .ok();
    let before = files(&folder.path("part-2"));
    let told = ["part-2 is part 2/3 of a conversion", "arbor convert join"];
    let commands: [&[&str]; 12] = [
        &["replay", "--db", "part-2", "chain"],
        &["recover", "--db", "part-2", "snapshot"],
        &["convert", "--from", "db", "--to", "part-2", "--tree", tree],
        &[
            "convert", "join", "--to", "part-2", "part-1", "part-2", "part-3",
        ],
        &["rollback", "--db", "part-2", "--to", "3"],
        &["prune", "--db", "part-2", "--retain", "none"],
        &["compact", "--db", "part-2"],
        &["repair", "--db", "part-2"],
        &["loadtest", "--db", "part-2", "2", "100"],
        &["status", "--db", "part-2"],
        &["dump", "--db", "part-2"],
        &["backup", "--db", "part-2", "--to", "copy"],
    ];
    for command in commands {
        println!("{command:?}");
        folder.run(command).fails_with(&told);
    }
    assert_eq!(files(&folder.path("part-2")), before);
    join(&folder, &["part-1", "part-2", "part-3"]).ok();
}

/// A user's files in the folder were left among those of the database, and some of them overwritten.
#[test]
fn a_folder_with_other_files_is_no_target() {
    let folder = with_database();
    let tree = ["--tree", "mpt"];
    let told = ["--to mine has other files", "note.txt", "an empty one"];
    std::fs::create_dir(folder.path("mine")).expect("made");
    std::fs::write(folder.path("mine/note.txt"), "a note").expect("written");
    convert(&folder, "db", "mine", &tree).fails_with(&told);
    convert(
        &folder,
        "db",
        "mine",
        &[&tree[..], &["--part", "1/1"]].concat(),
    )
    .fails_with(&told);
    convert(
        &folder,
        "db",
        "part",
        &[&tree[..], &["--part", "1/1"]].concat(),
    )
    .ok();
    let words = ["convert", "join", "--to", "mine", "part"];
    folder.run(&words).fails_with(&told);
    assert_eq!(files(&folder.path("mine")).len(), 1);
    // The chain's folder has a genesis, which a database would have, too.
    convert(&folder, "db", "chain", &tree).fails_with(&["--to chain has other files"]);
    // An empty folder, and that of a disk, are as good as none.
    std::fs::create_dir(folder.path("empty")).expect("made");
    std::fs::create_dir(folder.path("empty/lost+found")).expect("made");
    convert(&folder, "db", "empty", &tree).ok();
    // A database or a part with a note in its folder goes on.
    for made in ["empty", "part"] {
        std::fs::write(folder.path(made).join("note.txt"), "a note").expect("written");
    }
    convert(&folder, "db", "empty", &tree).ok();
    convert(
        &folder,
        "db",
        "part",
        &[&tree[..], &["--part", "1/1"]].concat(),
    )
    .ok();
}

/// The last of several numbers was taken.
#[test]
fn settings_that_contradict_each_other_are_refused() {
    let folder = with_database();
    let told = ["'levels=4'", "'levels=3'", "contradict"];
    let (tree, settings) = ("eip8297:levels=4", "--tree-settings");
    let words = ["--tree", tree, settings, "levels=3"];
    convert(&folder, "db", "to", &words).fails_with(&told);
    convert(
        &folder,
        "db",
        "to",
        &[&words[..], &["--part", "1/2"]].concat(),
    )
    .fails_with(&told);
    convert(
        &folder,
        "db",
        "to",
        &["--tree", "eip8297:levels=4+levels=3"],
    )
    .fails_with(&told);
    let words = ["--tree", "eip8297", settings, "levels=4,levels=3"];
    replay(&folder, "to", &words).fails_with(&told);
    let words = [
        "--trees",
        "eip8297:levels=4+levels=3",
        "--out",
        "out",
        "chain",
    ];
    folder
        .run(&[&["compare"][..], &words].concat())
        .fails_with(&told);
    assert!(!folder.path("to").exists());
    convert(&folder, "db", "to", &["--tree", tree, settings, "levels=4"]).ok();
    assert_eq!(folder.status("to")["treeSettings"][0], "levels=4");
}

/// A parser's or a decoder's error said neither that the file is cut nor what to do.
#[test]
fn a_dump_that_is_cut_says_so() {
    let folder = with_database();
    let text = dump(&folder, &[]);
    let tree = ["--tree", "mpt", "--skip-disk-check"];
    let write = |bytes: &[u8]| std::fs::write(folder.path("cut"), bytes).expect("written");
    let refused = |words: &[&str]| {
        let run = convert(&folder, "cut", "to", &tree);
        let told = run.fails_with(words).stderr();
        assert!(!told.contains("EOF") && !told.contains("column"), "{told}");
        let _ = std::fs::remove_dir_all(folder.path("to"));
    };
    // In the middle of its last line, and of its first.
    let again = "Write or copy it again";
    let line = format!("line {}: it ends in the middle", text.lines().count());
    write(&text.as_bytes()[..text.len() - 10]);
    refused(&[&line, again]);
    write(&text.as_bytes()[..30]);
    refused(&["line 1: it ends in the middle", again]);
    write(b"");
    refused(&["it is empty"]);
    write(format!("{text}{{\"balance\":true}}\n").as_bytes());
    refused(&["at byte 15 of the line", "expected a number"]);
    for (program, form) in [("gzip", "gzip"), ("zstd", "zstd")] {
        let packed = Command::new(program)
            .args(["-c", "dump"])
            .current_dir(folder.0.path())
            .output();
        let Ok(packed) = packed else {
            arbor_testdata::skip("a_dump_that_is_cut_says_so", &format!("no {program}"));
            continue;
        };
        let packed = packed.stdout;
        write(&packed[..packed.len() - 20]);
        let end = format!("it ends in the middle of its {form}");
        refused(&["cut: ", &end, again]);
        let mut other = packed.clone();
        let middle = other.len() / 2;
        other[middle..middle + 8].fill(0xff);
        write(&other);
        let run = convert(&folder, "cut", "to", &tree);
        run.fails_with(&["again"]);
        let _ = std::fs::remove_dir_all(folder.path("to"));
    }
    folder
        .run(&["snapshot", "--db", "db", "--out", "snapshot"])
        .ok();
    let snapshot = std::fs::read(folder.path("snapshot")).expect("read");
    for length in [18, 200, snapshot.len() - 1] {
        write(&snapshot[..length]);
        refused(&["cut: at byte", "is cut short", "write or copy it again"]);
    }
}

/// A block beyond the chain was "not in the database", and another chain's dump was to be given another block.
#[test]
fn the_block_of_a_dump_is_found_in_its_chain() {
    let folder = with_database();
    dump(&folder, &[]);
    let of = |at: &[&str]| {
        let words = ["--tree", "mpt", "--ancestors", "chain"];
        convert(&folder, "dump", "to", &[&words[..], at].concat())
    };
    let six = "which is that of block 6: give --at 6";
    of(&["--at", "5"]).fails_with(&["block 5 of --ancestors has", six]);
    of(&[]).fails_with(&[six]);
    of(&["--at", "1000"]).fails_with(&["no block 1000", "last block is ", six]);
    // A dump of a state that the chain never had.
    let other = [
        "generate", "--preset", "tiny", "--seed", "9", "--out", "other",
    ];
    folder.run(&other).ok();
    std::fs::remove_dir_all(folder.path("db")).expect("removed");
    folder.run(&["replay", "--db", "db", "other"]).ok();
    dump(&folder, &[]);
    let foreign = ["which no block of --ancestors has", "another chain"];
    of(&[]).fails_with(&foreign);
    of(&["--at", "3"]).fails_with(&foreign);
    of(&["--at", "1000"]).fails_with(&foreign);
    assert!(!folder.path("to").exists());
}

#[test]
fn parts_that_cannot_be_joined_are_named() {
    let folder = with_database();
    parts(&folder, "ar16mt");
    let all = ["part-1", "part-2", "part-3"];
    join(&folder, &all[..1]).fails_with(&["parts 2/3 and 3/3 are missing"]);
    join(&folder, &all[..2]).fails_with(&["part 3/3 is missing"]);
    join(&folder, &["/etc/passwd"]).fails_with(&["/etc/passwd is not a part"]);
    // Files of a part that are damaged; nothing of a target is made.
    for (part, name, text) in [
        ("part-1", "genesis.json", "{"),
        ("part-3", "genesis.json", "{}"),
        ("part-1", "rules", "none of these\n"),
        ("part-3", "rules", "x"),
    ] {
        let path = folder.path(part).join(name);
        let before = std::fs::read(&path).ok();
        std::fs::write(&path, text).expect("written");
        let of = format!("part {}/3 in {part}", &part[5..]);
        join(&folder, &all).fails_with(&[&of, name, "make it again"]);
        assert!(!folder.path("to").exists(), "{part}/{name}");
        match before {
            Some(before) => std::fs::write(&path, before).expect("written"),
            None => std::fs::remove_file(&path).expect("removed"),
        }
    }
    join(&folder, &all).ok();
    folder
        .run(&["verify", "--db", "db", "--join", "part-1"])
        .fails_with(&["--join part-1 is a folder"]);
}

#[test]
fn a_state_without_a_block_is_not_of_block_0() {
    let folder = with_database();
    dump(&folder, &[]);
    let made = convert(&folder, "dump", "to", &["--tree", "mpt", "--json"]);
    assert!(
        made.ok().json()["results"]["block"].is_null(),
        "{}",
        made.stdout()
    );
    let genesis = ["--tree", "mpt", "--genesis", "chain/genesis.json"];
    let told = convert(&folder, "dump", "named", &genesis).ok().stdout();
    assert!(told.contains("of an unknown block"), "{told}");
    for db in ["to", "named"] {
        let told = folder.run(&["verify", "--db", db]).ok().stdout();
        assert!(told.contains("at an unknown block"), "{told}");
    }
}

#[test]
fn a_file_that_has_no_preimages_says_which_forms_there_are() {
    let folder = with_database();
    std::fs::write(folder.path("text"), "address,slot\n1,2\n").expect("written");
    let words = ["preimages", "audit", "--from", "db", "--preimages", "text"];
    let told = ["text, byte ", "none of the forms", "export-preimages"];
    folder.run(&words).fails_with(&told);
    let words = [
        "preimages",
        "audit",
        "--from",
        "text",
        "--preimages",
        "text",
    ];
    folder.run(&words).fails_with(&["reading text", "line 1"]);
}

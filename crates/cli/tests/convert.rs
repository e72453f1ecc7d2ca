//! Conversions of whole databases on disk, and the replay of the rest of the chain over what they made.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{Folder, Run, shared};
use serde_json::Value;

/// The names of all trees.
fn trees() -> Vec<&'static str> {
    let rows = arbor_trees::standard();
    rows.rows().map(|row| row.name).collect()
}

/// The accounts of a dump by address.
fn accounts(folder: &Folder, db: &str) -> BTreeMap<String, Value> {
    let text = folder.run(&["dump", "--db", db]).ok().stdout();
    let lines = text.lines().skip(1).map(|line| {
        let account: Value = serde_json::from_str(line).expect("a JSON line");
        let address = account["address"].as_str().expect("an address");
        (address.to_owned(), account)
    });
    lines.collect()
}

/// With small tables, which are made quickly.
fn convert(folder: &Folder, from: &str, to: &str, more: &[&str]) -> Run {
    let words = ["convert", "--memory", "64MiB", "--from", from, "--to", to];
    folder.run(&[&words[..], more].concat())
}

fn replay(folder: &Folder, db: &str, chain: &str, more: &[&str]) -> Run {
    let words = ["replay", "--memory", "64MiB", "--db", db, chain];
    folder.run(&[&words[..], more].concat())
}

fn remove(folder: &Folder, dbs: &[&str]) {
    for db in dbs {
        std::fs::remove_dir_all(folder.path(db)).expect("removed");
    }
}

/// Converts the state in the middle of a chain from every tree to every tree. The source does not show in the target: every target of a
/// tree has the same root, also under AR16MT, whose root depends on the order in which leaves were written. So the rest of the chain is
/// replayed over one target of each tree, which is also converted back.
fn every_pair(folder: &Folder, chain: &str, middle: u64) {
    replay(folder, "whole", chain, &[]).ok();
    let (head, at_end) = (folder.status("whole"), accounts(folder, "whole"));
    let to = middle.to_string();
    let mut roots: BTreeMap<&str, Value> = BTreeMap::new();
    let mut in_the_middle = None;
    for from in trees() {
        replay(folder, "from", chain, &["--tree", from, "--to", &to]).ok();
        let of_source = accounts(folder, "from");
        let wanted = in_the_middle.get_or_insert_with(|| of_source.clone());
        assert_eq!(&of_source, wanted, "{from}");
        for tree in trees() {
            let what = format!("{from} to {tree}");
            convert(folder, "from", "there", &["--tree", tree]).ok();
            assert!(!folder.path("there").join("convert").exists(), "{what}");
            let root = folder.status("there")["stateRoot"].clone();
            if let Some(of_first) = roots.get(tree) {
                assert_eq!(&root, of_first, "{what}");
                remove(folder, &["there"]);
                continue;
            }
            roots.insert(tree, root);
            convert(folder, "there", "back", &["--tree", from]).ok();
            for db in ["there", "back"] {
                assert_eq!(&accounts(folder, db), wanted, "{what}: {db}");
            }
            replay(folder, "there", chain, &["--check-state", "1"]).ok();
            assert_eq!(folder.status("there")["block"], head["block"], "{what}");
            assert_eq!(accounts(folder, "there"), at_end, "{what}");
            folder
                .run(&["verify", "--memory", "64MiB", "--db", "there"])
                .ok();
            remove(folder, &["there", "back"]);
        }
        remove(folder, &["from"]);
    }
}

#[test]
fn every_tree_goes_on_from_every_other_one() {
    let folder = Folder::with_chain();
    every_pair(&folder, "chain", 6);
}

#[test]
fn a_real_chain_goes_on_under_every_tree() {
    let test = "a_real_chain_goes_on_under_every_tree";
    let Some(chain) = shared("data/chains/geth-ethtest", test) else {
        return;
    };
    every_pair(&Folder::new(), chain.to_str().expect("a path"), 350);
}

#[test]
fn dumps_are_converted_from_files_and_pipes() {
    let folder = Folder::with_chain();
    replay(&folder, "db", "chain", &["--to", "6"]).ok();
    let dump = folder.run(&["dump", "--db", "db"]).ok().stdout();
    std::fs::write(folder.path("dump"), &dump).expect("written");
    let packed = std::process::Command::new("gzip")
        .args(["-k", "dump"])
        .current_dir(folder.0.path())
        .status();
    assert!(packed.expect("gzip runs").success());
    let wanted = accounts(&folder, "db");
    let forms = ["dump", "dump.gz", "-"];
    for (tree, from) in trees().into_iter().zip(forms.into_iter().cycle()) {
        let chain = ["--tree", tree, "--ancestors", "chain", "--at", "6"];
        let words = ["convert", "--memory", "64MiB", "--from", from, "--to", "to"];
        let words = [&words[..], &chain].concat();
        folder.run_with_input(&words, &dump).ok();
        assert_eq!(accounts(&folder, "to"), wanted, "{tree} from {from}");
        replay(&folder, "to", "chain", &["--check-state", "1"]).ok();
        remove(&folder, &["to"]);
    }
    for tree in &trees()[..2] {
        // Without its chain it can be read and proven, and says what a replay lacks.
        convert(&folder, "dump", "to", &["--tree", tree]).ok();
        assert_eq!(accounts(&folder, "to"), wanted);
        let address = wanted.keys().next().expect("an account");
        folder
            .run(&["prove", "--db", "to", "--memory", "64MiB", address])
            .ok();
        folder
            .run(&["verify", "--db", "to", "--memory", "64MiB"])
            .ok();
        replay(&folder, "to", "chain", &["--tree", tree]).fails_with(&["--ancestors"]);
        remove(&folder, &["to"]);
        let genesis = [
            "--tree",
            tree,
            "--genesis",
            "chain/genesis.json",
            "--at",
            "6",
        ];
        convert(&folder, "dump", "to", &genesis).ok();
        replay(&folder, "to", "chain", &["--tree", tree]).fails_with(&["--ancestors"]);
        remove(&folder, &["to"]);
    }
    let tree = trees()[0];
    let other = ["--tree", tree, "--ancestors", "chain", "--at", "5"];
    convert(&folder, "dump", "to", &other).fails_with(&["the dump has state root", "--at"]);
    assert!(!folder.path("to").exists());
}

/// A false dump was refused at the end, and a replay went on over what it had made, with exit code 0.
#[test]
fn nothing_goes_on_over_a_target_that_is_not_its_source() {
    let folder = Folder::with_chain();
    replay(&folder, "db", "chain", &["--to", "6"]).ok();
    let dump = folder.run(&["dump", "--db", "db"]).ok().stdout();
    let balance = "\"balance\":\"1";
    assert!(dump.contains(balance));
    let false_dump = dump.replacen(balance, "\"balance\":\"2", 1);
    std::fs::write(folder.path("dump"), false_dump).expect("written");
    // One tree has its root in headers, the other does not.
    for tree in &trees()[..2] {
        let chain = ["--tree", tree, "--ancestors", "chain", "--at", "6"];
        convert(&folder, "dump", "to", &chain).fails_with(&["root"]);
        let told = [
            "the conversion into to is not finished",
            "`arbor convert --memory 64MiB --from dump --to to",
        ];
        replay(&folder, "to", "chain", &["--tree", tree]).fails_with(&told);
        folder
            .run(&["rollback", "--db", "to", "--to", "6"])
            .fails_with(&told);
        remove(&folder, &["to"]);
    }
}

#[test]
fn a_genesis_is_converted() {
    let folder = Folder::with_chain();
    for tree in trees() {
        convert(&folder, "chain/genesis.json", "to", &["--tree", tree]).ok();
        replay(&folder, "to", "chain", &["--check-state", "1"]).ok();
        replay(&folder, "made", "chain", &["--tree", tree]).ok();
        let roots = ["to", "made"].map(|db| folder.status(db)["stateRoot"].clone());
        // AR16MT numbers the leaves of a genesis in the same order.
        assert_eq!(roots[0], roots[1], "{tree}");
        remove(&folder, &["to", "made"]);
    }
}

#[test]
fn an_older_block_is_converted_and_the_source_is_left_alone() {
    let folder = Folder::with_chain();
    let trees = trees();
    replay(&folder, "db", "chain", &["--tree", trees[0]]).ok();
    replay(&folder, "older", "chain", &["--to", "4"]).ok();
    let before = files(&folder.path("db"));
    let [at_end, older] = ["db", "older"].map(|db| accounts(&folder, db));
    // In the source's order, and in another.
    for tree in &trees[..2] {
        convert(&folder, "db", "to", &["--tree", tree, "--at", "4"]).ok();
        assert_eq!(folder.status("to")["block"], 4);
        assert_eq!(accounts(&folder, "to"), older);
        replay(&folder, "to", "chain", &["--check-state", "1"]).ok();
        assert_eq!(accounts(&folder, "to"), at_end);
        remove(&folder, &["to"]);
    }
    assert_eq!(files(&folder.path("db")), before);
}

/// All files of a folder and their bytes.
fn files(folder: &Path) -> BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("listed") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => {
                let bytes = std::fs::read(&path).expect("read");
                found.insert(path, bytes);
            }
        }
    }
    found
}

#[test]
fn what_cannot_be_converted_is_refused_before_anything_is_written() {
    let folder = Folder::with_chain();
    replay(&folder, "db", "chain", &[]).ok();
    let tree = trees()[1];
    let refused = |from: &str, to: &str, more: &[&str], why: &[&str]| {
        let words = [&["--tree", tree][..], more].concat();
        convert(&folder, from, to, &words).fails_with(why);
    };
    refused("db", "db", &[], &["db has a database already"]);
    refused("db", "chain/chain.rlp", &[], &["chain.rlp is a file"]);
    refused("db", "to", &["--part", "3/2"], &["'3/2' is no part"]);
    refused("db", "to", &["--hash", "keccak"], &["--hash"]);
    refused("nothing", "to", &[], &["nothing"]);
    refused("chain/chain.rlp", "to", &[], &["no dump"]);
    refused(
        "db",
        "to",
        &["--ancestors", "chain"],
        &["--ancestors is of no use with a database"],
    );
    refused(
        "chain/genesis.json",
        "to",
        &["--at", "3"],
        &["--at 3 is of no use"],
    );
    refused(
        "db",
        "to",
        &["--at", "1000"],
        &["block 1000 is not in the database"],
    );
    assert!(!folder.path("to").exists());
}

/// A dump of another tree than Merkle-Patricia's named that tree's root, and was refused as a source.
#[test]
fn a_dump_of_every_tree_is_a_source() {
    let folder = Folder::with_chain();
    let mut roots = BTreeMap::new();
    for tree in trees() {
        replay(&folder, "db", "chain", &["--tree", tree]).ok();
        for at in ["latest", "5"] {
            let dump = folder
                .run(&["dump", "--db", "db", "--at", at])
                .ok()
                .stdout();
            let first: Value =
                serde_json::from_str(dump.lines().next().expect("a line")).expect("JSON");
            let root = roots.entry(at).or_insert_with(|| first.clone());
            assert_eq!(&first, root, "{tree} at {at}");
            std::fs::write(folder.path("dump"), &dump).expect("written");
        }
        let chain = ["--tree", tree, "--ancestors", "chain", "--at", "5"];
        convert(&folder, "dump", "to", &chain).ok();
        replay(&folder, "to", "chain", &["--check-state", "1"]).ok();
        assert_eq!(accounts(&folder, "to"), accounts(&folder, "db"), "{tree}");
        remove(&folder, &["to"]);
        remove(&folder, &["db"]);
    }
}

#[test]
fn a_finished_conversion_has_nothing_to_do() {
    let folder = Folder::with_chain();
    replay(&folder, "db", "chain", &["--to", "6"]).ok();
    let words = ["--tree", trees()[1]];
    convert(&folder, "db", "to", &words).ok();
    let before = files(&folder.path("to"));
    convert(&folder, "db", "to", &words).ok();
    assert_eq!(files(&folder.path("to")), before);
    // Also after blocks were replayed over it.
    replay(&folder, "to", "chain", &["--to", "7"]).ok();
    convert(&folder, "db", "to", &words).ok();
    assert_eq!(folder.status("to")["block"], 7);
    let other = ["--tree", trees()[1], "--at", "5"];
    convert(&folder, "db", "to", &other).fails_with(&["has a database already", "block 6"]);
}

/// A kill while the files of a finished conversion were being removed left some of them for ever, or the next run compared the target
/// with files that were gone.
#[test]
fn what_a_finished_conversion_has_not_removed_goes_with_its_next_run() {
    let folder = Folder::with_chain();
    replay(&folder, "db", "chain", &["--to", "6"]).ok();
    let words = ["--tree", trees()[1]];
    convert(&folder, "db", "to", &words).ok();
    let files = folder.path("to/convert");
    let mut job: Value =
        serde_json::from_slice(&std::fs::read(folder.path("to/converted.json")).expect("read"))
            .expect("JSON");
    job["stage"] = "verify".into();
    for left in [
        ("accounts-00", String::new()),
        ("job.json", job.to_string()),
    ] {
        std::fs::create_dir(&files).expect("made");
        std::fs::write(files.join(left.0), left.1).expect("written");
        let again = convert(&folder, "db", "to", &words);
        again.ok();
        let told = again.stdout() + &again.stderr();
        assert!(told.contains("there is nothing to do"), "{told}");
        assert!(!files.exists());
    }
}

#[test]
fn the_target_has_the_settings_that_are_asked_for() {
    let folder = Folder::with_chain();
    let rows = arbor_trees::standard();
    for row in rows.rows() {
        let words = row
            .settings
            .iter()
            .take(1)
            .map(|setting| match setting.usual {
                Some(usual) => format!("{}={usual}", setting.name),
                None => setting.name.to_owned(),
            });
        for word in words {
            let tree = format!("{}:{word}", row.name);
            let whole = ["--tree", row.name, "--tree-settings", &word];
            convert(&folder, "chain/genesis.json", "a", &["--tree", &tree]).ok();
            convert(&folder, "chain/genesis.json", "b", &whole).ok();
            let settings = ["a", "b"].map(|db| folder.status(db)["treeSettings"].clone());
            assert_eq!(settings[0], settings[1], "{tree}");
            replay(&folder, "a", "chain", &[]).ok();
            remove(&folder, &["a", "b"]);
        }
        for hash in row.hashes.iter().skip(1).take(1) {
            let words = ["--tree", row.name, "--hash", hash];
            convert(&folder, "chain/genesis.json", "a", &words).ok();
            assert_eq!(folder.status("a")["hash"], *hash, "{}", row.name);
            replay(&folder, "a", "chain", &[]).ok();
            remove(&folder, &["a"]);
        }
    }
    convert(
        &folder,
        "chain/genesis.json",
        "a",
        &["--tree", "mpt:nothing"],
    )
    .fails_with(&["'nothing' in --tree mpt:nothing is no setting"]);
}

#[test]
fn parts_are_joined_to_a_database_that_goes_on() {
    let folder = Folder::with_chain();
    replay(&folder, "db", "chain", &["--to", "6"]).ok();
    replay(&folder, "end", "chain", &[]).ok();
    let [in_db, at_end] = ["db", "end"].map(|db| accounts(&folder, db));
    for row in arbor_trees::standard()
        .rows()
        .filter(|row| row.tree().build().is_some())
    {
        let tree = ["--tree", row.name];
        convert(&folder, "db", "whole", &tree).ok();
        for part in ["1/2", "2/2"] {
            let to = format!("part-{}", &part[..1]);
            convert(&folder, "db", &to, &[&tree[..], &["--part", part]].concat()).ok();
        }
        let join = |parts: &[&str]| {
            let words = ["convert", "join", "--memory", "64MiB", "--to", "to"];
            folder.run(&[&words[..], parts].concat())
        };
        join(&["part-1"]).fails_with(&["part 2/2 is missing"]);
        join(&["part-1", "whole"]).fails_with(&["whole is not a part"]);
        assert!(!folder.path("to").exists());
        join(&["part-2", "part-1"]).ok();
        join(&["part-2", "part-1"]).ok();
        let roots = ["to", "whole"].map(|db| folder.status(db)["stateRoot"].clone());
        assert_eq!(roots[0], roots[1], "{}", row.name);
        assert_eq!(accounts(&folder, "to"), in_db);
        replay(&folder, "to", "chain", &["--check-state", "1"]).ok();
        assert_eq!(accounts(&folder, "to"), at_end);
        folder
            .run(&["verify", "--memory", "64MiB", "--db", "to"])
            .ok();
        remove(&folder, &["to", "whole", "part-1", "part-2"]);
    }
}

/// Commands that read a target named no way to go on with its conversion.
#[test]
fn commands_say_that_a_conversion_is_not_finished() {
    let folder = Folder::with_chain();
    replay(&folder, "db", "chain", &["--to", "6"]).ok();
    let dump = folder.run(&["dump", "--db", "db"]).ok().stdout();
    // The estimate would find the line before anything is written.
    let words = ["--tree", trees()[0], "--skip-disk-check"];
    // A line that cannot be converted ends the sort.
    std::fs::write(folder.path("dump"), dump.clone() + "{}\n").expect("written");
    convert(&folder, "dump", "to", &words).fails_with(&["line "]);
    for command in ["status", "dump", "verify"] {
        let told = ["conversion into to is not finished", "--from dump --to to"];
        folder.run(&[command, "--db", "to"]).fails_with(&told);
    }
    // Another dump with the same first line does not go on in the folder.
    let lines = dump.lines().enumerate();
    let lines = lines.filter_map(|(number, line)| (number != 1).then_some(line));
    let other = lines.collect::<Vec<_>>().join("\n");
    std::fs::write(folder.path("dump"), other).expect("written");
    convert(&folder, "dump", "to", &words).fails_with(&["was begun as another conversion"]);
}

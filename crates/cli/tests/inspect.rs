//! `arbor inspect` and `arbor compact`: what a database consists of, and giving space back.

use std::collections::BTreeMap;
use std::fs;

use crate::support::{self, Folder};
use serde_json::Value;

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

/// Counts of the dump: accounts, slots by account, codes by account.
fn dumped(folder: &Folder, db: &str) -> BTreeMap<String, (u64, u64)> {
    let dump = folder.run(&["dump", "--db", db]).ok().stdout();
    let accounts = dump.lines().skip(1).map(|line| {
        let account: Value = serde_json::from_str(line).expect("JSON");
        let slots = account["storage"]
            .as_object()
            .map_or(0, |slots| slots.len());
        let code = account["code"]
            .as_str()
            .map_or(0, |code| code.len() / 2 - 1);
        let address = account["address"].as_str().expect("an address").to_owned();
        (address, (slots as u64, code as u64))
    });
    accounts.collect()
}

/// Under every tree the counts are those of the dump.
#[test]
fn counts_are_those_of_the_state() {
    let folder = Folder::with_chain();
    for tree in ["mpt", "verkle", "ar16mt", "eip8297", "eip7864"] {
        let replay = format!("replay --db {tree} --tree {tree} chain");
        folder.run(&words(&replay)).ok();
        let found = folder
            .run(&words(&format!("inspect --db {tree} --json --top 3")))
            .ok()
            .json();
        assert_eq!(found["complete"], true);
        assert_eq!(found["tree"], tree);
        assert!(number(&found["diskBytes"]) > 0);
        let accounts = dumped(&folder, tree);
        // Trees that forget no leaf count those that are gone, too.
        let exact = ["mpt", "eip8297"].contains(&tree);
        let at_least = |found: &Value, least: u64, what: &str| {
            let found = number(found);
            assert!(
                found >= least && (!exact || found == least),
                "{tree} {what}: {found}, {least}"
            );
        };
        at_least(&found["accounts"], accounts.len() as u64, "accounts");
        let slots = accounts.values().map(|(slots, _)| slots).sum();
        at_least(&found["storage"]["slots"], slots, "slots");
        let largest = found["storage"]["largest"].as_array().expect("a list");
        let most = accounts
            .values()
            .map(|(slots, _)| *slots)
            .max()
            .expect("accounts");
        at_least(&largest[0]["slots"], most, "most slots");
        let address = largest[0]["address"].as_str().expect("an address");
        assert!(accounts[address].0 > 0, "{tree}: {address}");
        let buckets = found["storage"]["slotsPerAccount"]
            .as_array()
            .expect("a list");
        let in_buckets: u64 = buckets.iter().map(|bucket| number(&bucket["count"])).sum();
        assert_eq!(in_buckets, number(&found["storage"]["accounts"]), "{tree}");
        let code = &found["codes"]["largest"][0];
        let longest = accounts
            .values()
            .map(|(_, code)| *code)
            .max()
            .expect("accounts");
        assert!(number(&code["bytes"]) >= longest, "{tree}");
        let tables = found["tables"].as_array().expect("a list");
        let table = |name: &str| tables.iter().find(|table| table["table"] == name);
        assert!(
            number(&table("undo").expect("undo")["records"]) > 0,
            "{tree}"
        );
        let entries = found["history"].as_array().expect("a list").iter();
        assert!(
            entries.map(|of| number(&of["entries"])).sum::<u64>() > 0,
            "{tree}"
        );
        nodes_agree(&found, tree, accounts.len() as u64);
    }
}

fn nodes_agree(found: &Value, tree: &str, accounts: u64) {
    let nodes = found["nodes"].as_array().expect("a list");
    let count = |trie: &str, kind: &str| {
        let found = nodes
            .iter()
            .find(|of| of["trie"] == trie && of["kind"] == kind);
        number(&found.unwrap_or_else(|| panic!("{tree}: no {kind} of {trie}"))["count"])
    };
    for of in nodes {
        let depths = of["byDepth"].as_array().expect("a list");
        let sum: u64 = depths.iter().map(number).sum();
        assert_eq!(sum, number(&of["count"]), "{tree}");
    }
    let occupied = found["occupancy"].as_array().expect("a list");
    let occupied: u64 = occupied.iter().map(|bucket| number(&bucket["count"])).sum();
    match tree {
        "mpt" => {
            assert_eq!(count("accounts", "leaf"), accounts);
            assert!(count("storage", "leaf") > 0);
            assert_eq!(occupied, 0);
        }
        "verkle" => assert_eq!(count("state", "leaf"), occupied),
        "eip8297" | "eip7864" => {
            // Each account has two leaves of fields at least, and a branch of two children above every leaf but one.
            let leaves = count("state", "leaf");
            assert!(leaves >= 2 * accounts, "{leaves} leaves");
            assert_eq!(count("state", "branch"), leaves - 1);
        }
        _ => {
            let tables = found["tables"].as_array().expect("a list");
            let leaves = tables.iter().find(|table| table["table"] == "leaves");
            let leaves = number(&leaves.expect("leaves")["records"]);
            assert_eq!(count("state", "leaf"), leaves);
        }
    }
}

#[test]
fn figures_are_written_as_csv_and_text() {
    let folder = Folder::with_chain();
    folder.run(&words("replay --db db chain")).ok();
    let text = folder
        .run(&words("inspect --db db --csv figures"))
        .ok()
        .stdout();
    for part in [
        "size on disk",
        "table ",
        "undo",
        "branch",
        "history (undo records)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let tables = std::fs::read_to_string(folder.path("figures/tables.csv")).expect("written");
    assert!(
        tables.starts_with("table,complete,records,key_bytes,value_bytes\ncode,true,"),
        "{tables}"
    );
    let files = std::fs::read_dir(folder.path("figures")).expect("a folder");
    assert_eq!(files.count(), 8);
    for file in [
        "nodes",
        "slots-per-account",
        "largest-storage",
        "codes-by-bytes",
        "largest-codes",
        "history",
    ] {
        let path = folder.path(&format!("figures/{file}.csv"));
        let text = std::fs::read_to_string(path).expect("written");
        let columns = |line: &str| line.split(',').count();
        let mut lines = text.lines();
        let first = lines.next().expect("names of columns");
        assert!(lines.clone().count() > 0, "{file}");
        assert!(
            lines.all(|line| columns(line) == columns(first)),
            "{file}: {text}"
        );
    }
    for flag in ["--csv", "--html"] {
        let inspect = ["inspect", "--db", "db", flag, "db/fjall"];
        folder
            .run(&inspect)
            .fails_with(&[flag, "the database's own"]);
    }
}

/// The page has the figures of `--json` and asks for nothing else. A browser opens it in `scripts/check.sh report`.
#[test]
fn a_page_shows_the_figures() {
    let folder = Folder::with_chain();
    folder
        .run(&words("replay --db db --tree verkle chain"))
        .ok();
    let found = folder
        .run(&words("inspect --db db --json --html page.html"))
        .ok()
        .json();
    let page = std::fs::read_to_string(folder.path("page.html")).expect("written");
    let (_, data) = page.split_once("id=\"data\">").expect("the data");
    let (data, _) = data.split_once("</script>").expect("their end");
    let data: Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(data["inspections"]["verkle"], found);
    assert_eq!(data["settings"]["db"], "db");
    assert!(page.len() < 3_000_000, "{}", page.len());
    folder
        .run(&words("inspect --db db --html nowhere/page.html"))
        .fails_with(&["--html nowhere/page.html"]);
}

#[cfg(unix)]
#[test]
fn a_stopped_inspection_prints_what_it_has() {
    use std::process::{Command, Stdio};
    let folder = Folder::new();
    let loadtest = "loadtest 8 50000 --db db --tree mpt";
    folder.run(&words(loadtest)).ok();
    let mut command = Command::new(env!("CARGO_BIN_EXE_arbor"));
    let command = command
        .args(words("inspect --db db --json"))
        .current_dir(folder.0.path());
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    // It may be done before it is asked: then it is complete.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let pid = child.id().to_string();
    Command::new("kill")
        .args(["-INT", &pid])
        .status()
        .expect("kill runs");
    let done = support::Run(child.wait_with_output().expect("it ends"));
    let found: Value = serde_json::from_str(&done.stdout()).unwrap_or(Value::Null);
    match done.0.status.code() {
        Some(130) if found.is_object() => assert!(found["tables"].is_array()),
        Some(0) => assert_eq!(found["complete"], true),
        // Asked before it listened.
        None => {}
        code => panic!("{code:?}: {}{}", done.stdout(), done.stderr()),
    }
}

/// The files of tables below a folder, with their lengths.
fn table_files(folder: &std::path::Path, found: &mut Vec<(u64, std::path::PathBuf)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let is_table = path.parent().is_some_and(|of| of.ends_with("tables"));
        match path.is_dir() {
            true => table_files(&path, found),
            false if is_table => found.push((path.metadata().expect("a file").len(), path)),
            false => {}
        }
    }
}

/// An inspection of a damaged database lost all that it had counted until then.
#[test]
fn a_damaged_record_costs_no_figures() {
    let folder = Folder::new();
    folder
        .run(&words("generate --preset demo --out chain"))
        .ok();
    folder.run(&words("replay --db db chain --compact")).ok();
    let mut files = Vec::new();
    table_files(&folder.path("db"), &mut files);
    let (length, file) = files.into_iter().max().expect("a file");
    let mut bytes = fs::read(&file).expect("read");
    let middle = usize::try_from(length / 2).expect("small");
    bytes[middle..middle + 64]
        .iter_mut()
        .for_each(|byte| *byte ^= 0xff);
    fs::write(&file, bytes).expect("written");
    let run = folder.run(&words("inspect --db db --json"));
    run.fails_with(&["db: "]);
    let found: Value = serde_json::from_str(&run.stdout()).expect("JSON");
    assert_eq!(found["complete"], false);
    assert!(found["fault"].is_string(), "{found}");
    let records = found["tables"].as_array().expect("tables").iter();
    let records: u64 = records.filter_map(|table| table["records"].as_u64()).sum();
    assert!(records > 100, "{found}");
}

/// Pruned history kept its space, and the way to get it back needed a chain.
#[test]
fn compact_gives_the_space_of_history_back() {
    let folder = Folder::new();
    folder
        .run(&words("generate --preset demo --blocks 120 --out chain"))
        .ok();
    folder
        .run(&words("replay --db all --retain all chain --memory 64MiB"))
        .ok();
    folder
        .run(&words(
            "replay --db none --retain none chain --compact --memory 64MiB",
        ))
        .ok();
    let said = folder
        .run(&words("prune --db all --retain none"))
        .ok()
        .stdout();
    assert!(
        said.contains("size on disk") && said.contains("arbor compact --db all"),
        "{said}"
    );
    let before = number(&folder.status("all")["diskBytes"]);
    let done = folder.run(&words("compact --db all --json")).ok().json();
    assert_eq!(number(&done["diskBytesBefore"]), before);
    let after = number(&folder.status("all")["diskBytes"]);
    assert_eq!(number(&done["diskBytesAfter"]), after);
    let wanted = number(&folder.status("none")["diskBytes"]);
    assert!(
        after < before && after <= wanted * 5 / 4,
        "{before}, {after}, {wanted}"
    );
    folder.run(&words("verify --db all")).ok();
    // Blocks can be added to what was emptied.
    folder.run(&words("rollback --db none --to -0")).ok();
    folder
        .run(&words("generate --preset demo --blocks 150 --out chain"))
        .ok();
    folder.run(&words("replay --db all chain")).ok();
    folder.run(&words("verify --db all")).ok();
}

/// The journal of a database whose blocks were each made durable kept its space after a merge.
#[test]
fn a_merge_gives_the_journals_space_back() {
    let folder = Folder::new();
    folder
        .run(&words("generate --preset demo --blocks 120 --out chain"))
        .ok();
    folder
        .run(&words("replay --db plain --retain none chain --compact"))
        .ok();
    folder
        .run(&words(
            "replay --db durable --retain none --durable chain --compact --report r.json",
        ))
        .ok();
    let [plain, durable] = ["plain", "durable"].map(|db| number(&folder.status(db)["diskBytes"]));
    assert!(
        durable <= plain * 5 / 4,
        "{durable} bytes, {plain} of the other"
    );
    let report = std::fs::read(folder.path("r.json")).expect("written");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(number(&report["results"]["disk_bytes"]), durable);
    folder.run(&words("verify --db durable")).ok();
}

/// A merge that is killed leaves the database as it was, and the next one frees the space.
#[cfg(unix)]
#[test]
fn a_killed_merge_loses_nothing() {
    use std::process::{Command, Stdio};
    let folder = Folder::new();
    folder
        .run(&words("generate --preset demo --blocks 120 --out chain"))
        .ok();
    folder.run(&words("replay --db db --retain all chain")).ok();
    let root = folder.status("db")["stateRoot"].clone();
    for milliseconds in [20, 60, 100, 140] {
        let mut merge = Command::new(env!("CARGO_BIN_EXE_arbor"))
            .args(words("compact --db db"))
            .current_dir(folder.0.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("starts");
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        merge.kill().expect("killed, or it has ended");
        merge.wait().expect("it has ended");
        folder.run(&words("verify --db db")).ok();
        assert_eq!(folder.status("db")["stateRoot"], root);
    }
    let whole = number(&folder.run(&words("compact --db db --json")).ok().json()["diskBytesAfter"]);
    folder
        .run(&words("replay --db other --retain all --compact chain"))
        .ok();
    let wanted = number(&folder.status("other")["diskBytes"]);
    assert!(whole <= wanted * 5 / 4, "{whole}, {wanted}");
}

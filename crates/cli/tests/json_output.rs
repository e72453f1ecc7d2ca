//! `--json` of each command: the form is fixed, and standard output has nothing else.

use crate::support::{Folder, an_account};
use serde_json::{Value, json};

/// Replaces what differs from run to run or between machines.
fn stable(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let varies = name.ends_with("seconds")
                    || name.starts_with("diskBytes")
                    || name == "file_bytes"
                    || name == "fileBytes";
                match varies {
                    true => *field = json!("varies"),
                    false => stable(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(stable),
        _ => {}
    }
}

/// The values that a command prints, one after another.
fn printed(folder: &Folder, words: &str) -> Vec<Value> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let out = folder.run(&words).ok().stdout();
    let values = serde_json::Deserializer::from_str(&out).into_iter();
    let values: Result<Vec<Value>, _> = values.collect();
    let mut values = values.expect("JSON alone on standard output");
    assert!(!values.is_empty(), "{words:?}");
    values.iter_mut().for_each(stable);
    values
}

fn one(folder: &Folder, words: &str) -> Value {
    let mut values = printed(folder, words);
    assert_eq!(values.len(), 1, "{words}");
    values.remove(0)
}

fn folder_with_database() -> Folder {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    folder
}

const NOBODY: &str = "0x00000000000000000000000000000000000000aa";

#[test]
fn commands_that_read_a_database() {
    let folder = folder_with_database();
    let (address, slot) = an_account(&folder);
    let root = folder.status("db")["stateRoot"].clone();
    let root = root.as_str().expect("a root");
    let shown = |words: &str| one(&folder, words);
    insta::assert_json_snapshot!("status", shown("status --db db --json"));
    let get = format!("get --db db {address}");
    insta::assert_json_snapshot!("get_account", shown(&format!("{get} --json")));
    insta::assert_json_snapshot!("get_slot", shown(&format!("{get} {slot} --json")));
    let code = shown(&format!("{get} --code --json"));
    assert!(code["code"].as_str().expect("code").len() > 2, "{code}");
    let absent = shown(&format!("get --db db {NOBODY} --json"));
    insta::assert_json_snapshot!("get_absent", absent);
    let roots = printed(&folder, "roots --db db --from 3 --to 4 --json");
    insta::assert_json_snapshot!("roots", roots);
    insta::assert_json_snapshot!("verify", shown("verify --db db --json"));
    folder
        .run(&["prove", "--db", "db", &address, &slot, "--out", "p.json"])
        .ok();
    let proof = format!("verify-proof p.json --root {root} --json");
    insta::assert_json_snapshot!("verify_proof", shown(&proof));
    let witness = "witness --db db --block latest chain --out w.json.gz --json";
    insta::assert_json_snapshot!("witness", shown(witness));
    insta::assert_json_snapshot!("verify_witness", shown("verify-witness w.json.gz --json"));
    let judged = shown("replay --witness w.json.gz --accept-partial --json");
    insta::assert_json_snapshot!("replay_witness", judged);
}

/// `prove` and `dump` refused the flag, and files of preimages were only described in words.
#[test]
fn commands_whose_output_is_a_file_or_json_in_any_case() {
    let folder = folder_with_database();
    let (address, slot) = an_account(&folder);
    let prove = format!("prove --db db {address} {slot}");
    let proof = one(&folder, &prove);
    assert_eq!(one(&folder, &format!("{prove} --json")), proof);
    assert_eq!(
        printed(&folder, "dump --db db --json"),
        printed(&folder, "dump --db db")
    );
    let made = one(&folder, "preimages export --db db --out names.bin --json");
    let count = made["preimages"].as_u64().expect("a number");
    assert!(count > 10, "{made}");
    let import = "preimages import names.bin --out sorted.bin --json";
    let sorted = json!({ "file": "sorted.bin", "fileBytes": "varies", "preimages": count });
    assert_eq!(one(&folder, import), sorted);
    let compare = "compare --trees mpt --repeat 1 --no-survey --growth 0 --out c chain --json";
    let compared = one(&folder, compare);
    assert_eq!(compared["command"], "compare");
    assert_eq!(compared["results"]["trees"][0]["name"], "mpt");
}

#[test]
fn commands_that_change_a_database() {
    let folder = folder_with_database();
    let shown = |words: &str| one(&folder, words);
    insta::assert_json_snapshot!("rollback", shown("rollback --db db --to -2 --json"));
    insta::assert_json_snapshot!("prune", shown("prune --db db --before -3 --json"));
    insta::assert_json_snapshot!("backup", shown("backup --db db --to copy --json"));
    insta::assert_json_snapshot!("compact", shown("compact --db db --json"));
    insta::assert_json_snapshot!("repair_whole", shown("repair --db db --json"));
    std::fs::remove_file(folder.path("db/HEAD")).expect("removed");
    insta::assert_json_snapshot!("repair_written", shown("repair --db db --json"));
}

#[test]
fn snapshots_and_chains() {
    let folder = Folder::with_chain();
    let made = one(&folder, "generate --preset tiny --out other --json");
    insta::assert_json_snapshot!("generate", made);
    let replay = "replay --db a --tree ar16mt chain --json";
    let report = one(&folder, replay);
    assert_eq!(report["schema"], "arboretum/1");
    assert_eq!(report["command"], "replay");
    let snapshot = one(&folder, "snapshot --db a --out leaves --json");
    insta::assert_json_snapshot!("snapshot", snapshot);
    let recover = "recover --db b leaves --genesis chain/genesis.json --json";
    insta::assert_json_snapshot!("recover", one(&folder, recover));
    let (address, _) = an_account_of(&folder, "b");
    let proof = "prove --db b --range 0x00..0x07 --out p.json";
    folder
        .run(&proof.split_whitespace().collect::<Vec<_>>())
        .ok();
    let root = folder.status("b")["stateRoot"].clone();
    let proof = format!(
        "verify-proof p.json --root {} --json",
        root.as_str().expect("a root")
    );
    let shown = one(&folder, &proof);
    assert_eq!(shown["holds"], true, "{address}");
    assert!(shown["range"]["from"].is_string(), "{shown}");
}

fn an_account_of(folder: &Folder, db: &str) -> (String, u64) {
    let dump = folder.run(&["dump", "--db", db]).ok().stdout();
    let line = dump.lines().nth(1).expect("an account");
    let account: Value = serde_json::from_str(line).expect("JSON");
    let nonce = account["nonce"].as_u64().expect("a nonce");
    (
        account["address"].as_str().expect("an address").to_owned(),
        nonce,
    )
}

/// Reports are printed whole, without the tables that people read.
#[test]
fn measurements() {
    let folder = folder_with_database();
    for (words, command) in [
        ("replay --store memory chain --json", "replay"),
        ("replay --tree none chain --json", "replay"),
        ("bench parallel chain --json", "bench parallel"),
        ("bench engine chain --to 3 --json", "bench engine"),
        ("bench witnesses chain --to 3 --json", "bench witnesses"),
        ("loadtest 2 100 -M --json", "loadtest"),
        (
            "bench database --db db --proofs 1 --updates 1 --json",
            "bench database",
        ),
    ] {
        let report = one(&folder, words);
        assert_eq!(report["command"], command, "{words}");
        assert!(
            report["results"].is_object() || report["results"].is_array(),
            "{words}"
        );
    }
}

/// A witness that does not hold has a line of its own, and the others are printed, too.
#[test]
fn bad_witnesses_have_a_line() {
    let folder = folder_with_database();
    let words = "witness --db db --block 3 chain --out w.json";
    folder
        .run(&words.split_whitespace().collect::<Vec<_>>())
        .ok();
    let text = std::fs::read_to_string(folder.path("w.json")).expect("a witness");
    let mut witness: Value = serde_json::from_str(&text).expect("JSON");
    witness["stateNodes"] = json!([]);
    std::fs::write(folder.path("bad.json"), witness.to_string()).expect("written");
    let run = folder.run(&["verify-witness", "bad.json", "w.json", "--json"]);
    run.fails_with(&["1 of 2 witnesses"]);
    let out = run.stdout();
    let lines: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 2, "{out}");
    assert_eq!(
        (&lines[0]["holds"], &lines[1]["holds"]),
        (&json!(false), &json!(true))
    );
    assert!(lines[0]["error"].is_string(), "{out}");
}

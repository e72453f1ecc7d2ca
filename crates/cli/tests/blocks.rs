//! How blocks, addresses and slots are named on the command line, and what is said of those that are odd or absent.

use crate::support::{Folder, an_account};
use serde_json::Value;

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The tiny chain with a history of five versions below the latest.
fn folder() -> Folder {
    let folder = Folder::with_chain();
    folder.run(&words("replay --db db --retain 5 chain")).ok();
    folder
}

#[test]
fn a_block_has_four_names() {
    let folder = folder();
    let status = folder.status("db");
    let head = status["block"].as_u64().expect("a block");
    let hash = status["blockHash"].as_str().expect("a hash").to_owned();
    let (address, _) = an_account(&folder);
    let block_at = |at: &str| {
        let run = folder.run(&["get", "--db", "db", &address, "--at", at]);
        run.ok().json()["block"].as_u64().expect("a block")
    };
    assert_eq!(block_at("latest"), head);
    assert_eq!(block_at(&hash), head);
    assert_eq!(block_at("-0"), head);
    assert_eq!(block_at("-3"), head - 3);
    assert_eq!(block_at(&(head - 3).to_string()), head - 3);
    let by_three = folder
        .run(&["get", "--db", "db", &address, "--at=-3"])
        .ok()
        .json();
    let hash = by_three["blockHash"].as_str().expect("a hash").to_owned();
    assert_eq!(block_at(&hash), head - 3);
    let dump = |at: &str| {
        folder
            .run(&["dump", "--db", "db", "--at", at])
            .ok()
            .stdout()
    };
    assert_eq!(dump("-3"), dump(&hash));
    assert_ne!(dump("-3"), dump("latest"));
    let prove = |at: &str| {
        let run = folder.run(&["prove", "--db", "db", &address, "--at", at]);
        run.ok().stdout()
    };
    assert_eq!(prove("-3"), prove(&hash));
    let roots = folder.run(&words("roots --db db --from -2")).ok().stdout();
    assert_eq!(roots.lines().count(), 3, "{roots}");
    let witness = folder.run(&words("witness --db db --block latest chain"));
    assert_eq!(witness.ok().json()["number"], head);
    let rolled = folder
        .run(&["rollback", "--db", "db", "--to", &hash])
        .ok()
        .stdout();
    assert!(
        rolled.contains(&format!("to block {},", head - 3)),
        "{rolled}"
    );
    assert_eq!(folder.status("db")["block"], head - 3);
}

#[test]
fn a_block_that_is_not_retained_is_told_with_the_way_to_keep_more() {
    let folder = folder();
    let head = folder.status("db")["block"].as_u64().expect("a block");
    let range = format!("the states of blocks {} to {head} can be read", head - 5);
    let at = |at: &str| folder.run(&["dump", "--db", "db", "--at", at]);
    at("-6").fails_with(&[
        &format!("block {} is not retained", head - 6),
        &range,
        "--retain N",
    ]);
    at("0").fails_with(&["block 0 is not retained", &range, "--retain all"]);
    at("9999").fails_with(&["block 9999 is not in the database", &range]);
    at("-9999").fails_with(&["-9999 is before block 0"]);
    let nowhere = format!("0x{}", "11".repeat(32));
    at(&nowhere).fails_with(&[&nowhere, "no retained block has the hash", &range]);
    folder.run(&words("prune --db db --retain none")).ok();
    at("-1").fails_with(&[&format!("the state of block {head} alone can be read")]);
}

#[test]
fn odd_words_are_refused_with_what_they_should_be() {
    let folder = folder();
    let (address, _) = an_account(&folder);
    let fails = |line: &str, parts: &[&str]| {
        let run = folder.run(&words(line));
        run.fails_with(parts);
        assert_eq!(run.0.status.code(), Some(2), "{line}");
    };
    fails(
        "get --db db 0x1234",
        &["'0x1234' is not an address", "4 hex digits", "40"],
    );
    fails("get --db db latest", &["is not an address", "--at latest"]);
    fails("get --db db 0xzz", &["'z' is no hex digit"]);
    fails(
        &format!("get --db db {address} latest"),
        &["is no slot", "--at latest"],
    );
    for word in ["pending", "0x10", "head", "1.5"] {
        fails(
            &format!("get --db db {address} --at {word}"),
            &[word, "'latest'"],
        );
    }
    fails(
        &format!("verify-proof p.json --root {address}"),
        &["is not a hash", "40 hex digits", "64"],
    );
    fails(
        "replay --db db --to latest chain",
        &["'latest' is not the number of a block of the chain"],
    );
    fails(
        &format!("prove --db db {address} --also 0x12:1"),
        &["'0x12' is not an address"],
    );
}

/// An empty range printed nothing, as if there were no roots.
#[test]
fn an_empty_range_of_roots_is_refused() {
    let folder = folder();
    folder
        .run(&words("roots --db db --from 9 --to 3"))
        .fails_with(&["the range is empty", "--from 9", "--to 3"]);
    folder
        .run(&words("roots --db db --from 9999"))
        .fails_with(&["the range is empty", "--from 9999", "--to latest"]);
}

/// A script could not tell an account that is absent from a database that cannot be read.
#[test]
fn what_is_absent_is_named_and_no_error() {
    let folder = folder();
    let (address, _) = an_account(&folder);
    let nobody = "0x00000000000000000000000000000000000000aa";
    let get = |line: &[&str]| folder.run(&[&["get", "--db", "db"], line].concat());
    let absent = get(&[nobody]);
    assert_eq!(absent.ok().json()["absent"], true);
    assert!(
        absent
            .stderr()
            .contains(&format!("account {nobody} is absent")),
        "{}",
        absent.stderr()
    );
    let slot = get(&[nobody, "1"]);
    assert_eq!(slot.ok().stdout().trim(), format!("0x{}", "0".repeat(64)));
    assert!(
        slot.stderr().contains("its slots are zero"),
        "{}",
        slot.stderr()
    );
    let slot = get(&[&address, "0xffffffffffffffff"]);
    assert_eq!(slot.ok().stdout().trim(), format!("0x{}", "0".repeat(64)));
    assert!(
        slot.stderr()
            .contains("slot 0xffffffffffffffff of account "),
        "{}",
        slot.stderr()
    );
    let code = get(&[nobody, "--code"]);
    assert_eq!(code.ok().stdout(), "0x\n");
    assert!(code.stderr().contains("is absent"), "{}", code.stderr());
    let there = get(&[&address]);
    assert_eq!(there.ok().json()["absent"], false);
    assert_eq!(there.stderr(), "");
}

/// Addresses are printed in lower case everywhere, as JSON-RPC has them.
#[test]
fn addresses_and_slots_are_printed_in_one_way() {
    let folder = folder();
    let (address, slot) = an_account(&folder);
    assert_eq!(address, address.to_lowercase());
    folder
        .run(&["prove", "--db", "db", &address, &slot, "--out", "p.json"])
        .ok();
    let root = folder.status("db")["stateRoot"].clone();
    let root = root.as_str().expect("a root");
    let out = folder
        .run(&["verify-proof", "p.json", "--root", root])
        .ok()
        .stdout();
    assert!(out.contains(&format!("{address} nonce ")), "{out}");
    let digits = slot.trim_start_matches("0x").trim_start_matches('0');
    let number = format!("0x{}", if digits.is_empty() { "0" } else { digits });
    let line = format!("{address} slot {number} 0x");
    assert!(out.contains(&line), "{line}: {out}");
    let upper = address.to_uppercase().replacen("0X", "0x", 1);
    let get = folder.run(&["get", "--db", "db", &upper]).ok().json();
    assert_eq!(get["address"], address);
}

#[test]
fn a_proof_is_packed_if_its_name_says_so() {
    use std::io::Read;
    let folder = folder();
    let (address, slot) = an_account(&folder);
    let prove = |out: &str| folder.run(&["prove", "--db", "db", &address, &slot, "--out", out]);
    let said = prove("p.json.gz").ok().stderr();
    assert!(
        said.contains("wrote p.json.gz, ") && said.contains("a proof of the form"),
        "{said}"
    );
    prove("p.json").ok();
    let packed = std::fs::File::open(folder.path("p.json.gz")).expect("there");
    let mut text = String::new();
    let mut unpacked = flate2::read::GzDecoder::new(packed);
    unpacked.read_to_string(&mut text).expect("a gzip");
    let plain = std::fs::read_to_string(folder.path("p.json")).expect("there");
    assert_eq!(text, plain);
    let root = folder.status("db")["stateRoot"].clone();
    let root = root.as_str().expect("a root");
    folder
        .run(&["verify-proof", "p.json.gz", "--root", root])
        .ok();
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert!(value.is_object());
}

/// It wrote a file of a Merkle-Patricia database without a word.
#[test]
fn witness_says_what_it_wrote() {
    let folder = folder();
    let run = folder.run(&words(
        "witness --db db --block latest chain --out w.json.gz",
    ));
    let out = run.ok().stdout();
    let head = folder.status("db")["block"].clone();
    assert!(out.starts_with(&format!("block {head}: ")), "{out}");
    assert!(
        out.contains(" nodes, ") && out.contains("wrote w.json.gz, "),
        "{out}"
    );
    assert!(out.contains("root before 0x"), "{out}");
}

/// The flag that geth's behaviour needs was in no error. It helps with accounts alone.
#[test]
fn assume_absent_is_named_where_an_account_cannot_be_shown() {
    let folder = folder();
    folder
        .run(&words("witness --db db --block latest chain --out w.json"))
        .ok();
    let text = std::fs::read_to_string(folder.path("w.json")).expect("a witness");
    let whole: Value = serde_json::from_str(&text).expect("JSON");
    let nodes = whole["stateNodes"].as_array().expect("nodes").len();
    let mut of_accounts = 0;
    for removed in 0..nodes.min(60) {
        let mut less = whole.clone();
        let list = less["stateNodes"].as_array_mut().expect("nodes");
        list.remove(removed);
        std::fs::write(folder.path("less.json"), less.to_string()).expect("written");
        let run = folder.run(&words("replay --witness less.json --accept-partial"));
        let stderr = run.stderr();
        let is_account = stderr.contains("witness: account of ");
        assert_eq!(stderr.contains("--assume-absent"), is_account, "{stderr}");
        of_accounts += usize::from(is_account);
    }
    assert!(of_accounts > 0, "no account's node among {nodes}");
}

//! `arbor accesses`: the rows of a chain's blocks, and what they must agree with.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use arbor_chain::source::open_sources;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use crate::support::{Folder, Run};

type Row = BTreeMap<String, Field>;

fn run(folder: &Folder, line: &str) -> Run {
    folder.run(&line.split_whitespace().collect::<Vec<_>>())
}

fn rows(folder: &Folder, file: &str) -> Vec<Row> {
    let file = File::open(folder.path(file)).expect("a file");
    let reader = SerializedFileReader::new(file).expect("Parquet");
    let rows = reader.get_row_iter(None).expect("rows");
    let rows = rows.map(|row| row.expect("a row").into_columns().into_iter().collect());
    rows.collect()
}

fn number(row: &Row, column: &str) -> u64 {
    match &row[column] {
        Field::ULong(number) => *number,
        Field::UInt(number) => u64::from(*number),
        other => panic!("{column} is {other:?}"),
    }
}

fn flag(row: &Row, column: &str) -> bool {
    match &row[column] {
        Field::Bool(flag) => *flag,
        other => panic!("{column} is {other:?}"),
    }
}

fn bytes<'r>(row: &'r Row, column: &str) -> &'r [u8] {
    match &row[column] {
        Field::Bytes(bytes) => bytes.data(),
        other => panic!("{column} is {other:?}"),
    }
}

fn kind(row: &Row) -> &str {
    match &row["kind"] {
        Field::Str(kind) => kind,
        other => panic!("kind is {other:?}"),
    }
}

/// Counts the rows of each block by the column of `blocks.parquet` that has their number.
fn counts(accesses: &[Row]) -> BTreeMap<(u64, String), u64> {
    let mut counts = BTreeMap::new();
    for row in accesses {
        let of = match kind(row) {
            "account" => "accounts",
            "slot" => "slots",
            "code" => "chunks",
            other => panic!("kind {other}"),
        };
        assert_eq!(of == "slots", row["slot"] != Field::Null);
        assert_eq!(of == "chunks", row["chunk"] != Field::Null);
        assert_eq!(bytes(row, "address").len(), 20);
        assert!(flag(row, "read") || flag(row, "changed"));
        for what in ["read", "changed"] {
            if flag(row, what) {
                let key = (number(row, "block_number"), format!("{of}_{what}"));
                *counts.entry(key).or_default() += 1;
            }
        }
    }
    counts
}

const COUNTS: [&str; 6] = [
    "accounts_read",
    "accounts_changed",
    "slots_read",
    "slots_changed",
    "chunks_read",
    "chunks_changed",
];

#[test]
fn the_rows_of_a_block_add_up() {
    let folder = Folder::with_chain();
    let said = run(&folder, "accesses chain --out mpt").ok().stdout();
    assert!(said.starts_with("blocks 1 to "), "{said}");
    let (accesses, blocks) = (
        rows(&folder, "mpt/accesses.parquet"),
        rows(&folder, "mpt/blocks.parquet"),
    );
    let counts = counts(&accesses);
    run(&folder, "replay --db db chain --blocks blocks.csv").ok();
    let replayed = fs::read_to_string(folder.path("blocks.csv")).expect("rows");
    let mut lines = replayed
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().expect("a header");
    let replayed: Vec<BTreeMap<&str, &str>> = lines
        .map(|cells| names.iter().copied().zip(cells).collect())
        .collect();
    assert_eq!(blocks.len(), replayed.len());
    let mut sums = BTreeMap::new();
    for (block, replayed) in blocks.iter().zip(&replayed) {
        let at = number(block, "block_number");
        for column in COUNTS {
            let counted = counts.get(&(at, column.to_owned())).copied();
            assert_eq!(
                counted.unwrap_or(0),
                number(block, column),
                "{at}: {column}"
            );
            *sums.entry(column).or_insert(0) += number(block, column);
        }
        for column in [
            "block_number",
            "timestamp",
            "gas_used",
            "n_transactions",
            "accounts_changed",
            "slots_changed",
        ] {
            assert_eq!(
                number(block, column).to_string(),
                replayed[column],
                "{at}: {column}"
            );
        }
        let hash: String = bytes(block, "block_hash")
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(format!("0x{hash}"), replayed["block_hash"]);
        assert!(number(block, "nodes_written") > 0 && number(block, "witness_nodes") > 0);
        let parts = number(block, "witness_nodes_bytes") + number(block, "witness_code_bytes");
        assert_eq!(number(block, "witness_bytes"), parts);
        assert_eq!(
            number(block, "opened_nodes"),
            number(block, "witness_nodes")
        );
        assert!(number(block, "opened_leaves") >= number(block, "accounts_read"));
        assert_eq!(block["opened_stems"], Field::Null);
        assert_eq!(block["events_header"], Field::Null);
    }
    for column in COUNTS {
        assert!(sums[column] > 0, "{column}");
    }
}

/// The accounts and slots that a block reads do not depend on the tree, with or without witnesses.
#[test]
fn accesses_are_the_same_under_every_tree() {
    let folder = Folder::with_chain();
    let with = |tree: &str, more: &str| {
        let line = format!("accesses chain --tree {tree} --out {tree} {more}");
        run(&folder, &line).ok().stdout()
    };
    with("mpt", "--to 6");
    with("verkle", "--to 6 --memory 64MiB");
    let said = with("ar16mt", "--to 6");
    assert!(said.contains("ar16mt has no block witnesses"), "{said}");
    let file = |tree: &str| fs::read(folder.path(&format!("{tree}/accesses.parquet")));
    let mpt = file("mpt").expect("a file");
    assert!(mpt == file("verkle").expect("a file") && mpt == file("ar16mt").expect("a file"));
    for block in rows(&folder, "verkle/blocks.parquet") {
        let [keys, stems, chunks] =
            ["witness_keys", "witness_stems", "witness_chunks"].map(|name| number(&block, name));
        assert!(keys > stems && stems > 0 && chunks > 0, "{block:?}");
        // An existing chunk that is read is a key. Chunks beyond the end of a code are none.
        assert!(chunks <= number(&block, "chunks_read"), "{block:?}");
        assert!(number(&block, "witness_multiproof_bytes") > 0);
        let opened = ["opened_leaves", "opened_stems"].map(|name| number(&block, name));
        assert_eq!(opened, [keys, stems], "{block:?}");
        assert_eq!(block["opened_nodes"], Field::Null);
    }
    for block in rows(&folder, "ar16mt/blocks.parquet") {
        assert_eq!(block["witness_bytes"], Field::Null);
        assert_eq!(block["opened_leaves"], Field::Null);
        assert!(!block.contains_key("witness_nodes") && number(&block, "nodes_written") > 0);
    }
    let printed = run(
        &folder,
        "accesses chain --hash sha256 --tree eip7864 --out s --from 3 --to 4 --json",
    );
    let printed = printed.ok().json();
    assert_eq!(printed["tree"], "eip7864");
    assert_eq!(
        (&printed["firstBlock"], &printed["lastBlock"]),
        (&3.into(), &4.into())
    );
    assert_eq!(printed["blocksWithoutWitness"], 0);
    // The witness is one packed proof, whose size does not show what the block opens.
    for block in rows(&folder, "s/blocks.parquet") {
        assert_eq!(number(&block, "witness_nodes"), 1);
        let [nodes, stems, leaves] =
            ["opened_nodes", "opened_stems", "opened_leaves"].map(|column| number(&block, column));
        assert!(leaves >= stems && stems > 1 && nodes > 1, "{block:?}");
    }
    let of_range = rows(&folder, "s/accesses.parquet");
    assert_eq!(printed["rows"], of_range.len());
    let whole = rows(&folder, "mpt/accesses.parquet");
    let is_of_range = |row: &&Row| matches!(number(row, "block_number"), 3 | 4);
    assert!(whole.iter().filter(is_of_range).eq(&of_range));
}

#[test]
fn withdrawals_and_system_calls_are_accesses() {
    let folder = Folder::with_chain();
    run(&folder, "accesses chain --out a").ok();
    let accesses = rows(&folder, "a/accesses.parquet");
    let mut chain = open_sources(&[folder.path("chain")]).expect("the chain");
    chain.skip_to(1).expect("blocks");
    let mut withdrawals = 0;
    for block in chain {
        let block = block.expect("a block").block;
        for withdrawal in block.body.withdrawals.iter().flat_map(|list| list.iter()) {
            let is_it = |row: &&Row| {
                number(row, "block_number") == block.header.number
                    && kind(row) == "account"
                    && bytes(row, "address") == withdrawal.address.as_slice()
            };
            let row = accesses.iter().find(is_it);
            let row = row.unwrap_or_else(|| panic!("{withdrawal:?}"));
            assert!(flag(row, "read") && (flag(row, "changed") || withdrawal.amount == 0));
            withdrawals += 1;
        }
    }
    assert!(withdrawals > 0);
    // EIP-4788: the contract that keeps the roots of beacon blocks.
    let beacon_roots: [u8; 20] = [
        0x00, 0x0f, 0x3d, 0xf6, 0xd7, 0x32, 0x80, 0x7e, 0xf1, 0x31, 0x9f, 0xb7, 0xb8, 0xbb, 0x85,
        0x22, 0xd0, 0xbe, 0xac, 0x02,
    ];
    let of_system = |wanted: &str| {
        let is_it = |row: &&Row| kind(row) == wanted && bytes(row, "address") == beacon_roots;
        accesses.iter().filter(is_it).count()
    };
    assert!(of_system("slot") > 0 && of_system("code") > 0);
}

/// Another program reads the files.
#[test]
fn duckdb_reads_the_files() {
    let python = |script: &str, folder: &Folder| {
        let mut command = Command::new("python3");
        command.args(["-c", script]).current_dir(folder.0.path());
        command.output()
    };
    let folder = Folder::with_chain();
    let found = python("import duckdb", &folder);
    if !found.is_ok_and(|output| output.status.success()) {
        arbor_testdata::skip("duckdb_reads_the_files", "no python3 with duckdb");
        return;
    }
    run(&folder, "accesses chain --out a").ok();
    let script = "
import duckdb
one = lambda query: duckdb.sql(query).fetchall()
print(one('''select count(*) from 'a/accesses.parquet' '''))
print(one('''select b.block_number from 'a/blocks.parquet' b join 'a/accesses.parquet' a using (block_number)
  where kind = 'slot' and changed group by b.block_number, b.slots_changed having count(*) <> b.slots_changed'''))
print(one('''select distinct octet_length(address), octet_length(slot) from 'a/accesses.parquet' where kind = 'slot' '''))
";
    let output = python(script, &folder).expect("python runs");
    let run = Run(output);
    let rows = rows(&folder, "a/accesses.parquet").len();
    let expected = format!("[({rows},)]\n[]\n[(20, 32)]\n");
    assert_eq!(run.ok().stdout(), expected);
}

#[test]
fn what_cannot_be_done_is_refused() {
    let folder = Folder::with_chain();
    let fails = |line: &str, words: &[&str]| {
        run(&folder, line).fails_with(words);
    };
    fails("accesses chain", &["--out <DIR>"]);
    fails("accesses chain --out a --tree abacus", &["'abacus'", "mpt"]);
    fails(
        "accesses chain --out a --from 4 --to 3",
        &["--from 4", "--to 3"],
    );
    fails(
        "accesses chain --out a --from 0 --to 0",
        &["block 0 has no transactions", "begin at block 1"],
    );
    fails(
        "accesses chain --out a --from 5000",
        &["no block from 5000 on"],
    );
    fails("accesses chain --out chain", &["chain is not empty"]);
    fails(
        "accesses chain --out a --tree mpt --hash sha256",
        &["sha256"],
    );
    // The generated blocks do not pay for what they add to witnesses.
    fails("accesses chain --out a --gas eip4762", &["block 1 "]);
    assert!(!folder.path("a").exists());
    run(&folder, "accesses chain --out a --to 2").ok();
    fails("accesses chain --out a --to 2", &["a is not empty"]);
    let short = run(&folder, "accesses chain --out b --to 5000")
        .ok()
        .stdout();
    assert!(
        short.contains("the chain ends before block 5000"),
        "{short}"
    );
}

/// Half of a chain's rows would be taken for all of them.
#[cfg(unix)]
#[test]
fn a_stop_leaves_no_files() {
    let folder = Folder::new();
    run(&folder, "generate --preset demo --out chain").ok();
    let child = Command::new(env!("CARGO_BIN_EXE_arbor"))
        .args(["accesses", "chain", "--out", "a"])
        .current_dir(folder.0.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let begin = Instant::now();
    while !folder.path("a/blocks.parquet.unfinished").exists() {
        assert!(
            begin.elapsed() < Duration::from_secs(120),
            "no file was begun"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status();
    assert!(killed.expect("kill runs").success());
    let stopped = Run(child.wait_with_output().expect("it ends"));
    assert_eq!(stopped.0.status.code(), Some(130), "{}", stopped.stderr());
    assert_eq!(stopped.stdout(), "stopped: no files are written\n");
    assert!(!folder.path("a").exists());
}

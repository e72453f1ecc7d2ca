//! A chain makes the same database, byte for byte, whatever threads and instructions compute it.

use std::process::Command;

use crate::support::{Folder, Run};
use arbor_cpu::{BACKEND_VARIABLE, Backend};
use arbor_store::{Reader, Table};
use arbor_store_fjall::FjallStore;

/// Keys and values of all tables.
fn records(folder: &Folder, db: &str) -> Vec<(u8, Box<[u8]>, Vec<u8>)> {
    let path = folder.path(db).join("fjall");
    let store = FjallStore::open(&path, &Default::default()).expect("opens");
    let mut records = Vec::new();
    for table in 0..=u8::MAX {
        for entry in store.scan(Table(table), &[], &[]).expect("scans") {
            let (key, value) = entry.expect("reads");
            records.push((table, key, value.to_vec()));
        }
    }
    records
}

#[test]
fn threads_and_instructions_change_no_byte() {
    let folder = Folder::with_chain();
    for row in arbor_trees::standard().rows() {
        let mut first: Option<Vec<_>> = None;
        for backend in Backend::available() {
            for threads in ["1", "2"] {
                let db = format!("{}-{backend}-{threads}", row.name);
                let words = [
                    "replay",
                    "--tree",
                    row.name,
                    "--threads",
                    threads,
                    "--db",
                    &db,
                ];
                let run = Command::new(env!("CARGO_BIN_EXE_arbor"))
                    .args(words)
                    .args(["--memory", "64MiB", "chain"])
                    .env(BACKEND_VARIABLE, backend.to_string())
                    .current_dir(folder.0.path())
                    .output();
                Run(run.expect("arbor runs")).ok();
                let found = records(&folder, &db);
                assert!(found.len() > 100, "{db}");
                match &first {
                    None => first = Some(found),
                    Some(expected) => assert!(found == *expected, "{db} has other bytes"),
                }
            }
        }
    }
}

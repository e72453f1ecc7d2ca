//! Flipped bits: in every kind of record, and in the files of a database. `arbor verify` must find each, or it must be
//! one that changes nothing that can be read.
//!
//! `ARBOR_FLIPS` says how many of them in files (default: few), `ARBOR_SEED` which: `just flips 1000`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arbor_chain::genesis::Genesis;
use arbor_chain::replay::HeaderCheck;
use arbor_state::{Network, StateSnapshot};
use arbor_store::faulty::FaultyStore;
use arbor_store::{MemoryStore, Reader, Store, Table, Write};
use arbor_store_fjall::{FjallStore, Options as FjallOptions};
use arbor_trees::MPT;

use crate::crashes::chain::{Chain, HISTORY_PROOFS, PLAIN, Random, Standing, number};
use crate::support::{Run, copy};

/// Flips in files of an ordinary test run.
const FEW: u64 = 25;

/// Every record of a replayed database, in a store that can damage them.
struct Records {
    store: Arc<FaultyStore>,
    network: Network,
    records: Vec<Write>,
}

impl Records {
    fn of(chain: &Chain, db: &str) -> Self {
        let path = chain.path(db).join("fjall");
        let options = FjallOptions {
            create: false,
            ..FjallOptions::default()
        };
        let files = FjallStore::open(&path, &options).expect("opens");
        let mut records = Vec::new();
        for table in (0..=u8::MAX).map(Table) {
            for entry in files.scan(table, &[], &[]).expect("scans") {
                let (key, value) = entry.expect("reads");
                records.push(Write {
                    table,
                    key,
                    value: Some(value),
                });
            }
        }
        let memory = MemoryStore::default();
        memory.write(&records, true).expect("writes");
        let genesis = chain.path("chain/genesis.json");
        let genesis = Genesis::from_file(&genesis).expect("reads");
        let network = Network {
            chain_id: genesis.spec.chain_id(),
            genesis_hash: genesis.hash,
        };
        Self {
            store: FaultyStore::new(Arc::new(memory)),
            network,
            records,
        }
    }

    /// What verification says; an error of reading is a finding too.
    fn faults(&self) -> Vec<String> {
        let mut headers = HeaderCheck::new(&MPT.tree());
        let state = StateSnapshot::open(self.store.clone(), None, MPT.tree(), self.network);
        let report = state.and_then(|state| state.verify(&|_| {}, &mut |meta| headers.check(meta)));
        match report {
            Ok(report) => report.faults,
            Err(error) => vec![error.to_string()],
        }
    }
}

/// Undo, indexes and metas were not looked at, nor codes that no account has any more; nor was an account's storage root in
/// an undo record, which a rollback would have made the account's.
#[test]
fn verification_finds_flipped_bits_in_every_kind_of_record() {
    let chain = Chain::new(12, 2);
    let usual = [3, 5, 0x80, 0x81, 0x82, 0xf0, 0xf1, 0xf2, 0xf4];
    find_flips(&Records::of(&chain, "whole"), &usual);
    let chain = chain.with_flags(HISTORY_PROOFS);
    chain
        .run(&chain.replay_into("kept", &["--retain", "all"]))
        .ok();
    let with_old_nodes = [3, 5, 0x80, 0x81, 0x82, 0xee, 0xf0, 0xf1, 0xf2, 0xf4];
    find_flips(&Records::of(&chain, "kept"), &with_old_nodes);
}

fn find_flips(records: &Records, tables_wanted: &[u8]) {
    assert_eq!(records.faults(), [""; 0]);
    let mut tables = Vec::new();
    for (index, record) in records.records.iter().enumerate() {
        let of_table = records
            .records
            .iter()
            .filter(|other| other.table == record.table)
            .count();
        let length = record.value.as_ref().map_or(0, |value| value.len());
        // Each table gets its share, and each place within records its turn.
        if !index.is_multiple_of(of_table.div_ceil(12)) || length == 0 {
            continue;
        }
        tables.push(record.table.0);
        for place in (index % 5..length).step_by((length / 10).max(1)) {
            let bit = 8 * place + (place + index) % 8;
            // As long as there is no index, any number of versions in an epoch is right. It ends the record.
            if record.key[..] == *b"fixed" && place >= length - b"1024}".len() {
                continue;
            }
            records.store.flip(record.table, &record.key, bit);
            let found = records.faults();
            assert!(
                !found.is_empty(),
                "table {:#04x}, key {:02x?}, bit {bit} of {length} bytes: {:02x?}",
                record.table.0,
                record.key,
                record.value
            );
        }
    }
    records.store.unflip();
    tables.dedup();
    assert_eq!(tables, tables_wanted, "tables with records");
    assert_eq!(records.faults(), [""; 0]);
}

/// What a flipped bit came to.
#[derive(PartialEq, Eq, Debug)]
enum Outcome {
    Found,
    Harmless,
}

#[test]
fn a_flipped_bit_in_a_file_is_found_or_changes_nothing() {
    let mut chain = Chain::new(60, 10);
    for flags in [PLAIN, HISTORY_PROOFS] {
        chain = chain.with_flags(flags);
        flip_files(&chain);
        fs::remove_dir_all(chain.path("db")).expect("removed");
    }
}

fn flip_files(chain: &Chain) {
    let wanted = number("ARBOR_FLIPS").unwrap_or(FEW);
    // Flushes through the journal and ingestions, a rollback, and some blocks still to come.
    let replay = |to, budget| chain.replay_into("db", &["--to", to, "--write-back", budget]);
    chain.run(&replay("45", "1MiB")).ok();
    chain.run(&["rollback", "--db", "db", "--to", "40"]).ok();
    chain.run(&replay("50", "30kB")).ok();
    let standing = chain.assert_whole("db", "before any flip");
    let files = files_below(&chain.path("db"));
    let mut random = Random::from_environment("flips");
    let mut counts = [0, 0];
    for turn in 0..wanted {
        let file = &files[random.below(files.len() as u64) as usize];
        copy(&chain.path("db"), &chain.path("flipped"));
        let path = chain.path("flipped").join(file);
        let place = flip(&path, &mut random);
        let place = format!("flip {turn}: {} {place}", file.display());
        let outcome = outcome(chain, &standing, &place);
        println!("{place}: {outcome:?}");
        counts[usize::from(outcome == Outcome::Harmless)] += 1;
        fs::remove_dir_all(chain.path("flipped")).expect("removed");
    }
    println!(
        "flips: {} found, {} harmless, of {wanted} in {} files {:?}",
        counts[0],
        counts[1],
        files.len(),
        chain.flags
    );
}

/// A damaged database must say so in words; one that does not must be whole, and go on to the same end.
fn outcome(chain: &Chain, standing: &Standing, place: &str) -> Outcome {
    let verify = chain.run(&["verify", "--db", "flipped"]);
    if !verify.0.status.success() {
        in_words(&verify, place);
        return Outcome::Found;
    }
    let found = chain.assert_whole("flipped", place);
    assert_eq!(
        found, *standing,
        "{place}: an older database passes for the latest"
    );
    chain.run(&["replay", "--db", "flipped", "chain"]).ok();
    let end = chain.assert_whole("flipped", place);
    assert_eq!(end.block, chain.last(), "{place}");
    Outcome::Harmless
}

/// An error that is told, not a panic or a signal that ends the process. (The engine's panics at opening are caught and told,
/// but the standard library has printed them by then.)
pub(crate) fn in_words(run: &Run, place: &str) {
    let text = run.stderr();
    assert_eq!(run.0.status.code(), Some(1), "{place}: {text}");
    assert!(
        text.contains("error: ")
            && (!text.contains("panicked") || text.contains("the engine stopped at")),
        "{place}: {text}"
    );
    reported_once(&text, place);
}

/// Asserts that errors which the engine returns are not logged, too. The failures of its background threads are.
pub(crate) fn reported_once(text: &str, place: &str) {
    let mut logged = text.lines().filter(|line| line.contains(" ERROR "));
    assert!(
        logged.all(|line| line.contains("Worker")),
        "{place}: {text}"
    );
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(folder.join(&below)).expect("listed") {
            let entry = entry.expect("listed");
            let path = below.join(entry.file_name());
            let meta = entry.metadata().expect("known");
            if meta.is_dir() {
                folders.push(path);
            } else if meta.len() > 0 {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Flips a bit somewhere in what was written to a file: a journal's reserved length is mostly a hole.
fn flip(path: &Path, random: &mut Random) -> String {
    let mut bytes = fs::read(path).expect("read");
    let written = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(bytes.len(), |last| last + 1);
    let (place, bit) = (random.below(written as u64) as usize, random.below(8));
    bytes[place] ^= 1 << bit;
    use std::os::unix::fs::FileExt;
    let file = fs::OpenOptions::new()
        .write(true)
        .open(path)
        .expect("opened");
    file.write_all_at(&bytes[place..=place], place as u64)
        .expect("written");
    format!("byte {place} of {written}, bit {bit}")
}

/// A write that was cut short at the end of the journal is cut off, and the database is at the flush before it, as its HEAD
/// says; with a HEAD that knows of the lost flush it is an error.
#[test]
fn a_torn_last_batch_is_cut_off_or_missed() {
    let chain = Chain::new(30, 5);
    chain
        .run(&["replay", "--db", "db", "--to", "20", "chain"])
        .ok();
    copy(&chain.path("db"), &chain.path("before"));
    let before = chain.assert_whole("before", "before");
    chain
        .run(&["replay", "--db", "db", "--to", "21", "chain"])
        .ok();
    let journal = files_below(&chain.path("db/fjall"));
    let journal = journal
        .iter()
        .find(|path| path.extension().is_some_and(|kind| kind == "jnl"));
    let journal = PathBuf::from("fjall").join(journal.expect("a journal"));
    let whole = fs::read(chain.path("db").join(&journal)).expect("read");
    let older = fs::read(chain.path("before").join(&journal)).expect("read");
    let end = |bytes: &[u8]| {
        bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1)
    };
    let (start, end) = (end(&older), end(&whole));
    assert!(end > start + 100, "a batch was written: {start} to {end}");
    let length = end - start;
    for cut in [
        start + 1,
        start + length / 3,
        start + length / 2,
        end - 20,
        end - 1,
    ] {
        let place = format!("the batch at {start} to {end}, cut at {cut}");
        for head_knows in [false, true] {
            let _ = fs::remove_dir_all(chain.path("torn"));
            copy(&chain.path("db"), &chain.path("torn"));
            if !head_knows {
                fs::copy(chain.path("before/HEAD"), chain.path("torn/HEAD")).expect("copied");
            }
            let file = fs::OpenOptions::new()
                .write(true)
                .open(chain.path("torn").join(&journal))
                .expect("opened");
            file.set_len(cut as u64).expect("cut");
            if head_knows {
                let run = chain.run(&["verify", "--db", "torn"]);
                run.fails_with(&["older than its HEAD file"]);
                in_words(&run, &place);
            } else {
                assert_eq!(chain.assert_whole("torn", &place), before, "{place}");
                chain.run(&["replay", "--db", "torn", "chain"]).ok();
                assert_eq!(
                    chain.assert_whole("torn", &place).block,
                    chain.last(),
                    "{place}"
                );
            }
        }
    }
}

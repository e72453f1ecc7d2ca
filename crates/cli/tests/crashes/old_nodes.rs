//! Kills of `arbor history-proofs` and of `--drop`: the next run goes on, and the result is that of an undisturbed one.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use arbor_store::{Reader, Table, Value};
use arbor_store_fjall::FjallStore;

use crate::crashes::chain::{Chain, Random, number};
use crate::support::copy;

/// Kills of an ordinary test run, of each command.
const FEW: u64 = 6;

const MAKE: [&str; 3] = ["history-proofs", "--db", "db"];
const DROP: [&str; 4] = ["history-proofs", "--db", "db", "--drop"];

/// All records of old nodes and of their index, and what tells of them.
fn records(chain: &Chain) -> Vec<(Table, Box<[u8]>, Value)> {
    let store = FjallStore::open(&chain.path("db/fjall"), &Default::default()).expect("opened");
    let mut records = Vec::new();
    for (table, prefix) in [
        (0xee, &b""[..]),
        (0xef, b""),
        (0xf4, b"kept"),
        (0xf4, b"node"),
    ] {
        let table = Table(table);
        for entry in store.scan(table, prefix, b"").expect("scanned") {
            let (key, value) = entry.expect("read");
            records.push((table, key, value));
        }
    }
    records
}

/// Starts a command and kills it within some microseconds; whether it ended before.
fn kill(chain: &Chain, words: &[&str], within: u64, random: &mut Random) -> bool {
    let mut child = chain
        .command(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    thread::sleep(Duration::from_micros(random.below(within)));
    let ended = child.try_wait().expect("waited for").is_some();
    child.kill().expect("killed");
    child.wait().expect("waited for");
    ended
}

/// How long a command takes.
fn micros(chain: &Chain, words: &[&str]) -> u64 {
    let start = Instant::now();
    chain.run(words).ok();
    start.elapsed().as_micros() as u64
}

#[test]
fn killed_making_of_old_nodes_leaves_a_whole_database_on_fjall() {
    let kills = number("ARBOR_KILLS").unwrap_or(FEW);
    let mut random = Random::from_environment("kills of history-proofs");
    // More blocks than the index has in an epoch.
    let chain = Chain::new(1_100, 2);
    copy(&chain.path("whole"), &chain.path("db"));
    let making = micros(&chain, &MAKE);
    let wanted = records(&chain);
    let tables = [0xee, 0xef, 0xf4].map(|table| {
        let of_table = wanted.iter().filter(|(of, ..)| *of == Table(table));
        of_table.count()
    });
    assert!(
        tables[0] > 1_000 && tables[1] > 0 && tables[2] == 2,
        "{tables:?}"
    );
    copy(&chain.path("db"), &chain.path("made"));
    let dropping = micros(&chain, &DROP);
    assert!(records(&chain).is_empty());
    fs::remove_dir_all(chain.path("db")).expect("removed");

    copy(&chain.path("whole"), &chain.path("db"));
    let (mut killed, mut kept) = (0, Vec::new());
    while killed < kills && !kill(&chain, &MAKE, making / 2, &mut random) {
        killed += 1;
        kept.push(chain.assert_old_proofs("db", &format!("after kill {killed} of making")));
    }
    chain.run(&["verify", "--db", "db"]).ok();
    chain.run(&MAKE).ok();
    assert!(records(&chain) == wanted, "after {killed} kills: {kept:?}");
    println!("history-proofs was killed {killed} times; the oldest block each time: {kept:?}");
    // What is done stays done.
    assert!(kept.iter().flatten().rev().is_sorted(), "{kept:?}");

    for round in 0..kills {
        kill(&chain, &DROP, dropping + dropping / 4, &mut random);
        let place = format!("after kill {round} of dropping");
        if chain.assert_old_proofs("db", &place).is_some() {
            // It was killed before anything was dropped.
            assert!(records(&chain) == wanted, "{place}");
            continue;
        }
        let left = records(&chain).len();
        // A command that reads has to do with it, and one that writes removes it.
        chain.run(&["verify", "--db", "db"]).ok();
        let nothing_else = ["rollback", "--db", "db", "--to", "-0"];
        chain
            .run([&DROP[..], &nothing_else][round as usize % 2])
            .ok();
        assert!(records(&chain).is_empty(), "{place}");
        println!("{place}: {left} of {} records were left", wanted.len());
        fs::remove_dir_all(chain.path("db")).expect("removed");
        copy(&chain.path("made"), &chain.path("db"));
    }
    chain.run(&["verify", "--db", "db"]).ok();
}

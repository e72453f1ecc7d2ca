//! Power losses while a database is made and filled. `strace` records the file operations of a replay. For a loss at any
//! point among them, the folder is rebuilt with the operations before that point, of which those that no `fsync` covers are
//! lost in one of several ways. The same replay must then go on to the end of the chain.
//!
//! `ARBOR_POWER_CUTS` says how many losses are tried, or `all` (`just power`), and `ARBOR_SEED` which.

use std::collections::HashSet;
use std::fs;

use crate::crashes::chain::{Chain, HISTORY_PROOFS, MOVING, PLAIN, Random};
use crate::crashes::disk::works;
use crate::crashes::recorded::record;
use crate::crashes::unsynced::{Disk, WAYS, Way};

/// The losses that an ordinary test run tries on each database.
const FEW: usize = 25;

#[test]
fn a_power_loss_costs_nothing_that_was_flushed() {
    let test = "a_power_loss_costs_nothing_that_was_flushed";
    if works(test, &["strace", "-f", "-e", "trace=write", "true"]) {
        lose_power("mpt", "1kB", PLAIN);
        lose_power("mpt", "1kB", HISTORY_PROOFS);
        lose_power("ar16mt", "20kB", PLAIN);
        lose_power("mpt", "1kB", MOVING);
    }
}

fn lose_power(tree: &'static str, write_back: &str, flags: &'static [&'static str]) {
    let chain = Chain::under(tree, 10, 4).with_flags(flags);
    let all = ["--write-back", write_back, "--retain", "all"];
    let words = match flags == MOVING {
        true => &all[..2],
        false => &all[..],
    };
    let replay = |db| chain.replay_into(db, words);
    let operations = record(&chain, &replay("db"));
    fs::remove_dir_all(chain.path("db")).expect("removed");

    let mut random = Random::from_environment("power losses");
    let cuts = std::env::var("ARBOR_POWER_CUTS").ok();
    let points = (1..=operations.len()).flat_map(|point| WAYS.map(|way| (point, way)));
    let mut points: Vec<_> = points.collect();
    let wanted = match cuts.as_deref() {
        Some("all") => usize::MAX,
        Some(number) => number
            .parse()
            .expect("ARBOR_POWER_CUTS is a number or 'all'"),
        None => FEW,
    };
    if wanted < usize::MAX {
        for place in (1..points.len()).rev() {
            points.swap(place, random.below(place as u64 + 1) as usize);
        }
    }
    let mut tried = HashSet::new();
    for (point, way) in points {
        if tried.len() >= wanted {
            break;
        }
        let done = &operations[..point];
        let left = Disk::after(done, way, &mut random);
        if !tried.insert(left.digest()) {
            continue;
        }
        let place = format!("{tree} {flags:?}: power lost after operation {point}, {way:?}");
        left.write(&chain.path("left"));
        let found = chain.standing("left/db").map(|standing| standing.block);
        let flushed = Disk::after(done, Way::AllLost, &mut random).flushed_block();
        assert!(found >= flushed, "{place}: {found:?}, flushed {flushed:?}");
        let run = chain.run(&replay("left/db"));
        assert!(run.0.status.success(), "{place}: {}", run.stderr());
        match flags == MOVING {
            true => chain.assert_moved("left/db", &place),
            false => assert_eq!(chain.assert_whole("left/db", &place).block, chain.last()),
        }
        fs::remove_dir_all(chain.path("left")).expect("removed");
    }
    println!(
        "power losses under {tree} {flags:?}: {} of {} operations in {} ways",
        tried.len(),
        operations.len(),
        WAYS.len(),
    );
}

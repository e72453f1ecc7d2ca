//! A check of a database in parts finds what a check of the whole database finds.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::sync::Arc;

use alloy_primitives::{Address, B256, U256, hex};
use arbor_state::{
    Account, AccountChange, BlockRef, NotAPart, PartOf, PartsError, State, StateChanges,
    StateError, Tree, VerifiedPart, VerifyReport,
};
use arbor_store::{MemoryStore, Reader, Store, Table, Write};

use crate::damage::{CODE, ROOTS, TREES, open_as, records, stored_state, tables, tree};

/// The parts of a check, each written and read again.
fn parts(state: &mut State, of: u32) -> Result<Vec<VerifiedPart>, StateError> {
    let snapshot = state.snapshot()?;
    let part = |number| {
        let part = snapshot.verify_part(PartOf { number, of }, &|_| {})?;
        Ok(VerifiedPart::decode(&part.encode()).unwrap())
    };
    (1..=of).map(part).collect()
}

fn verify_in_parts(state: &mut State, of: u32) -> Result<VerifyReport, StateError> {
    let mut parts = parts(state, of)?;
    parts.reverse();
    let snapshot = state.snapshot()?;
    let parts = snapshot.all_parts(parts).unwrap();
    snapshot.verify_join(parts, &|_| {}, &mut |_| Ok(()))
}

/// A report with its faults in order: threads find them in any order.
fn sorted(found: Result<VerifyReport, StateError>) -> Result<VerifyReport, String> {
    let mut report = found.map_err(|error| error.to_string())?;
    report.faults.sort_unstable();
    Ok(report)
}

/// Compares what is found in parts with what is found in the whole database; returns whether it is a fault.
fn is_found(store: &Arc<MemoryStore>, tree: &Tree, of: u32, what: &str) -> bool {
    let whole = sorted(open_as(store, tree).verify());
    let in_parts = sorted(verify_in_parts(&mut open_as(store, tree), of));
    match (&whole, &in_parts) {
        (Ok(whole), Ok(in_parts)) if whole.fault_count <= 100 => {
            assert_eq!(
                in_parts,
                whole,
                "{} in {of} parts: {what}",
                tree.kind().name
            );
        }
        // Which faults are described, and what ends a check first, depends on the order in which threads find them.
        (Ok(whole), Ok(in_parts)) => assert_eq!(in_parts.fault_count, whole.fault_count),
        _ => assert_eq!(in_parts.is_err(), whole.is_err(), "{whole:?}, {in_parts:?}"),
    }
    !whole.is_ok_and(|report| report.is_ok())
}

#[test]
fn any_number_of_parts_finds_nothing_in_a_sound_database() {
    for tree in &*TREES {
        let store = stored_state(tree);
        for of in [1, 2, 7, 256] {
            assert!(!is_found(&store, tree, of, "sound"), "{}", tree.kind().name);
        }
    }
}

/// A flipped bit, a record that is missing, one that is there besides, one with an empty key: of every table, of every tree.
#[test]
fn damage_is_found_in_parts_as_in_the_whole() {
    for tree in &*TREES {
        let store = stored_state(tree);
        for (table, name) in tables(tree) {
            let records = records(&store, table);
            for at in [0, records.len() / 2] {
                let (key, value) = &records[at];
                let mut flipped = value.to_vec();
                flipped[value.len() / 2] ^= 4;
                let mut other = key.to_vec();
                other[key.len() - 1] ^= 0x55;
                let put = |key: &[u8], value: &[u8]| Write::put(Table(table), key, value);
                let cases = [
                    ("flipped", put(key, &flipped)),
                    ("missing", Write::delete(Table(table), &key[..])),
                    ("spare", put(&other, value)),
                    ("without a key", put(&[], value)),
                ];
                for (what, write) in cases {
                    // Tables by owner have no such keys.
                    if write.key.is_empty() && table >= 0x80 {
                        continue;
                    }
                    let before = store.get(Table(table), &write.key).unwrap();
                    let undo = Write {
                        value: before,
                        ..write.clone()
                    };
                    store.write(&[write], true).unwrap();
                    let what = format!("record {at} of {name}, {what}");
                    let found = is_found(&store, tree, 2, &what);
                    let may_be_sound = table == ROOTS || table == CODE && what.ends_with("spare");
                    assert!(found || may_be_sound, "{}: {what}", tree.kind().name);
                    store.write(&[undo], true).unwrap();
                }
            }
        }
        assert!(!is_found(&store, tree, 3, "mended"));
    }
}

/// Leaves with the same index are named even if different parts have them.
#[test]
fn leaves_of_different_parts_that_share_an_index_are_named() {
    let tree = tree("ar16mt");
    let store = stored_state(tree);
    let leaves = Table(1);
    let all = records(&store, leaves.0);
    let (first, last) = (&all[0], &all[all.len() - 1]);
    assert!(first.0[0] < 0x80 && last.0[0] >= 0x80);
    // A leaf begins with its index, behind a byte with the length of it.
    let index_of = |leaf: &[u8]| 1 + usize::from(leaf[0]);
    let index = &first.1[..index_of(&first.1)];
    let shared = [index, &last.1[index_of(&last.1)..]].concat();
    store
        .write(&[Write::put(leaves, &last.0[..], &shared)], true)
        .unwrap();
    let report = verify_in_parts(&mut open_as(&store, tree), 2).unwrap();
    let named = format!("leaf {}: another one has index", hex::encode(&last.0));
    let faults = report.faults;
    assert!(
        faults.iter().any(|fault| fault.starts_with(&named)),
        "{faults:?}"
    );
}

#[test]
fn parts_that_are_not_those_of_one_check_are_refused() {
    let tree = tree("mpt");
    let store = stored_state(tree);
    let mut state = open_as(&store, tree);
    let own = parts(&mut state, 3).unwrap();
    let refused = |state: &mut State, parts: Vec<VerifiedPart>| {
        state
            .snapshot()
            .unwrap()
            .all_parts(parts)
            .map(drop)
            .unwrap_err()
    };
    let some = |places: &[usize]| places.iter().map(|place| own[*place].clone()).collect();

    let error = refused(&mut state, some(&[2]));
    assert_eq!(error.to_string(), "part 1/3, part 2/3 is missing");
    assert_eq!(
        refused(&mut state, Vec::new()).to_string(),
        "part 1/1 is missing"
    );
    let error = refused(&mut state, some(&[0, 1, 2, 1]));
    assert!(matches!(error, PartsError::Twice { at: 3, .. }), "{error}");
    let mut mixed: Vec<VerifiedPart> = some(&[0, 1]);
    mixed.push(parts(&mut state, 4).unwrap().swap_remove(3));
    let error = refused(&mut state, mixed);
    assert!(
        matches!(error, PartsError::OtherNumber { at: 2, .. }),
        "{error}"
    );

    // Another tree, and a later block of the same database.
    let other = stored_state(crate::damage::tree("eip7864"));
    let error = refused(
        &mut open_as(&other, crate::damage::tree("eip7864")),
        own.clone(),
    );
    assert!(
        matches!(error, PartsError::Foreign { at: 0, .. }),
        "{error}"
    );
    let mut changes = StateChanges::default();
    let rich = Account {
        nonce: 0,
        balance: U256::from(1),
        code_hash: alloy_primitives::KECCAK256_EMPTY,
    };
    let new = AccountChange {
        new: Some(rich),
        ..Default::default()
    };
    changes.accounts.insert(Address::repeat_byte(7), new);
    let computed = state.compute(&changes).unwrap();
    let block = BlockRef {
        number: 1,
        hash: B256::repeat_byte(1),
        record: Vec::new(),
    };
    state.commit(&block, computed).unwrap();
    let error = refused(&mut state, own.clone()).to_string();
    assert!(
        error.contains("at block 0") && error.contains("at block 1"),
        "{error}"
    );

    let bytes = own[0].encode();
    assert_eq!(VerifiedPart::decode(&bytes).as_ref(), Ok(&own[0]));
    for length in [0, 5, 30, 80, bytes.len() / 2, bytes.len() - 1] {
        assert!(VerifiedPart::decode(&bytes[..length]).is_err(), "{length}");
    }
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    assert_eq!(VerifiedPart::decode(&damaged), Err(NotAPart::Damaged));
    assert_eq!(VerifiedPart::decode(b"{}"), Err(NotAPart::OtherForm));
}

//! Accounts of every kind that are deleted, made again, replaced and changed in place, and all of that undone, under
//! every tree; and code that two accounts share.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::trees::{address, block, change, empty, open, plain, trees};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use arbor_state::{Account, AccountChange, SlotChange, State, StateChanges, StateView};
use arbor_store::MemoryStore;
use arbor_versions::{Retain, Version};

/// What an account is.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Life {
    account: Account,
    slots: BTreeMap<U256, U256>,
}

/// The code of an account that delegates to another (EIP-7702).
fn delegation(to: u8) -> Bytes {
    [&[0xef, 0x01, 0x00][..], &[to; 20]].concat().into()
}

fn codes() -> [Bytes; 6] {
    [
        Bytes::new(),
        delegation(1),
        delegation(2),
        b"\x00".as_slice().into(),
        b"\x60\x01".repeat(100).into(),
        // More chunks than lie beside an account's fields under a Verkle tree.
        b"\x61\x02".repeat(31 * 80).into(),
    ]
}

/// Every kind of account, with values that differ from version to version.
fn kinds(version: u64) -> Vec<Life> {
    let slots: [&[u64]; 3] = [&[], &[0, 63, 64], &[1, 64, 255, 256, 70_000]];
    let mut kinds = Vec::new();
    for (number, code) in (0..).zip(codes()) {
        for slots in slots {
            let is_plain = code.is_empty() && slots.is_empty();
            let slots = slots.iter().map(|slot| {
                let value = U256::from(slot % 5 + version % 2 + 1);
                (U256::from(*slot), value)
            });
            let account = Account {
                code_hash: keccak256(&code),
                ..plain(version + number, 7 * version)
            };
            let slots: BTreeMap<U256, U256> = slots.collect();
            if is_plain {
                let account = plain(0, 0);
                kinds.push(Life {
                    account,
                    slots: slots.clone(),
                });
            }
            kinds.push(Life { account, slots });
        }
    }
    kinds
}

/// An account's address for each pair of kinds.
fn place(first: usize, second: usize) -> Address {
    Address::from_word(keccak256([first as u8, second as u8]))
}

type Contents = BTreeMap<Address, Life>;

/// What a step does to accounts that are there before and after it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// They are deleted and made again.
    Replace,
    /// Only their fields, code and slots change.
    Change,
}

/// For each pair of kinds an account that is of the first kind, gone, of the second, replaced by the first, changed to the
/// second, replaced by the second.
fn history() -> Vec<(Step, Contents)> {
    let steps = [
        (Step::Change, Some(false)),
        (Step::Change, None),
        (Step::Change, Some(true)),
        (Step::Replace, Some(false)),
        (Step::Change, Some(true)),
        (Step::Replace, Some(true)),
    ];
    let versions = (0..).zip(steps).map(|(version, (step, which))| {
        let kinds = kinds(version);
        let mut contents = Contents::new();
        for first in 0..kinds.len() {
            for second in 0..kinds.len() {
                if let Some(is_second) = which {
                    let kind = if is_second { second } else { first };
                    contents.insert(place(first, second), kinds[kind].clone());
                }
            }
        }
        // Somebody is always there.
        let witness = Life {
            account: plain(version, 1),
            slots: BTreeMap::new(),
        };
        contents.insert(address(0xaa), witness);
        (step, contents)
    });
    versions.collect()
}

fn changes(before: &Contents, step: Step, after: &Contents) -> StateChanges {
    let mut changes = StateChanges::default();
    let mut names: Vec<&Address> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let (old, new) = (before.get(name), after.get(name));
        if old == new && step == Step::Change {
            continue;
        }
        let storage_cleared = old.is_some() && (step == Step::Replace || new.is_none());
        let mut change = AccountChange {
            old: old.map(|life| life.account),
            new: new.map(|life| life.account),
            storage_cleared,
            slots: BTreeMap::new(),
        };
        let none = BTreeMap::new();
        let old_slots = match storage_cleared {
            true => &none,
            false => old.map_or(&none, |life| &life.slots),
        };
        let new_slots = new.map_or(&none, |life| &life.slots);
        for slot in old_slots.keys().chain(new_slots.keys()) {
            let value = |slots: &BTreeMap<U256, U256>| slots.get(slot).copied().unwrap_or_default();
            let (old, new) = (value(old_slots), value(new_slots));
            if old != new {
                change.slots.insert(*slot, SlotChange { old, new });
            }
        }
        changes.accounts.insert(*name, change);
    }
    let codes = codes().into_iter().filter(|code| !code.is_empty());
    changes
        .codes
        .extend(codes.map(|code| (keccak256(&code), code)));
    changes
}

fn check_contents(view: &impl StateView, contents: &Contents) {
    let slots: [u64; 7] = [0, 1, 63, 64, 255, 256, 70_000];
    let all = kinds(0).len();
    let names = (0..all).flat_map(|first| (0..all).map(move |second| place(first, second)));
    for name in names {
        let life = contents.get(&name);
        assert_eq!(view.account(name).unwrap(), life.map(|life| life.account));
        let has_storage = life.is_some_and(|life| !life.slots.is_empty());
        assert_eq!(view.has_storage(name).unwrap(), has_storage);
        for slot in slots.map(U256::from) {
            let value = life.and_then(|life| life.slots.get(&slot)).copied();
            assert_eq!(view.storage(name, slot).unwrap(), value.unwrap_or_default());
        }
        if let Some(hash) = life.map(|life| life.account.code_hash)
            && hash != KECCAK256_EMPTY
        {
            assert_eq!(keccak256(view.code(hash).unwrap()), hash);
        }
    }
}

fn check_whole(state: &mut State) {
    let report = state.verify().unwrap();
    assert!(report.is_ok(), "{:?}", report.faults);
}

/// Applies the steps after the head; returns the roots of the accounts after each, as headers would carry them.
fn go_on(state: &mut State, history: &[(Step, Contents)]) -> Vec<(B256, B256)> {
    let first = state.head().map_or(0, |head| head.version.0 as usize + 1);
    let mut roots = Vec::new();
    for number in first..history.len() {
        let nothing = Contents::new();
        let before = number.checked_sub(1);
        let before = before.map_or(&nothing, |before| &history[before].1);
        let (step, after) = &history[number];
        let computed = state.compute(&changes(before, *step, after)).unwrap();
        state.commit(&block(number as u64), computed).unwrap();
        roots.push((state.root(), state.reader().flat_root().unwrap()));
    }
    roots
}

#[test]
fn every_kind_is_deleted_made_again_and_rolled_back() {
    let history = history();
    let mut headers: Option<Vec<B256>> = None;
    for tree in trees() {
        for is_flushed in [false, true] {
            let mut state = empty(&tree);
            let roots = go_on(&mut state, &history);
            let flat: Vec<B256> = roots.iter().map(|(_, flat)| *flat).collect();
            // The tries come first, whose own root the flat tables then have under every tree.
            let wanted =
                headers.get_or_insert_with(|| roots.iter().map(|(root, _)| *root).collect());
            assert_eq!(flat, *wanted, "{tree:?}");
            if is_flushed {
                state.flush().unwrap();
            }
            for (version, (_, contents)) in (0..).zip(&history) {
                check_contents(&state.at(Version(version)).unwrap(), contents);
            }
            check_whole(&mut state);
            // Each version from each later one, and forward again.
            for to in (0..history.len() - 1).rev() {
                state.rollback(Version(to as u64)).unwrap();
                assert_eq!(state.root(), roots[to].0, "{tree:?} {to}");
                assert_eq!(state.reader().flat_root().unwrap(), roots[to].1);
                check_contents(&state, &history[to].1);
                check_whole(&mut state);
                assert_eq!(
                    go_on(&mut state, &history),
                    roots[to + 1..],
                    "{tree:?} {to}"
                );
                if is_flushed {
                    state.flush().unwrap();
                }
            }
            check_whole(&mut state);
        }
    }
}

/// Two accounts with one code, by the versions: both, one, none, the other alone, both.
#[test]
fn shared_code_outlives_the_account_that_is_deleted() {
    let code: Bytes = b"\x60\x03".repeat(5_000).into();
    let with_code = Account {
        code_hash: keccak256(&code),
        ..plain(1, 1)
    };
    let (one, other) = (address(0x51), address(0x52));
    let lives = [
        (true, true),
        (true, false),
        (false, false),
        (false, true),
        (true, true),
    ];
    let of = |is_there: bool| is_there.then_some(with_code);
    for tree in trees() {
        let store = Arc::new(MemoryStore::default());
        let mut state = open(&tree, &store);
        let mut before = (false, false);
        for (number, after) in (0..).zip(lives) {
            let mut changes = StateChanges::default();
            let accounts = [(one, before.0, after.0), (other, before.1, after.1)];
            for (address, old, new) in accounts {
                if old != new {
                    changes
                        .accounts
                        .insert(address, change(of(old), of(new), &[]));
                }
            }
            // It is given once only: what was stored stays.
            if number == 0 {
                changes.codes.insert(with_code.code_hash, code.clone());
            }
            let computed = state.compute(&changes).unwrap();
            state.commit(&block(number), computed).unwrap();
            before = after;
        }
        let check = |view: &dyn StateView, (has_one, has_other): (bool, bool)| {
            for (address, is_there) in [(one, has_one), (other, has_other)] {
                assert_eq!(view.account(address).unwrap(), of(is_there));
            }
            assert_eq!(view.code(with_code.code_hash).unwrap(), code);
        };
        state.flush().unwrap();
        drop(state);
        let mut state = open(&tree, &store);
        for (version, wanted) in (0..).zip(lives) {
            check(&state.at(Version(version)).unwrap(), wanted);
        }
        for version in (0..4).rev() {
            let wanted = lives[version as usize];
            state.rollback(Version(version)).unwrap();
            check(&state, wanted);
            check_whole(&mut state);
            if version == 2 {
                state.flush().unwrap();
            }
        }
        // With the history goes nothing that the head names.
        state.prune(Retain::None).unwrap();
        state.flush().unwrap();
        check(&state, lives[0]);
        check_whole(&mut state);
    }
}

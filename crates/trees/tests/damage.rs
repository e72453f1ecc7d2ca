//! Whole-state verification finds what is wrong, and names it.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use crate::trees;

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, hex, keccak256};
use arbor_ipa::Committer;
use arbor_state::{
    Account, AccountChange, BlockRef, Network, SlotChange, State, StateChanges, StateSnapshot,
    Tree, VerifyReport,
};
use arbor_store::{MemoryStore, Reader, Scan, Store, StoreError, Table, Value, Write};
use arbor_trees::MPT;
use arbor_trees::eip7864::{EIP7864, Eip7864};
use arbor_trees::eip8297::Eip8297;
use arbor_trees::verkle::{Verkle, VerkleSettings};

/// Of code there may be more than is referred to.
pub(crate) const CODE: u8 = 5;
/// Without any row it is the table of a database from before there was one; these have one.
pub(crate) const ROOTS: u8 = 6;

/// The tables of a tree's databases, which are checked against each other.
pub(crate) fn tables(tree: &Tree) -> impl Iterator<Item = (u8, &'static str)> {
    let tables = tree.kind().tables.iter();
    tables.map(|spec| (spec.table.0, spec.name))
}

/// Every tree. Those that put leaves into groups have several, so a small state shows what a large one would.
pub(crate) static TREES: LazyLock<Vec<Tree>> = LazyLock::new(|| {
    let committer = Arc::new(Committer::within(6_000_000));
    let settings = VerkleSettings {
        leaf_bytes: 2 << 10,
        ..VerkleSettings::default()
    };
    let eip8297 = Eip8297 {
        leaf_bytes: 2 << 10,
        ..Eip8297::default()
    };
    let eip7864 = EIP7864.tree();
    let eip7864 = Eip7864 {
        leaf_bytes: 2 << 10,
        ..*eip7864.downcast().unwrap()
    };
    let mut all: Vec<Tree> = vec![
        Arc::new(Verkle::with(committer, settings)),
        Arc::new(eip8297),
        Arc::new(eip7864),
    ];
    let in_groups: Vec<&str> = all.iter().map(|tree| tree.kind().name).collect();
    let others = trees::trees().into_iter();
    all.extend(others.filter(|tree| !in_groups.contains(&tree.kind().name)));
    all
});

pub(crate) fn tree(name: &str) -> &'static Tree {
    let mut all = TREES.iter();
    all.find(|tree| tree.kind().name == name).unwrap()
}

const NETWORK: Network = Network {
    chain_id: 1,
    genesis_hash: B256::ZERO,
};

fn open(store: &Arc<MemoryStore>) -> State {
    open_as(store, &MPT.tree())
}

pub(crate) fn open_as(store: &Arc<MemoryStore>, tree: &Tree) -> State {
    let store: Arc<dyn Store> = store.clone();
    State::open(store, None, tree.clone(), NETWORK, Default::default()).unwrap()
}

/// A flushed state with accounts, code, and storage tries deep enough to have inner nodes.
pub(crate) fn stored_state(tree: &Tree) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::default());
    let mut state = open_as(&store, tree);
    let code = Bytes::from_static(b"\x60\x01\x60\x02");
    let mut changes = StateChanges::default();
    changes.codes.insert(keccak256(&code), code.clone());
    for number in 0..60u8 {
        let has_storage = number % 3 == 0;
        let code_hash = if has_storage {
            keccak256(&code)
        } else {
            KECCAK256_EMPTY
        };
        let new = Account {
            nonce: 1,
            balance: U256::from(number),
            code_hash,
        };
        let slots = if has_storage { 0..40 } else { 0..0u64 };
        // In a Verkle tree the last two have a leaf to themselves, one in each half.
        let far = has_storage.then_some([520, 700]);
        let slots = slots.map(|slot| 7 * slot).chain(far.into_iter().flatten());
        let slots = slots.map(|slot| {
            (
                U256::from(slot),
                SlotChange {
                    old: U256::ZERO,
                    new: U256::from(slot + 1),
                },
            )
        });
        let change = AccountChange {
            new: Some(new),
            slots: slots.collect(),
            ..Default::default()
        };
        changes
            .accounts
            .insert(Address::with_last_byte(number), change);
    }
    let computed = state.compute(&changes).unwrap();
    state
        .commit(
            &BlockRef {
                number: 0,
                hash: B256::ZERO,
                record: Vec::new(),
            },
            computed,
        )
        .unwrap();
    state.flush().unwrap();
    assert!(state.verify().unwrap().is_ok());
    store
}

type Record = (Box<[u8]>, Arc<[u8]>);

pub(crate) fn records(store: &MemoryStore, table: u8) -> Vec<Record> {
    store
        .scan(Table(table), &[], &[])
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

#[test]
fn every_flipped_bit_of_a_record_is_found() {
    TREES.iter().for_each(flipped_bits_are_found);
}

fn flipped_bits_are_found(tree: &Tree) {
    let store = stored_state(tree);
    for (table, name) in tables(tree) {
        let records = records(&store, table);
        assert!(!records.is_empty(), "{name}");
        for (index, (key, value)) in records
            .iter()
            .enumerate()
            .step_by(records.len().div_ceil(6))
        {
            for place in (0..value.len()).step_by(1 + value.len() / 24) {
                let mut damaged = value.to_vec();
                damaged[place] ^= 1 << (index % 8);
                store
                    .write(&[Write::put(Table(table), &key[..], &damaged)], true)
                    .unwrap();
                match open_as(&store, tree).verify() {
                    Ok(report) => {
                        assert!(!report.is_ok(), "byte {place} of record {index} of {name}");
                    }
                    // A record so damaged that reading stops is found as well.
                    Err(error) => assert!(!error.to_string().is_empty()),
                }
                store
                    .write(&[Write::put(Table(table), &key[..], value)], true)
                    .unwrap();
            }
        }
    }
    assert!(open_as(&store, tree).verify().unwrap().is_ok());
}

/// One Verkle node of each form that is written: x and x/y of an internal node; leaves with values in place of C1, of C2, of both. Every second byte of it.
#[test]
fn damage_to_every_form_of_verkle_node_is_found() {
    let tree = tree("verkle");
    let store = stored_state(tree);
    let table = 3;
    let mut forms = BTreeMap::new();
    for (key, value) in records(&store, table) {
        forms.entry(value[0]).or_insert((key, value));
    }
    let leaf = 1;
    let has = |bits: u8| forms.keys().any(|tag| tag & (leaf | 16 | 32) == bits);
    assert!(
        has(0) && [16, 32, 48].into_iter().all(|halves| has(leaf | halves)),
        "{:?}",
        forms.keys()
    );
    for (key, value) in forms.values() {
        for place in (0..value.len()).step_by(2) {
            let mut damaged = value.to_vec();
            damaged[place] ^= 1 << (place / 2 % 8);
            store
                .write(&[Write::put(Table(table), &key[..], &damaged)], true)
                .unwrap();
            let found = open_as(&store, tree).verify();
            assert!(
                found.is_ok_and(|report| !report.is_ok()),
                "byte {place} of {value:02x?}"
            );
        }
        store
            .write(&[Write::put(Table(table), &key[..], value)], true)
            .unwrap();
    }
}

#[test]
fn missing_and_spare_records_are_found() {
    TREES.iter().for_each(other_records_are_found);
}

fn other_records_are_found(tree: &Tree) {
    let store = stored_state(tree);
    for (table, name) in tables(tree) {
        let (key, value) = records(&store, table).swap_remove(0);
        store
            .write(&[Write::delete(Table(table), &key[..])], true)
            .unwrap();
        let is_ok = open_as(&store, tree).verify().unwrap().is_ok();
        assert_eq!(is_ok, table == ROOTS, "a record of {name} is missing");
        store
            .write(&[Write::put(Table(table), &key[..], &value)], true)
            .unwrap();
    }
    for (table, name) in tables(tree).filter(|(table, _)| *table != CODE) {
        let (mut key, value) = records(&store, table).swap_remove(0);
        let last = key.len() - 1;
        key[last] ^= 0x55;
        store
            .write(&[Write::put(Table(table), &key[..], &value)], true)
            .unwrap();
        assert!(
            !open_as(&store, tree).verify().unwrap().is_ok(),
            "a record of {name} too many"
        );
        store
            .write(&[Write::delete(Table(table), &key[..])], true)
            .unwrap();
    }
    assert!(open_as(&store, tree).verify().unwrap().is_ok());
}

/// A store whose look-ups, or whose scans, do not find some keys, as an engine's whose index is wrong.
struct Hiding {
    store: Arc<MemoryStore>,
    table: Table,
    prefix: Box<[u8]>,
    from_scans: bool,
}

impl Hiding {
    fn hides(&self, table: Table, key: &[u8]) -> bool {
        table == self.table && key.starts_with(&self.prefix)
    }
}

impl Reader for Hiding {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StoreError> {
        let found =
            (self.from_scans || !self.hides(table, key)).then(|| self.store.get(table, key));
        found.transpose().map(Option::flatten)
    }

    fn scan<'a>(
        &'a self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Scan<'a>, StoreError> {
        let entries = self.store.scan(table, prefix, from)?;
        Ok(Box::new(entries.filter(move |entry| {
            let hidden = |(key, _): &(Box<[u8]>, Value)| self.hides(table, key);
            !(self.from_scans && entry.as_ref().is_ok_and(hidden))
        })))
    }
}

/// What is found of a state in a store that hides records of a table whose keys begin so.
fn verify_hiding(
    (store, tree): (&Arc<MemoryStore>, &Tree),
    (table, prefix): (u8, &[u8]),
    from_scans: bool,
) -> VerifyReport {
    let hiding = Hiding {
        store: store.clone(),
        table: Table(table),
        prefix: prefix.into(),
        from_scans,
    };
    let state = StateSnapshot::open(Arc::new(hiding), None, tree.clone(), NETWORK).unwrap();
    state.verify(&|_| {}, &mut |_| Ok(())).unwrap()
}

/// Not every record is looked up, but some of those that lie together are.
#[test]
fn what_look_ups_or_scans_do_not_find_is_told() {
    for tree in &*TREES {
        let store = stored_state(tree);
        for (table, name) in tables(tree) {
            let (key, _) = records(&store, table).swap_remove(0);
            let report = verify_hiding((&store, tree), (table, &key[..1]), false);
            assert!(!report.is_ok(), "{name} that only scans give");
            if table != CODE && table != ROOTS {
                let report = verify_hiding((&store, tree), (table, &key), true);
                assert!(!report.is_ok(), "{name} that only look-ups give");
            }
        }
    }
}

/// Once, with its place.
#[test]
fn a_lost_node_is_told_once() {
    fn of_storage(key: &[u8]) -> String {
        let owner = B256::from_slice(&key[..32]);
        format!("of the storage of account hash {owner}")
    }
    fn of_verkle(key: &[u8]) -> String {
        format!("the node at path {}", hex::encode(&key[1..]))
    }
    let places: [fn(&[u8]) -> String; 2] = [of_storage, of_verkle];
    let trees = ["mpt", "verkle"].map(tree);
    for ((tree, nodes), place) in trees.into_iter().zip([0x82, 3]).zip(places) {
        let store = stored_state(tree);
        let (key, _) = records(&store, nodes).swap_remove(5);
        let unseen = verify_hiding((&store, tree), (nodes, &key), true);
        store
            .write(&[Write::delete(Table(nodes), &key[..])], true)
            .unwrap();
        let missing = open_as(&store, tree).verify().unwrap();
        for (report, what) in [(unseen, "a scan does not find it"), (missing, "missing")] {
            let told = format!("{}: {what}", place(&key));
            assert_eq!(report.fault_count, 1, "{:?}", report.faults);
            assert!(report.faults[0].ends_with(&told), "{:?}", report.faults);
        }
    }
}

/// Also those whose keys are no node's.
#[test]
fn spare_nodes_are_counted() {
    for tree in ["verkle", "ar16mt"].map(tree) {
        let store = stored_state(tree);
        let spare: [&[u8]; 7] = [&[], &[0, 7], &[1], &[2], &[2, 9, 9, 9], &[31, 5], &[200, 1]];
        for key in spare {
            store
                .write(&[Write::put(Table(3), key, b"")], true)
                .unwrap();
        }
        let report = open_as(&store, tree).verify().unwrap();
        assert_eq!(report.faults, ["7 nodes are stored that nothing leads to"]);
    }
}

/// As what it is, not only by what it is not, and once.
#[test]
fn a_verkle_record_that_cannot_be_read_is_named() {
    const EXISTS: u8 = 0x40;
    let tree = tree("verkle");
    let store = stored_state(tree);
    let account = records(&store, 1).swap_remove(0);
    let of_account = format!("account {}: ", Address::from_slice(&account.0));
    let slot = records(&store, 2).swap_remove(0);
    let corrupt =
        |name: &str, key: &[u8]| format!("corrupt {name} record at key 0x{}", hex::encode(key));
    let unreadable = [0xff; 99].as_slice();
    // No nonce, and a balance of 17 bytes.
    let rich = [&[EXISTS | 17, 0][..], &[1; 17]].concat();
    let code = store.get(Table(CODE), keccak256(b"\x60\x01\x60\x02").as_slice());
    assert!(code.unwrap().is_some());
    let cases = [
        (1, &*account.0, unreadable, corrupt("accounts", &account.0)),
        (2, &*slot.0, unreadable, corrupt("slots", &slot.0)),
        (1, &[], &*account.1, corrupt("accounts", &[])),
        (2, &[], &*slot.1, corrupt("slots", &[])),
        (1, &*account.0, &*rich, of_account),
    ];
    for (table, key, value, told) in cases {
        let before = store.get(Table(table), key).unwrap();
        let put = Write::put(Table(table), key, value);
        store.write(&[put], true).unwrap();
        let faults = open_as(&store, tree).verify().unwrap().faults;
        let named = faults.iter().filter(|fault| fault.starts_with(&told));
        assert_eq!(named.count(), 1, "{told}: {faults:?}");
        let undo = Write {
            table: Table(table),
            key: key.into(),
            value: before,
        };
        store.write(&[undo], true).unwrap();
    }
    assert!(open_as(&store, tree).verify().unwrap().is_ok());
}

/// By what reads states and what walks through nodes, wherever in a scan it happens.
#[test]
fn a_scan_that_fails_ends_the_check() {
    /// A store whose scans fail at a key.
    struct Failing {
        store: Arc<MemoryStore>,
        at: (Table, Box<[u8]>),
    }
    impl Reader for Failing {
        fn get(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StoreError> {
            self.store.get(table, key)
        }

        fn scan<'a>(
            &'a self,
            table: Table,
            prefix: &[u8],
            from: &[u8],
        ) -> Result<Scan<'a>, StoreError> {
            let entries = self.store.scan(table, prefix, from)?;
            Ok(Box::new(entries.map(move |entry| {
                let entry = entry?;
                if (table, &*entry.0) == (self.at.0, &*self.at.1) {
                    let cause = io::Error::other("bad sector");
                    return Err(StoreError::from_io(Path::new("/db"), "scan", cause));
                }
                Ok(entry)
            })))
        }
    }
    for tree in &*TREES {
        let store = stored_state(tree);
        for (table, name) in tables(tree) {
            let all = records(&store, table);
            for at in [0, all.len() / 2, all.len() - 1] {
                let failing = Arc::new(Failing {
                    store: store.clone(),
                    at: (Table(table), all[at].0.clone()),
                });
                let state = StateSnapshot::open(failing, None, tree.clone(), NETWORK).unwrap();
                let error = state.verify(&|_| {}, &mut |_| Ok(())).unwrap_err();
                let cause = error.source().unwrap().to_string();
                assert_eq!(
                    cause, "scan failed on /db: bad sector",
                    "{at} of {name}: {error}"
                );
            }
        }
    }
}

/// A number of chunks that no code has is a fault like any other, soon found.
#[test]
fn too_many_chunks_of_code_are_found() {
    let tree = tree("verkle");
    let store = stored_state(tree);
    let all = records(&store, 1);
    let (key, value) = all.iter().find(|(_, value)| value[0] & 0x80 != 0).unwrap();
    // Behind the code's size, which here is the end.
    let many = [&value[..], &[0x10, 0, 1]].concat();
    let put = Write::put(Table(1), &key[..], &many);
    store.write(&[put], true).unwrap();
    let report = open_as(&store, tree).verify().unwrap();
    assert!(report.fault_count > 1 << 12, "{:?}", report.faults);
}

/// Commits accounts with so many slots each.
fn commit(state: &mut State, accounts: impl Iterator<Item = (Address, u64)>) {
    commit_block(state, 0, accounts);
}

/// The same, as a block of a number.
fn commit_block(state: &mut State, number: u64, accounts: impl Iterator<Item = (Address, u64)>) {
    let mut changes = StateChanges::default();
    for (number, (address, slots)) in (0..).zip(accounts) {
        let slots = (0..slots).map(|slot| {
            let (old, new) = (U256::ZERO, U256::from(slot + 1));
            (U256::from(slot), SlotChange { old, new })
        });
        let new = Account {
            nonce: number,
            balance: U256::from(number),
            code_hash: KECCAK256_EMPTY,
        };
        let change = AccountChange {
            new: Some(new),
            slots: slots.collect(),
            ..Default::default()
        };
        changes.accounts.insert(address, change);
    }
    let computed = state.compute(&changes).unwrap();
    let block = BlockRef {
        number,
        hash: B256::ZERO,
        record: vec![],
    };
    state.commit(&block, computed).unwrap();
}

/// The nodes that are kept of older versions are compared with those that undo leads to: a flipped bit, a lost record and a spare one are found.
#[test]
fn damage_to_old_nodes_is_found() {
    for tree in &*TREES {
        let store = stored_state(tree);
        let mut state = open_as(&store, tree);
        state.keep_nodes();
        for version in 1..4u8 {
            let accounts = (0..9).map(|number| Address::with_last_byte(60 + 20 * version + number));
            commit_block(
                &mut state,
                version.into(),
                accounts.map(|address| (address, 5)),
            );
        }
        state.flush().unwrap();
        assert_eq!(state.verify().unwrap().faults, [""; 0]);
        drop(state);
        let table = 0xee;
        let name = tree.kind().name;
        let put = |key: &[u8], value: &[u8]| Write::put(Table(table), key, value);
        let is_found = |what: &str, writes: &[Write], undo: &[Write]| {
            store.write(writes, true).unwrap();
            let found = open_as(&store, tree).verify();
            assert!(found.is_err() || !found.unwrap().is_ok(), "{name}: {what}");
            store.write(undo, true).unwrap();
        };
        let all = records(&store, table);
        assert!(all.len() > 2, "{name}");
        for (key, value) in &all {
            let (whole, gone) = ([put(key, value)], Write::delete(Table(table), &key[..]));
            for place in (0..value.len()).step_by(1 + value.len() / 60) {
                let mut damaged = value.to_vec();
                damaged[place] ^= 1 << (place % 8);
                let what = format!("byte {place} of {} of {key:02x?}", value.len());
                is_found(&what, &[put(key, &damaged)], &whole);
            }
            is_found("lost", &[gone], &whole);
        }
        let (first, value) = &all[0];
        let mut key = first.clone();
        key[7] = 4;
        let gone = Write::delete(Table(table), &key[..]);
        is_found("spare", &[put(&key, value)], &[gone]);
        assert!(open_as(&store, tree).verify().unwrap().is_ok());
    }
}

/// Small storage tries that lie side by side are built together, and each is held to its own account and nodes all the same.
#[test]
fn storage_that_is_built_together_is_checked_apart() {
    let in_one_part = (0u64..).map(|number| Address::left_padding_from(&number.to_be_bytes()));
    let in_one_part = in_one_part.filter(|address| keccak256(address)[0] == 0x11);
    // More than are built together, with and without slots, and among them one that is built alone.
    let slots = (0..600).map(|number| match number {
        200 => 513,
        _ => number % 4 * 5,
    });
    let store = Arc::new(MemoryStore::default());
    let mut state = open(&store);
    commit(&mut state, in_one_part.zip(slots));
    state.flush().unwrap();
    let report = state.verify().unwrap();
    assert_eq!((report.accounts, report.faults), (600, vec![]));
    drop(state);
    for table in [0x80, 0x81, 0x82] {
        let all = records(&store, table);
        for at in (0..all.len()).step_by(all.len() / 40) {
            let (key, value) = &all[at];
            let put = |key: &[u8], value: &[u8]| Write::put(Table(table), key, value);
            let damaged = [&value[..value.len() - 1], &[value[value.len() - 1] ^ 1]].concat();
            let longer = [&key[..], &[0]].concat();
            let gone = Write::delete(Table(table), &key[..]);
            let undo = [put(key, value), Write::delete(Table(table), &longer)];
            for writes in [
                vec![put(key, &damaged)],
                vec![put(&longer, value)],
                vec![gone.clone(), put(&longer, value)],
                vec![gone],
            ] {
                store.write(&writes, true).unwrap();
                assert!(
                    !open(&store).verify().unwrap().is_ok(),
                    "table {table:#x}, record {at} of {}: {writes:?}",
                    all.len()
                );
                store.write(&undo, true).unwrap();
            }
        }
    }
    assert!(open(&store).verify().unwrap().is_ok());
}

/// The storage of an account with very many slots is shared by ranges of its own, between neighbours whose keys begin
/// with the same byte.
#[test]
fn storage_that_is_split_into_ranges_is_checked_like_any_other() {
    const SLOTS: u64 = 70_000;
    let store = Arc::new(MemoryStore::default());
    let mut state = open(&store);
    let address = |number: u64| Address::left_padding_from(&number.to_be_bytes());
    let slots = |number| if number == 300 { SLOTS } else { number % 3 };
    commit(
        &mut state,
        (0..600).map(|number| (address(number), slots(number))),
    );
    let unflushed = state.verify().unwrap();
    assert_eq!((unflushed.accounts, unflushed.faults), (600, vec![]));
    assert_eq!(unflushed.slots, SLOTS + 600);
    assert_eq!(state.reader().flat_root().unwrap(), state.root());
    state.flush().unwrap();
    let report = state.verify().unwrap();
    assert_eq!(
        (report.slots, report.nodes),
        (unflushed.slots, unflushed.nodes)
    );
    drop(state);

    let owner = keccak256(address(300));
    let of_owner = |table| {
        let mut all = records(&store, table);
        all.retain(|(key, _)| key.starts_with(owner.as_slice()));
        let middle = all.len() / 2;
        all.swap_remove(middle)
    };
    for table in [0x81, 0x82] {
        let (key, value) = of_owner(table);
        let put = |value: &[u8]| {
            let write = Write::put(Table(table), &key[..], value);
            store.write(&[write], true).unwrap();
        };
        let mut damaged = value.to_vec();
        damaged[value.len() - 1] ^= 1;
        put(&damaged);
        assert!(!open(&store).verify().unwrap().is_ok(), "table {table}");
        if table == 0x81 {
            let root = open(&store).reader().flat_root();
            assert!(
                root.is_err(),
                "the account's record has another storage root"
            );
        }
        put(&value);
    }
    assert!(open(&store).verify().unwrap().is_ok());
}

/// Progress only grows, and ends at the whole.
#[test]
fn verification_tells_how_far_it_is() {
    let told = std::sync::Mutex::new(Vec::new());
    let state = open(&stored_state(tree("mpt"))).snapshot().unwrap();
    let report = state.verify(&|now| told.lock().unwrap().push(now), &mut |_| Ok(()));
    let (report, told) = (report.unwrap(), told.into_inner().unwrap());
    let last = told.iter().map(|now| now.done).fold(0.0, f64::max);
    assert!((last - 1.0).abs() < 1e-9, "{last}");
    assert_eq!(
        told.iter().map(|now| now.accounts).max(),
        Some(report.accounts)
    );
    assert!(told.len() >= 256);
}

//! What a move costs next to what it cannot do without: the same entries inserted into the tree that the state moves to.
//!
//! `cargo bench -p arbor-trees --bench moving [-- --accounts N]`: 50,000 accounts if not given, every tenth with 20 slots, under Merkle-Patricia and EIP-8297 in
//! memory. For each pair of these and another tree: blocks without changes of their own move 1,000 entries each; next to it the same entries, in the same
//! order and batches, are committed to an empty state of that tree. Prints seconds of CPU and their ratio, the median of three rounds whose sides take turns. Both
//! states must have the same root.
#![allow(clippy::unwrap_used, reason = "a benchmark may end where it fails")]

use std::sync::Arc;

use alloy_primitives::{Address, B256, U256, keccak256};
use arbor_metrics::ProcessUsage;
use arbor_state::{
    Account, AccountChange, AccountOrder, BlockRef, Network, SlotChange, State, StateChanges, Tree,
};
use arbor_store::MemoryStore;
use arbor_trees::{Moving, standard};
use arbor_versions::{Options, Retain};

const STRIDE: usize = 1_000;
const ROUNDS: usize = 3;

fn tree(name: &str) -> Tree {
    standard().find(name).unwrap().tree()
}

fn open(tree: &Tree) -> State {
    let network = Network {
        chain_id: 1,
        genesis_hash: B256::ZERO,
    };
    let options = Options {
        retain: Retain::Last(2),
        background: false,
        ..Options::default()
    };
    let store = Arc::new(MemoryStore::default());
    State::open(store, None, tree.clone(), network, options).unwrap()
}

fn commit(state: &mut State, changes: &StateChanges) {
    let number = state.head().map_or(0, |head| head.block_number + 1);
    let computed = state.compute(changes).unwrap();
    let block = BlockRef {
        number,
        hash: B256::ZERO,
        record: Vec::new(),
    };
    state.commit(&block, computed).unwrap();
}

/// An account with its slots.
type Entry = (Address, Account, Vec<(U256, U256)>);

fn entries(accounts: u64) -> Vec<Entry> {
    let entry = |number: u64| {
        let address = Address::from_word(keccak256(number.to_be_bytes()));
        let slots = if number.is_multiple_of(10) { 20 } else { 0 };
        let slots = (0..slots).map(|slot| (U256::from(slot), U256::from(number + slot + 1)));
        let account = Account::with_balance(U256::from(number + 1));
        (address, account, slots.collect())
    };
    (0..accounts).map(entry).collect()
}

/// Accounts and their slots one by one in an order, so many together: as the blocks of a move take them.
fn batches(mut entries: Vec<Entry>, order: &AccountOrder) -> Vec<StateChanges> {
    let key = |address: &Address| {
        let mut key = [[0; 32]];
        (order.account_keys)(&[*address], &mut key);
        key[0]
    };
    let slot_key = |slot: &U256| {
        let mut key = [[0; 32]];
        (order.slot_keys)(&[*slot], &mut key);
        key[0]
    };
    entries.sort_by_cached_key(|(address, ..)| key(address));
    let (mut batches, mut batch, mut units) = (Vec::new(), StateChanges::default(), 0);
    for (address, account, mut slots) in entries {
        slots.sort_by_cached_key(|(slot, _)| slot_key(slot));
        for unit in std::iter::once(None).chain(slots.into_iter().map(Some)) {
            if units == STRIDE {
                batches.push(std::mem::take(&mut batch));
                units = 0;
            }
            units += 1;
            let change = || AccountChange {
                old: unit.map(|_| account),
                new: Some(account),
                ..AccountChange::default()
            };
            let change = batch.accounts.entry(address).or_insert_with(change);
            if let Some((slot, new)) = unit {
                let old = U256::ZERO;
                change.slots.insert(slot, SlotChange { old, new });
            }
        }
    }
    batches.push(batch);
    batches
}

/// Seconds of CPU that something takes, on all threads.
fn cpu(work: impl FnOnce()) -> f64 {
    let now = || {
        let usage = ProcessUsage::now();
        usage.user_s.unwrap() + usage.sys_s.unwrap()
    };
    let before = now();
    work();
    now() - before
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let accounts = args.iter().position(|arg| arg == "--accounts");
    let accounts = accounts.map_or(50_000, |at| args[at + 1].parse().unwrap());
    let entries = entries(accounts);
    println!("| from | to | moved | CPU of moving, s | CPU of inserting, s | ratio |");
    println!("|---|---|---:|---:|---:|---:|");
    for source in ["mpt", "eip8297"] {
        for target in ["mpt", "verkle", "ar16mt", "eip8297", "eip7864"] {
            if source != target {
                measure(source, target, &entries);
            }
        }
    }
}

fn measure(source: &str, target: &str, entries: &[Entry]) {
    let (from, to) = (tree(source), tree(target));
    // Tables are made once, and are not part of it.
    to.prepare(Box::new(|| ()));
    let batches = batches(entries.to_vec(), from.order());
    let units: usize = entries.iter().map(|(.., slots)| 1 + slots.len()).sum();
    let (mut moving, mut inserting) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut state = open(&from);
        batches.iter().for_each(|batch| commit(&mut state, batch));
        let at = state.head().unwrap().block_number + 1;
        let moves: Tree = Arc::new(Moving::new(from.clone(), to.clone(), at, STRIDE as u64));
        let mut state = state.open_again(moves).unwrap();
        let is_over = |state: &State| {
            let moved = state.reader().moved().unwrap();
            moved.is_some_and(|(_, moved)| moved.last_block.is_some())
        };
        moving.push(cpu(|| {
            while !is_over(&state) {
                commit(&mut state, &StateChanges::default());
            }
        }));
        let mut other = open(&to);
        inserting.push(cpu(|| {
            batches.iter().for_each(|batch| commit(&mut other, batch));
        }));
        assert_eq!(state.root(), other.root(), "{source} to {target}");
    }
    let (moving, inserting) = (median(moving), median(inserting));
    let ratio = moving / inserting;
    println!("| {source} | {target} | {units} | {moving:.2} | {inserting:.2} | {ratio:.2} |");
}

//! A state in AR16MT from a list of its entries: in any order, in chunks, over a store that fails, gone on with.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::num::NonZeroUsize;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use arbor_state::recovery::{
    Chunk, EntriesReader, EntriesWriter, Order, Place, Recovery, RecoveryError, is_recovering,
};
use arbor_state::{
    Account, AccountChange, BlockRef, Network, SlotChange, State, StateChanges, StateView,
};
use arbor_store::faulty::{Failure, FaultyStore};
use arbor_store::{MemoryStore, Store};
use arbor_trees::ar16mt::{AR16MT, LeafWrite};
use arbor_versions::{Options, Retain, Version};

const NETWORK: Network = Network {
    chain_id: 5,
    genesis_hash: B256::repeat_byte(5),
};

/// Opens the state of a store; each version is flushed before the next.
fn open(store: Arc<dyn Store>, retain: Retain) -> State {
    let options = Options {
        dirty_bytes: 1,
        background: false,
        retain,
        ..Options::default()
    };
    State::open_to_recover(store, None, AR16MT.tree(), NETWORK, options).unwrap()
}

fn block(number: u64) -> BlockRef {
    BlockRef {
        number,
        hash: keccak256(number.to_be_bytes()),
        record: vec![number as u8; 5],
    }
}

/// Three blocks of leaves under random keys, some of them written again.
fn leaves() -> State {
    let mut state = open(Arc::new(MemoryStore::default()), Retain::All);
    for number in 0..3u64 {
        let first = (250 * number).saturating_sub(40);
        let writes: Vec<LeafWrite> = (first..250 * (number + 1))
            .map(|leaf| LeafWrite {
                key: keccak256(leaf.to_be_bytes()).0,
                index: leaf + 1,
                value: U256::from(1000 * number + leaf).to_be_bytes(),
            })
            .collect();
        let (computed, _) = state.leaves().unwrap().compute(&writes).unwrap();
        state.commit(&block(number + 7), computed).unwrap();
    }
    state
}

/// Accounts with slots and code, one of which goes.
fn accounts() -> State {
    let mut state = open(Arc::new(MemoryStore::default()), Retain::All);
    let code = Bytes::from_static(&[0x60, 1]);
    let account = Account {
        nonce: 1,
        balance: U256::from(9),
        code_hash: keccak256(&code),
    };
    for number in 0..3u8 {
        let mut changes = StateChanges::default();
        changes.codes.insert(account.code_hash, code.clone());
        let slots = (0..50u64).map(|slot| {
            let (old, new) = (U256::ZERO, U256::from(slot + 1));
            (U256::from(slot), SlotChange { old, new })
        });
        let change = AccountChange {
            new: Some(account),
            slots: slots.collect(),
            ..AccountChange::default()
        };
        changes
            .accounts
            .insert(Address::repeat_byte(number), change);
        if number == 2 {
            let gone = AccountChange {
                old: Some(account),
                storage_cleared: true,
                ..AccountChange::default()
            };
            changes.accounts.insert(Address::ZERO, gone);
        }
        let computed = state.compute(&changes).unwrap();
        state.commit(&block(number.into()), computed).unwrap();
    }
    state
}

/// A version's list; of the latest, if none is named.
fn written(state: &State, version: Option<Version>, order: Order) -> Vec<u8> {
    let version = version.unwrap_or(state.head().unwrap().version);
    let then = state.at(version).unwrap();
    let form = (order, NonZeroUsize::new(64).unwrap());
    let head = then.entries_head(NETWORK, Some("{}".into()), form);
    then.write_entries(Vec::new(), &head.unwrap(), &|_, _| ())
        .unwrap()
        .0
}

fn recover(state: &mut State, list: &[u8]) -> Result<(), RecoveryError> {
    let mut entries = EntriesReader::new(list, list.len() as u64)?;
    let mut recovery = Recovery::new(state, entries.head().clone())?;
    let done = recovery.done();
    while let Some(chunk) = entries.next_chunk()? {
        if entries.chunks() > done && !recovery.is_finished() {
            recovery.add(chunk, entries.place())?;
        }
    }
    recovery.finish(entries.place())
}

/// Holds a recovered state to the one that the list is of.
fn assert_same(recovered: &mut State, original: &State) {
    assert_eq!(recovered.root(), original.root());
    let (found, wanted) = (recovered.head().unwrap(), original.head().unwrap());
    assert_eq!(
        (found.block_number, found.block_hash, &found.extra),
        (wanted.block_number, wanted.block_hash, &wanted.extra)
    );
    let report = recovered.verify().unwrap();
    assert_eq!(report.faults, Vec::<String>::new());
    assert!(
        written(recovered, None, Order::Key) == written(original, None, Order::Key),
        "the entries or the blocks differ"
    );
}

#[test]
fn lists_of_either_order_give_the_state_again() {
    for original in [leaves(), accounts()] {
        for order in [Order::Key, Order::Index] {
            let mut state = open(Arc::new(MemoryStore::default()), Retain::None);
            let list = written(&original, None, order);
            recover(&mut state, &list).unwrap();
            assert_same(&mut state, &original);
            // Nothing is left to do.
            recover(&mut state, &list).unwrap();
            assert_same(&mut state, &original);
        }
    }
}

#[test]
fn an_older_version_is_recovered_and_goes_on() {
    let original = accounts();
    let list = written(&original, Some(Version(1)), Order::Index);
    let mut state = open(Arc::new(MemoryStore::default()), Retain::All);
    recover(&mut state, &list).unwrap();
    assert_eq!(
        state.root(),
        B256::from(original.at(Version(1)).unwrap().meta().root)
    );
    assert!(state.has_storage(Address::ZERO).unwrap());
    let old = state.account(Address::ZERO).unwrap();
    let mut changes = StateChanges::default();
    let gone = AccountChange {
        old,
        storage_cleared: true,
        ..AccountChange::default()
    };
    changes.accounts.insert(Address::ZERO, gone);
    let computed = state.compute(&changes).unwrap();
    state.commit(&block(2), computed).unwrap();
    assert!(state.verify().unwrap().is_ok());
    assert!(!state.has_storage(Address::ZERO).unwrap());
    let before = Version(state.head().unwrap().version.0 - 1);
    assert!(
        state
            .at(before)
            .unwrap()
            .has_storage(Address::ZERO)
            .unwrap()
    );
}

/// Every call of the store fails once, in each way: what is there afterwards is some chunks, whole, and the rest goes on from them.
#[test]
fn a_store_that_fails_leaves_whole_chunks() {
    let original = leaves();
    let list = written(&original, None, Order::Index);
    let mut failures = 0;
    for failure in [Failure::Refused, Failure::Landed, Failure::Unsynced] {
        for calls in 0.. {
            let store = FaultyStore::new(Arc::new(MemoryStore::default()));
            let mut state = open(store.clone(), Retain::None);
            store.fail_after(calls, failure);
            let failed = recover(&mut state, &list).is_err();
            drop(state);
            store.reopen();
            let mut state = open(store.clone(), Retain::None);
            if let Some(head) = state.head() {
                let (hash, root) = (head.block_hash, head.root);
                let report = state.verify().unwrap();
                assert_eq!(report.faults, Vec::<String>::new(), "{failure:?} {calls}");
                let whole = B256::from(root) == original.root();
                assert!(whole || is_recovering(&hash), "{failure:?} {calls}");
            }
            recover(&mut state, &list).unwrap();
            assert_same(&mut state, &original);
            if !failed {
                break;
            }
            failures += 1;
        }
    }
    assert!(failures > 30, "{failures}");
}

#[test]
fn what_does_not_fit_is_an_error() {
    let original = leaves();
    let fresh = || open(Arc::new(MemoryStore::default()), Retain::None);
    let chunks = |list: &[u8]| {
        let mut entries = EntriesReader::new(list, list.len() as u64).unwrap();
        let mut chunks = Vec::new();
        while let Some(chunk) = entries.next_chunk().unwrap() {
            chunks.push(chunk);
        }
        (entries.head().clone(), chunks)
    };
    let (head, all) = chunks(&written(&original, None, Order::Key));
    let list = |chunks: &[Chunk]| {
        let mut writer = EntriesWriter::new(Vec::new(), &head).unwrap();
        for chunk in chunks {
            writer.chunk(chunk).unwrap();
        }
        writer.finish().unwrap().0
    };

    let twice = [&all[..], &all[3..4]].concat();
    let error = recover(&mut fresh(), &list(&twice)).unwrap_err();
    assert!(matches!(error, RecoveryError::IndexTwice(_)), "{error}");
    let count = |chunk: &Chunk| match chunk {
        Chunk::Leaves(leaves) => leaves.len() as u64,
        _ => 0,
    };
    let in_all: u64 = all.iter().map(count).sum();
    let changed = |at: usize, change: &dyn Fn(&mut [LeafWrite])| {
        let mut all = all.clone();
        let Chunk::Leaves(leaves) = &mut all[at] else {
            panic!("a chunk of leaves");
        };
        change(leaves);
        recover(&mut fresh(), &list(&all)).unwrap_err().to_string()
    };
    // In one chunk, where the tree is what finds it, and in two.
    let mut key = [0; 32];
    let error = changed(1, &|leaves| leaves[2].key = leaves[1].key);
    assert!(
        error.starts_with("leaf 0x") && error.ends_with(" comes twice"),
        "{error}"
    );
    if let Chunk::Leaves(leaves) = &all[1] {
        key = leaves[1].key;
    }
    let error = changed(3, &|leaves| leaves[2].key = key);
    assert_eq!(error, format!("leaf {} comes twice", B256::from(key)));
    // Indices were left to `arbor verify`.
    let error = changed(2, &|leaves| leaves[2].index = leaves[1].index);
    assert!(
        error.starts_with("index ") && error.ends_with(" is that of two leaves"),
        "{error}"
    );
    for index in [in_all + 1, u64::MAX - 1] {
        let error = changed(2, &|leaves| leaves[2].index = index);
        let wanted = format!("a leaf has index {index}, where there are no more than ");
        assert!(error.starts_with(&wanted), "{error}");
    }
    let error = recover(&mut fresh(), &list(&[Chunk::Codes(vec![Bytes::new()])])).unwrap_err();
    assert!(error.to_string().ends_with("a code of no bytes"), "{error}");
    let name = vec![1; 20];
    let error = recover(&mut fresh(), &list(&[Chunk::Names(vec![name; 65])])).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("65 entries, where 64 are the most"),
        "{error}"
    );
    let mut state = fresh();
    let error = recover(&mut state, &list(&all[1..])).unwrap_err();
    assert!(
        matches!(error, RecoveryError::IndexBeyond { .. }),
        "{error}"
    );
    let error = changed(1, &|leaves| leaves[1].value[0] ^= 1);
    assert!(error.starts_with("its entries have the root 0x"), "{error}");
    let mut other = head.clone();
    other.genesis_json = None;
    let writer = EntriesWriter::new(Vec::new(), &other).unwrap();
    let error = recover(&mut state, &writer.finish().unwrap().0).unwrap_err();
    assert!(matches!(error, RecoveryError::OtherFile(_)), "{error}");
    // The same head, and other chunks where two are in already.
    let mut state = fresh();
    let whole = list(&all);
    let mut entries = EntriesReader::new(&whole[..], whole.len() as u64).unwrap();
    let mut recovery = Recovery::new(&mut state, head.clone()).unwrap();
    for _ in 0..2 {
        let chunk = entries.next_chunk().unwrap().unwrap();
        recovery.add(chunk, entries.place()).unwrap();
    }
    recovery.pause().unwrap();
    let error = recover(&mut state, &list(&all[1..])).unwrap_err();
    assert!(matches!(error, RecoveryError::OtherFile(2)), "{error}");
    recover(&mut state, &whole).unwrap();
    assert_eq!(state.root(), original.root());
    let error = recover(&mut leaves(), &written(&accounts(), None, Order::Key)).unwrap_err();
    assert!(
        matches!(error, RecoveryError::NotEmpty { block: 9 }),
        "{error}"
    );
    let mut zero = all[0].clone();
    let Chunk::Leaves(leaves) = &mut zero else {
        panic!("leaves first")
    };
    leaves.truncate(1);
    (leaves[0].index, leaves[0].value) = (1, [9; 32]);
    let error = recover(&mut fresh(), &list(&[zero])).unwrap_err();
    assert!(matches!(error, RecoveryError::Root { .. }), "{error}");
    let name = Chunk::Names(vec![vec![1; 21]]);
    let mut state = fresh();
    let mut recovery = Recovery::new(&mut state, head.clone()).unwrap();
    let error = recovery.add(name, Place::default()).unwrap_err();
    assert!(matches!(error, RecoveryError::Name(_)), "{error}");
    other.blocks[0].hash = B256::repeat_byte(0xff);
    let error = Recovery::new(&mut fresh(), other.clone()).err().unwrap();
    assert!(matches!(error, RecoveryError::Hash(_)), "{error}");
    other.blocks.clear();
    let error = Recovery::new(&mut state, other).err().unwrap();
    assert!(matches!(error, RecoveryError::NoBlock), "{error}");
}

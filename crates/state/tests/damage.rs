//! Whole-state verification finds what is wrong, and names it.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use arbor_state::{Account, AccountChange, BlockRef, MptState, Network, SlotChange, StateChanges};
use arbor_store::{MemoryStore, Reader, Store, Table, Write};

const TABLES: [(u8, &str); 5] = [
    (1, "accounts"),
    (2, "slots"),
    (3, "account nodes"),
    (4, "storage nodes"),
    (5, "code"),
];

fn open(store: &Arc<MemoryStore>) -> MptState {
    let network = Network {
        chain_id: 1,
        genesis_hash: B256::ZERO,
    };
    let store: Arc<dyn Store> = store.clone();
    MptState::open(store, None, network, Default::default()).unwrap()
}

/// A flushed state with accounts, code, and storage tries deep enough to have inner nodes.
fn stored_state() -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::default());
    let mut state = open(&store);
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
        let slots = (0..if has_storage { 40 } else { 0u64 }).map(|slot| {
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
                header: Vec::new(),
            },
            computed,
        )
        .unwrap();
    state.flush().unwrap();
    assert!(state.verify().unwrap().is_ok());
    store
}

type Record = (Box<[u8]>, Arc<[u8]>);

fn records(store: &MemoryStore, table: u8) -> Vec<Record> {
    store
        .scan(Table(table), &[], &[])
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

#[test]
fn every_flipped_bit_of_a_record_is_found() {
    let store = stored_state();
    for (table, name) in TABLES {
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
                match open(&store).verify() {
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
    assert!(open(&store).verify().unwrap().is_ok());
}

#[test]
fn missing_and_spare_records_are_found() {
    let store = stored_state();
    for (table, name) in TABLES {
        let (key, value) = records(&store, table).swap_remove(0);
        store
            .write(&[Write::delete(Table(table), &key[..])], true)
            .unwrap();
        assert!(
            !open(&store).verify().unwrap().is_ok(),
            "a record of {name} is missing"
        );
        store
            .write(&[Write::put(Table(table), &key[..], &value)], true)
            .unwrap();
    }
    for (table, name) in &TABLES[..4] {
        let (mut key, value) = records(&store, *table).swap_remove(0);
        let last = key.len() - 1;
        key[last] ^= 0x55;
        store
            .write(&[Write::put(Table(*table), &key[..], &value)], true)
            .unwrap();
        assert!(
            !open(&store).verify().unwrap().is_ok(),
            "a record of {name} too many"
        );
        store
            .write(&[Write::delete(Table(*table), &key[..])], true)
            .unwrap();
    }
    assert!(open(&store).verify().unwrap().is_ok());
}

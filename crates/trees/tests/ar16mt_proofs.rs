//! Proofs of many leaves under AR16MT, at the head and at older versions, and the prover's form of what a version writes.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::sync::Arc;

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256, keccak256};
use arbor_state::{Account, AccountChange, BlockRef, Network, SlotChange, State, StateChanges};
use arbor_store::MemoryStore;
use arbor_trees::ar16mt::{
    AR16MT, AccountSlots, Entry, LeafWrite, MalformedMultiproof, MultiproofError, RangeError,
    RangeProof, StateMultiproof, StateProof, StorageLogs,
};
use arbor_versions::{Options, Version};

fn open() -> State {
    let network = Network {
        chain_id: 5,
        genesis_hash: B256::repeat_byte(5),
    };
    let (store, tree) = (Arc::new(MemoryStore::default()), AR16MT.tree());
    State::open(store, None, tree, network, Options::default()).unwrap()
}

fn block(number: u64) -> BlockRef {
    BlockRef {
        number,
        hash: keccak256(number.to_be_bytes()),
        record: Vec::new(),
    }
}

fn account(nonce: u64) -> Account {
    Account {
        nonce,
        balance: U256::from(100 * nonce),
        code_hash: KECCAK256_EMPTY,
    }
}

/// Three blocks over accounts 1 to 5, each with slots 0 to 2; account 3 goes in the last.
fn accounts() -> (State, Vec<B256>) {
    let (mut state, mut roots) = (open(), Vec::new());
    for number in 0..3u64 {
        let mut changes = StateChanges::default();
        for i in 1..=5u8 {
            let old = (number > 0).then(|| account(number));
            let gone = number == 2 && i == 3;
            let slot = |slot| {
                let of = |number| U256::from(1000 * number + slot + 1);
                let old = if number == 0 {
                    U256::ZERO
                } else {
                    of(number - 1)
                };
                let new = of(number);
                (U256::from(slot), SlotChange { old, new })
            };
            let change = AccountChange {
                old,
                new: (!gone).then(|| account(number + 1)),
                storage_cleared: gone,
                slots: (0..if gone { 0 } else { 3 }).map(slot).collect(),
            };
            changes.accounts.insert(Address::repeat_byte(i), change);
        }
        let computed = state.compute(&changes).unwrap();
        roots.push(computed.root());
        state.commit(&block(number), computed).unwrap();
    }
    (state, roots)
}

fn asked() -> Vec<AccountSlots> {
    [3, 1, 9].map(asked_of).to_vec()
}

fn asked_of(account: u8) -> AccountSlots {
    AccountSlots {
        address: Address::repeat_byte(account),
        slots: [2, 0, 77].map(U256::from).to_vec(),
    }
}

#[test]
fn accounts_and_slots_are_proven_together_at_every_version() {
    let (state, roots) = accounts();
    for number in 0..3u64 {
        let root = roots[number as usize];
        let then = state.at(Version(number)).unwrap();
        let proof: StateMultiproof = then.prove_together(&asked()).unwrap().into().unwrap();
        let proven = proof.verify(root).unwrap().unwrap();
        let slot = |slot, there: bool| match there {
            true => U256::from(1000 * number + slot + 1),
            false => U256::ZERO,
        };
        for (proven, there) in proven.iter().zip([number < 2, true, false]) {
            assert_eq!(proven.account, there.then(|| account(number + 1)));
            let expected = [(2, there), (0, there), (77, false)];
            let expected = expected.map(|(i, there)| (U256::from(i), Some(slot(i, there))));
            assert_eq!(proven.slots, expected);
        }
        let text = serde_json::to_string(&proof).unwrap();
        assert_eq!(
            serde_json::from_str::<StateMultiproof>(&text).unwrap(),
            proof
        );
        assert_eq!(proof.verify(B256::repeat_byte(1)), Ok(None));
        // It is smaller than a path for each leaf.
        let paths = asked().into_iter().map(|one| {
            let proof = then.prove(one.address, &one.slots).unwrap();
            let proof: StateProof = proof.into().unwrap();
            let slots = proof.slots.into_iter().map(|slot| slot.leaf);
            let own = [proof.nonce_leaf, proof.balance_leaf, proof.code_hash_leaf];
            let hashes = own.into_iter().chain(slots).map(|leaf| leaf.path.len());
            hashes.sum::<usize>()
        });
        assert!(proof.multiproof.len() < 18 * 43 + 32 * paths.sum::<usize>());
    }
}

#[test]
fn no_changed_byte_of_a_multiproof_is_proven() {
    let (state, roots) = accounts();
    for number in [0, 2] {
        let then = state.at(Version(number)).unwrap();
        let proof: StateMultiproof = then.prove_together(&asked()).unwrap().into().unwrap();
        let root = roots[number as usize];
        for at in 0..proof.multiproof.len() {
            for bit in [0, 3, 7] {
                let mut bytes = proof.multiproof.to_vec();
                bytes[at] ^= 1 << bit;
                let other = StateMultiproof {
                    accounts: proof.accounts.clone(),
                    multiproof: bytes.into(),
                };
                let verified = other.verify(root);
                assert!(matches!(verified, Err(_) | Ok(None)), "byte {at} bit {bit}");
            }
        }
        let cut = proof.multiproof.slice(..proof.multiproof.len() - 1);
        let mut other = proof.clone();
        other.multiproof = cut;
        let end = other.multiproof.len();
        let error = MalformedMultiproof::Bytes(MultiproofError::Short(end));
        assert_eq!(other.verify(root), Err(error));
        // Other names.
        let mut other = proof.clone();
        other.accounts[0].address = Address::repeat_byte(4);
        let error = MalformedMultiproof::Leaves {
            found: 18,
            expected: 18,
            differs: format!("the nonce of {} is not there", Address::repeat_byte(4)),
        };
        assert_eq!(other.verify(root), Err(error));
        let mut other = proof.clone();
        other.accounts.pop();
        let error = other.verify(root).unwrap_err().to_string();
        assert!(
            error.contains("18 leaves") && error.contains("12 of the"),
            "{error}"
        );
        assert!(error.ends_with("is of none"), "{error}");
    }
}

/// Leaves under random keys, some of them written again.
fn leaves() -> (State, Vec<B256>) {
    let (mut state, mut roots) = (open(), Vec::new());
    for number in 0..3u64 {
        let first = (60 * number).saturating_sub(20);
        let writes = (first..60 * (number + 1)).map(|leaf| LeafWrite {
            key: keccak256(leaf.to_be_bytes()).0,
            index: leaf + 1,
            value: U256::from(1000 * number + leaf).to_be_bytes(),
        });
        let (computed, _) = state
            .leaves()
            .unwrap()
            .compute(&writes.collect::<Vec<_>>())
            .unwrap();
        roots.push(computed.root());
        state.commit(&block(number), computed).unwrap();
    }
    (state, roots)
}

/// The story: of 80 leaves the one with index 2 had index 81, and the check of the whole database found nothing, as it looked for indices that come twice alone.
#[test]
fn an_index_above_the_number_of_leaves_is_found() {
    for other in [None, Some(81)] {
        let mut state = open();
        let writes = (1..=80u64).map(|leaf| LeafWrite {
            key: keccak256(leaf.to_be_bytes()).0,
            index: other.filter(|_| leaf == 2).unwrap_or(leaf),
            value: [1; 32],
        });
        let writes: Vec<LeafWrite> = writes.collect();
        let (computed, _) = state.leaves().unwrap().compute(&writes).unwrap();
        state.commit(&block(0), computed).unwrap();
        let report = state.verify().unwrap();
        let Some(index) = other else {
            assert!(report.is_ok(), "{:?}", report.faults);
            continue;
        };
        let key = alloy_primitives::hex::encode(writes[1].key);
        let expected = format!("leaf {key}: index {index}, but there are 80 leaves");
        assert_eq!(report.fault_count, 1, "{:?}", report.faults);
        assert!(report.faults[0].contains(&expected), "{:?}", report.faults);
    }
}

#[test]
fn ranges_are_proven_at_every_version() {
    let (state, roots) = leaves();
    let word = |byte: u8, fill: u8| {
        let mut word = B256::repeat_byte(fill);
        word[0] = byte;
        word
    };
    for number in 0..3u64 {
        let then = state.at(Version(number)).unwrap();
        let root = roots[number as usize];
        let all: RangeProof = then
            .leaves()
            .unwrap()
            .prove_range(B256::ZERO, word(0xff, 0xff))
            .unwrap()
            .into()
            .unwrap();
        assert_eq!(all.entries.len() as u64, 60 * (number + 1));
        let keys: Vec<B256> = all.entries.iter().map(|entry| entry.key).collect();
        // From a leaf to a leaf, between leaves, of one leaf, of none.
        let near = |key: B256| B256::from(U256::from_be_bytes(key.0) + U256::from(1));
        for (from, to) in [
            (keys[3], keys[40]),
            (near(keys[3]), keys[40]),
            (keys[3], near(keys[40])),
            (word(0x20, 0), word(0x5f, 0xff)),
            (keys[7], keys[7]),
            (near(keys[7]), near(near(keys[7]))),
            (near(keys[7]), near(keys[7])),
            (B256::ZERO, word(0xff, 0xff)),
        ] {
            let proof: RangeProof = then
                .leaves()
                .unwrap()
                .prove_range(from, to)
                .unwrap()
                .into()
                .unwrap();
            let within = all.entries.iter();
            let within = within.filter(|entry| from <= entry.key && entry.key <= to);
            assert_eq!(proof.entries, within.copied().collect::<Vec<_>>());
            assert_eq!(proof.verify(root), Ok(true), "{from} to {to}");
            assert_eq!(proof.verify(B256::repeat_byte(1)), Ok(false));
            let text = serde_json::to_string(&proof).unwrap();
            assert_eq!(serde_json::from_str::<RangeProof>(&text).unwrap(), proof);
            check_changed(&proof, root);
        }
    }
    let then = state.at(Version(1)).unwrap();
    let reversed = then
        .leaves()
        .unwrap()
        .prove_range(word(2, 0), word(1, 0))
        .unwrap_err();
    assert!(reversed.to_string().contains("lies before"), "{reversed}");
}

/// Nothing of a range can be changed or left out.
fn check_changed(proof: &RangeProof, root: B256) {
    let check = |other: &RangeProof, what: &str| {
        assert!(!matches!(other.verify(root), Ok(true)), "{what}");
    };
    for at in 0..proof.entries.len() {
        let mut other = proof.clone();
        other.entries.remove(at);
        check(&other, "left out");
        for byte in [0, 1 + at % 31] {
            let mut other = proof.clone();
            other.entries[at].key[byte] ^= 1;
            check(&other, "a key");
            let mut other = proof.clone();
            other.entries[at].value[byte] ^= 0x80;
            check(&other, "a value");
        }
        let mut other = proof.clone();
        other.entries[at].index ^= 1 << 8;
        check(&other, "an index");
        other.entries[at].index = 0;
        let key = other.entries[at].key.0;
        check(&other, "index 0");
        assert!(!matches!(other.verify(root), Err(RangeError::Order(other)) if other == key));
    }
    for end in [0, 1] {
        let path = |proof: &mut RangeProof| match end {
            0 => std::mem::take(&mut proof.from_path),
            _ => std::mem::take(&mut proof.to_path),
        };
        let with = |path: Vec<B256>| {
            let mut other = proof.clone();
            match end {
                0 => other.from_path = path,
                _ => other.to_path = path,
            }
            other
        };
        let whole = path(&mut proof.clone());
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at][at % 32] ^= 4;
            check(&with(changed), "a hash of a path");
        }
        check(&with(vec![B256::ZERO; 257]), "a long path");
    }
}

#[test]
fn the_prover_is_given_what_a_version_writes() {
    let (state, roots) = leaves();
    for number in 1..3u64 {
        let then = state.at(Version(number)).unwrap();
        let written = then.leaves().unwrap().storage_logs().unwrap();
        let logs = StorageLogs::decode(&written.bytes).unwrap();
        assert_eq!(written.count, logs.logs.len());
        assert_eq!(written.next_index, logs.next_enumeration_index);
        let before = 60 * number;
        assert_eq!(logs.next_enumeration_index, before + 1);
        assert_eq!(logs.logs.len(), 80);
        let last = logs.logs.last().unwrap();
        assert_eq!(B256::from(last.root_hash), roots[number as usize]);
        let indices = logs.logs.iter().map(|log| log.leaf_enumeration_index);
        assert!(indices.eq(before - 19..=before + 60));
        let mut root = roots[number as usize - 1].0;
        for (at, log) in logs.logs.iter().enumerate() {
            assert!(log.is_write);
            assert_eq!(log.first_write, at >= 20);
            let path = logs.path(at);
            let proof = |entry: Option<Entry>| arbor_tree_ar16mt::LeafProof {
                entry,
                path: path.clone(),
            };
            let index = log.leaf_enumeration_index;
            let value = log.value_read;
            let held = (!log.first_write).then_some(Entry { index, value });
            let hasher = arbor_tree_ar16mt::Blake2s::new();
            let key = &log.leaf_hashed_key;
            assert!(proof(held).verify(hasher, &root, key));
            let value = log.value_written;
            let holds = Some(Entry { index, value });
            assert!(proof(holds).verify(hasher, &log.root_hash, key));
            root = log.root_hash;
        }
        let own = logs.logs.iter().map(|log| log.merkle_paths.len());
        let length = 12 + 139 * 80 + 32 * own.sum::<usize>();
        assert_eq!(logs.encode().len(), length);
    }
    let then = state.at(Version(0)).unwrap();
    let first = then.leaves().unwrap().storage_logs().unwrap_err();
    assert!(first.to_string().contains("the first version"), "{first}");
}

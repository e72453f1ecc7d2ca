//! States under EIP-7864 against derived roots, from ../shared/vectors.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::sync::Arc;

use crate::vectors::{allocation, hash, json, text};
use alloy_primitives::{Address, B256, U256, hex};
use arbor_state::{
    AccountChange, AccountSlots, BlockRef, Network, Settings, SlotChange, State, StateChanges,
};
use arbor_store::MemoryStore;
use arbor_trees::eip7864::{AccountsMultiproof, EIP7864, EIP7864_A};
use arbor_verify::stems::{StemHash, StemName};
use arbor_verify::{Proof, Verdict};
use arbor_versions::Version;

const NETWORK: Network = Network {
    chain_id: 1,
    genesis_hash: B256::ZERO,
};

/// A whole state as one block.
fn state(row: &'static arbor_state::TreeKind, function: &str, changes: &StateChanges) -> State {
    let settings = Settings {
        hash: Some(function.to_owned()),
        ..Settings::default()
    };
    let tree = (row.make)(&settings).unwrap();
    let store = Arc::new(MemoryStore::default());
    let mut state = State::open(store, None, tree, NETWORK, Default::default()).unwrap();
    let computed = state.compute(changes).unwrap();
    let block = BlockRef {
        number: 0,
        hash: B256::ZERO,
        record: Vec::new(),
    };
    state.commit(&block, computed).unwrap();
    state
}

/// The roots of both revisions, and of go-ethereum's tree: SHA-256 under revision B.
#[test]
fn genesis_states_have_the_derived_roots() {
    const TEST: &str = "genesis_states_have_the_derived_roots";
    let Some(vectors) = json(TEST, "small/derived_genesis_roots.json") else {
        return;
    };
    let rows = vectors["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let genesis = json(TEST, text(&row["file"])).unwrap();
        let (contents, codes) = allocation(&genesis["alloc"]);
        let mut changes = StateChanges::default();
        changes.codes.extend(codes);
        for (address, (account, slots)) in contents {
            let slots = slots.into_iter().map(|(slot, new)| {
                let old = U256::ZERO;
                (slot, SlotChange { old, new })
            });
            let change = AccountChange {
                new: Some(account),
                slots: slots.collect(),
                ..AccountChange::default()
            };
            changes.accounts.insert(address, change);
        }
        for (kind, function, root) in [
            (&EIP7864, "blake3", "eip7864_mar2026_blake3_be_root"),
            (&EIP7864, "sha256", "geth_master_ubt_sha256_be_root"),
            (&EIP7864_A, "blake3", "eip7864_2025_blake3_le_root"),
        ] {
            let mut state = state(kind, function, &changes);
            assert_eq!(state.root(), hash(&row[root]), "{root}");
            let report = state.verify().unwrap();
            assert!(report.is_ok(), "{:?}", report.faults);
            assert_eq!(report.flat_root, hash(&row["mpt_root"]));
        }
    }
}

/// The message that a stem is the hash of: padded address, then the index in the revision's order.
#[test]
fn stems_are_hashes_of_padded_names() {
    let address = Address::repeat_byte(0x11);
    let index = U256::from(0x0203);
    let padded = "00".repeat(12) + &"11".repeat(20);
    for (row, index_hex) in [
        (&EIP7864, "00".repeat(30) + "0203"),
        (&EIP7864_A, "0302".to_owned() + &"00".repeat(30)),
    ] {
        let tree = row.tree();
        let tree: &arbor_trees::eip7864::Eip7864 = tree.downcast().unwrap();
        let message = hex::decode(padded.clone() + &index_hex).unwrap();
        let stems = arbor_trees::eip7864::Stems {
            revision: tree.revision,
            function: tree.hasher.0,
        };
        let stem = stems.of(&[StemName { address, index }])[0];
        assert_eq!(stem, tree.hasher.hash(&message)[..31]);
    }
}

/// The form of a proof says the revision, which no root shows.
#[test]
fn a_proof_names_its_revision() {
    let mut changes = StateChanges::default();
    let address = Address::repeat_byte(3);
    let account = arbor_state::Account {
        nonce: 5,
        balance: U256::from(7),
        code_hash: alloy_primitives::KECCAK256_EMPTY,
    };
    let slot = U256::from(1_000);
    let (old, new) = (U256::ZERO, U256::from(9));
    let change = AccountChange {
        new: Some(account),
        slots: [(slot, SlotChange { old, new })].into(),
        ..AccountChange::default()
    };
    changes.accounts.insert(address, change);
    let state = state(&EIP7864, "keccak256", &changes);
    let names = AccountSlots {
        address,
        slots: vec![slot, U256::ZERO],
    };
    let absent = AccountSlots {
        address: Address::ZERO,
        slots: vec![U256::ONE],
    };
    let then = state.at(Version(0)).unwrap();
    let proof = then.prove_together(&[names, absent]).unwrap();
    let mut bytes = Vec::new();
    proof.write_json(&mut bytes, false).unwrap();
    let mut file: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(file["form"], "eip7864/1");
    let read =
        |file: &serde_json::Value| arbor_verify::standard().read_as_told(file.clone()).unwrap();
    let Verdict::True(claims) = read(&file).verify(state.root()).unwrap() else {
        panic!("it holds");
    };
    assert_eq!(claims.accounts[0].account, Some(account));
    assert_eq!(
        claims.accounts[0].slots,
        [(slot, Some(new)), (U256::ZERO, None)]
    );
    assert_eq!(claims.accounts[1].account, None);
    // Under the other revision the slot has another key, which is absent or which the proof does not
    // show.
    file["form"] = "eip7864-a/1".into();
    match read(&file).verify(state.root()).unwrap() {
        Verdict::True(claims) => assert_eq!(claims.accounts[0].slots[0], (slot, None)),
        Verdict::False(_) => {}
    }
    let own: &AccountsMultiproof = proof.downcast().unwrap();
    let verdict = own.verify(B256::ZERO).unwrap();
    assert!(matches!(verdict, Verdict::False(_)), "{verdict:?}");
}

/// Where the EIP is open: an account that is empty and exists, one with storage and nothing else, a balance of 2^128. What
/// is gone leaves zeros.
#[test]
fn what_the_specification_leaves_open_is_decided() {
    let address = Address::repeat_byte(3);
    let empty = arbor_state::Account {
        nonce: 0,
        balance: U256::ZERO,
        code_hash: alloy_primitives::KECCAK256_EMPTY,
    };
    let changes = |old, new, slots: &[(u64, u64, u64)]| {
        let slots = slots.iter().map(|(slot, old, new)| {
            let (old, new) = (U256::from(*old), U256::from(*new));
            (U256::from(*slot), SlotChange { old, new })
        });
        let change = AccountChange {
            old,
            new,
            storage_cleared: false,
            slots: slots.collect(),
        };
        StateChanges {
            accounts: [(address, change)].into(),
            ..StateChanges::default()
        }
    };
    for kind in [&EIP7864, &EIP7864_A] {
        let nothing = kind.tree().empty_root();
        let mut state = state(kind, "blake3", &changes(None, Some(empty), &[]));
        let alone = state.root();
        assert_ne!(alone, nothing);
        let mut number = 1;
        let mut go = |state: &mut arbor_state::State, changes: &StateChanges| {
            let block = arbor_state::BlockRef {
                number,
                hash: B256::with_last_byte(number as u8),
                record: Vec::new(),
            };
            number += 1;
            let computed = state.compute(changes).unwrap();
            state.commit(&block, computed).unwrap();
            let report = state.verify().unwrap();
            assert!(report.is_ok(), "{:?}", report.faults);
            state.root()
        };
        let slots = [(1, 0, 9), (1_280, 0, 11)];
        let with_slots = go(&mut state, &changes(Some(empty), Some(empty), &slots));
        assert_ne!(with_slots, alone);
        let rich = arbor_state::Account {
            balance: U256::from(u128::MAX),
            ..empty
        };
        go(&mut state, &changes(Some(empty), Some(rich), &[]));
        let too_rich = arbor_state::Account {
            balance: U256::ONE << 128,
            ..empty
        };
        let error = state
            .compute(&changes(Some(rich), Some(too_rich), &[]))
            .unwrap_err();
        assert!(
            matches!(error, arbor_state::StateError::NoRoom { .. }),
            "{error}"
        );
        let mut removal = changes(Some(rich), None, &[]);
        for change in removal.accounts.values_mut() {
            change.storage_cleared = true;
        }
        let gone = go(&mut state, &removal);
        assert!(![nothing, alone, with_slots].contains(&gone));
    }
}

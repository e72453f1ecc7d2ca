//! States under EIP-7864 against derived roots, from ../shared/vectors.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

#[path = "support/vectors.rs"]
#[allow(dead_code, reason = "other suites use the rest")]
mod vectors;

use std::sync::Arc;

use alloy_primitives::{Address, B256, U256, hex};
use arbor_state::{
    AccountChange, AccountSlots, BlockRef, Network, Settings, SlotChange, State, StateChanges,
};
use arbor_store::MemoryStore;
use arbor_trees::eip7864::{AccountsMultiproof, EIP7864, EIP7864_A};
use arbor_verify::stems::{StemHash, StemName};
use arbor_verify::{Proof, Verdict};
use arbor_versions::Version;
use vectors::{allocation, hash, json, text};

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
    let read = |file: &serde_json::Value| arbor_verify::standard().read(file.clone()).unwrap();
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

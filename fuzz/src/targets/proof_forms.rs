//! Proofs of every form that the registry's trees have.

use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use arbor_chain::json;
use arbor_state::{
    AccountChange, AccountSlots, BlockRef, KeyValueTree, KeyValueWrite, Settings, SlotChange,
    State, StateChanges, StateView, Tree, TreeKind,
};
use arbor_store::MemoryStore;
use arbor_trees::Moving;
use arbor_verify::two_trees;
use arbor_verify::{Kinds, Proof, Verdict};
use arbor_versions::{Options, Version};

use super::database::{Database, changes};

/// A proof of any form, written and read again, and verified at the root of a state under its tree.
/// What holds is what the state has.
pub(super) fn proof_forms(bytes: &[u8]) {
    let Ok(file) = json::parse(bytes) else { return };
    let kinds = arbor_verify::standard();
    let Ok(proof) = kinds.read_as_told(file) else {
        return;
    };
    written_as_read(&kinds, &*proof);
    STATES.with(|states| {
        // The keys of a Verkle tree's proof have another meaning in another layout, which no root
        // shows.
        for (_, state) in states.iter().filter(|(row, _)| has_form(row, &*proof)) {
            not_forged(state, &*proof);
        }
    });
    if proof.form().name == two_trees::VERIFY.forms[0].name {
        MOVING.with(|states| states.iter().for_each(|state| not_forged(state, &*proof)));
    }
    TREES.with(|trees| {
        for tree in trees {
            if has_form(tree.tree().kind(), &*proof)
                && let Ok(Verdict::True(claims)) = proof.verify(tree.root())
            {
                for leaf in claims.leaves {
                    let entry = tree.get(leaf.key).expect("read");
                    assert_eq!(leaf.value, entry.map(|entry| entry.value), "a value forged");
                    let index = entry.and_then(|entry| entry.index);
                    assert_eq!(leaf.index, index, "an index forged");
                }
            }
        }
    });
}

/// What a proof shows under a state's root is what the state has.
fn not_forged(state: &State, proof: &dyn Proof) {
    if let Ok(Verdict::True(claims)) = proof.verify(state.root()) {
        for proven in &claims.accounts {
            let account = state.account(proven.address).expect("read");
            assert_eq!(proven.account, account, "an account forged");
            for (slot, value) in &proven.slots {
                let stored = state.storage(proven.address, *slot).expect("read");
                assert_eq!(value.unwrap_or_default(), stored, "a slot forged");
            }
        }
    }
}

/// Whether a tree has proofs of this one's form.
fn has_form(row: &TreeKind, proof: &dyn Proof) -> bool {
    let mut forms = row.verify.forms.iter();
    forms.any(|form| form.name == proof.form().name)
}

fn written_as_read(kinds: &Kinds, proof: &dyn Proof) {
    let write = |proof: &dyn Proof| {
        let mut text = Vec::new();
        proof.write_json(&mut text, false).expect("written");
        text
    };
    let text = write(proof);
    let again = kinds.read_as_told(json::parse(&text).expect("its own JSON"));
    let again = again.expect("its own form");
    assert_eq!(again.form().name, proof.form().name, "it has another form");
    assert_eq!(write(&*again), text, "it is written otherwise");
}

thread_local! {
    /// A small state under each tree.
    static STATES: Vec<(&'static TreeKind, State)> = {
        let rows = arbor_trees::standard();
        rows.rows().map(|row| (row, state(row))).collect()
    };
    /// Small states amid a move, between trees whose names nothing else could have in a proof.
    static MOVING: Vec<State> = {
        let pairs = [("mpt", "eip8297"), ("ar16mt", "mpt")];
        pairs.map(|(source, target)| moving(source, target)).into()
    };
    /// Some keys and values under each tree that has them without accounts.
    static TREES: Vec<KeyValueTree> = {
        let trees = arbor_trees::standard();
        let trees = trees.rows().map(TreeKind::tree);
        let trees = trees.filter(|tree| tree.key_value().is_some());
        trees.map(key_value_tree).collect()
    };
}

fn place(number: u8) -> B256 {
    B256::from([number % 3; 32]) ^ B256::with_last_byte(number)
}

fn key_value_tree(tree: Tree) -> KeyValueTree {
    let (store, options) = (Arc::new(MemoryStore::default()), Options::default());
    let mut tree = KeyValueTree::open(store, None, tree, options).expect("created");
    let writes = (1..30).map(|number| KeyValueWrite::put(place(number), B256::repeat_byte(number)));
    tree.extend(&writes.collect::<Vec<_>>()).expect("extended");
    tree
}

fn state(row: &'static TreeKind) -> State {
    let settings = Settings {
        memory: Some(18_000_000),
        ..Settings::default()
    };
    let tree: Tree = (row.make)(&settings).expect("usual settings");
    let mut state = Database::open(&Arc::default(), tree).expect("created");
    let computed = state.compute(&changes(0)).expect("computed");
    let block = BlockRef {
        number: 0,
        hash: B256::ZERO,
        record: Vec::new(),
    };
    state.commit(&block, computed).expect("committed");
    state
}

/// A state that has begun to move: an account and a slot of it are gone since.
fn moving(source: &str, target: &str) -> State {
    let rows = arbor_trees::standard();
    let row = |name| rows.find(name).expect("a tree");
    let state = state(row(source));
    let tree = Moving::new(state.tree().clone(), row(target).tree(), 1, 2);
    let mut state = state.open_again(Arc::new(tree)).expect("begun");
    let whole = changes(0).accounts;
    let [deleted, kept] = [1, 3].map(Address::with_last_byte);
    let (slot, old) = (U256::from(2), U256::from(3));
    let new = U256::ZERO;
    let edits = [
        AccountChange {
            old: whole[&deleted].new,
            storage_cleared: true,
            ..AccountChange::default()
        },
        AccountChange {
            old: whole[&kept].new,
            new: whole[&kept].new,
            slots: [(slot, SlotChange { old, new })].into(),
            ..AccountChange::default()
        },
    ];
    for ((number, address), change) in (1..).zip([deleted, kept]).zip(edits) {
        let changes = StateChanges {
            accounts: [(address, change)].into(),
            ..StateChanges::default()
        };
        let computed = state.compute(&changes).expect("computed");
        let block = BlockRef {
            number,
            hash: B256::ZERO,
            record: Vec::new(),
        };
        state.commit(&block, computed).expect("committed");
    }
    state
}

/// Proofs that hold, of every kind that each tree makes: of present and absent accounts and slots,
/// of several accounts, of a range of leaves.
pub(crate) fn proof_form_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let named = |number, slots: &[u64]| AccountSlots {
        address: Address::with_last_byte(number),
        slots: slots.iter().copied().map(U256::from).collect(),
    };
    STATES.with(|states| {
        let mut seeds = Vec::new();
        for (_, state) in states {
            let then = state.at(Version(0)).expect("the only version");
            let mut proofs: Vec<Box<dyn Proof>> = [(0, &[][..]), (1, &[0, 4, 77]), (99, &[1])]
                .into_iter()
                .map(|(number, slots)| {
                    let AccountSlots { address, slots } = named(number, slots);
                    then.prove(address, &slots).expect("proven")
                })
                .collect();
            let several = [named(1, &[0, 4, 77]), named(2, &[]), named(99, &[1])];
            proofs.push(then.prove_together(&several).expect("proven"));
            if let Some(leaves) = then.leaves() {
                let range = leaves.prove_range(B256::ZERO, B256::repeat_byte(0x7f));
                proofs.push(range.expect("proven"));
            }
            for proof in proofs {
                let verdict = proof.verify(state.root()).expect("well formed");
                assert!(matches!(verdict, Verdict::True(_)), "{verdict:?}");
                let mut text = Vec::new();
                proof.write_json(&mut text, false).expect("written");
                seeds.push(("proof_forms", text));
            }
        }
        MOVING.with(|states| {
            for state in states {
                let then = state.at(Version(2)).expect("the latest version");
                let names = [named(1, &[0, 4]), named(3, &[1, 2]), named(99, &[1])];
                let proof = then.prove_together(&names).expect("proven");
                let verdict = proof.verify(state.root()).expect("well formed");
                assert!(matches!(verdict, Verdict::True(_)), "{verdict:?}");
                let mut text = Vec::new();
                proof.write_json(&mut text, false).expect("written");
                seeds.push(("proof_forms", text));
            }
        });
        TREES.with(|trees| {
            for tree in trees {
                let proof = tree.prove(&[place(3), place(17), place(77)]);
                let proof = proof.expect("proven");
                let verdict = proof.verify(tree.root()).expect("well formed");
                assert!(matches!(verdict, Verdict::True(_)), "{verdict:?}");
                let mut text = Vec::new();
                proof.write_json(&mut text, false).expect("written");
                seeds.push(("proof_forms", text));
            }
        });
        seeds
    })
}

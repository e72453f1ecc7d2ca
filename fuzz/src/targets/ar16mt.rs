//! AR16MT: stored nodes and proofs.

use std::sync::Arc;

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use arbor_chain::json;
use arbor_state::{BlockRef, State, StateView};
use arbor_tree_ar16mt::{
    Blake2s, Entry, LeafUpdate, MemoryTree as Tree16, Operation, Path as Path16, StorageLogs,
    apply_with_proofs,
};
use arbor_trees::ar16mt::{AccountSlots, LeafProof, RangeProof, StateMultiproof, StateProof};
use arbor_versions::Version;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::database::{Database, changes};

/// A stored node of AR16MT, after its database key.
pub(super) fn ar16mt_record(bytes: &[u8]) {
    let Ok((path, record)) = Path16::decode_front(bytes) else {
        return;
    };
    if let Ok(decoded) = arbor_tree_ar16mt::Record::decode(&path, record) {
        assert_eq!(decoded.encode(&path), record, "a record has two forms");
    }
}

/// A multiproof of AR16MT, verified at one root; whatever holds is what the tree has.
pub(super) fn ar16mt_multiproof(bytes: &[u8]) {
    let Ok(proof) = arbor_tree_ar16mt::Multiproof::decode(bytes) else {
        return;
    };
    assert_eq!(proof.encode(), bytes, "a multiproof has two forms");
    AR16MT.with(|(tree, root)| {
        if let Ok(true) = proof.verify(Blake2s::new(), root) {
            for (key, entry) in proof.entries() {
                assert_eq!(tree.leaves().get(key).copied(), entry, "a proof forged");
            }
        }
    });
}

/// The logs of zkSync's prover, verified from one root; what holds is what the tree makes of the same operations.
pub(super) fn ar16mt_logs(bytes: &[u8]) {
    let Ok(logs) = StorageLogs::decode(bytes) else {
        return;
    };
    assert_eq!(logs.encode(), bytes, "logs have two forms");
    AR16MT.with(|(tree, root)| {
        let Ok(after) = logs.verify(Blake2s::new(), *root) else {
            return;
        };
        let operations = logs.logs.iter().map(|log| Operation {
            key: log.leaf_hashed_key,
            new: log.is_write.then_some(Entry {
                index: log.leaf_enumeration_index,
                value: log.value_written,
            }),
        });
        let operations: Vec<Operation> = operations.collect();
        let (update, proofs) =
            apply_with_proofs(tree, Blake2s::new(), &operations).expect("applies");
        assert_eq!(update.root, after, "a root forged");
        for (at, log) in logs.logs.iter().enumerate() {
            let before = proofs.outcome(at).before();
            let value = before.map_or([0; 32], |entry| entry.value);
            assert_eq!(log.value_read, value, "a value forged");
            assert_eq!(log.root_hash, proofs.roots()[at], "a root forged");
        }
    });
}

/// A proof of an account and its slots under AR16MT.
pub(super) fn ar16mt_proof(bytes: &[u8]) {
    if let Ok(proof) = serde_json::from_slice::<StateProof>(bytes) {
        let again = serde_json::to_value(&proof).and_then(serde_json::from_value::<StateProof>);
        assert_eq!(again.expect("its own JSON"), proof);
        let _ = proof.verify(B256::ZERO);
    }
}

/// A proof of several accounts and their slots under AR16MT, verified at one root; what holds is what the state has.
pub(super) fn ar16mt_accounts(bytes: &[u8]) {
    let Some(proof) = read_twice::<StateMultiproof>(bytes) else {
        return;
    };
    ACCOUNTS16.with(|state| {
        let Ok(Some(proven)) = proof.verify(state.root()) else {
            return;
        };
        assert_eq!(proven.len(), proof.accounts.len(), "accounts left out");
        for (proven, named) in proven.iter().zip(&proof.accounts) {
            assert_eq!(proven.address, named.address, "another account");
            let account = state.account(named.address).expect("read");
            assert_eq!(proven.account, account, "an account forged");
            let slots = named.slots.iter().map(|slot| {
                let value = state.storage(named.address, *slot);
                (*slot, Some(value.expect("read")))
            });
            assert!(proven.slots.iter().copied().eq(slots), "a slot forged");
        }
    });
}

/// A proof of all leaves between two keys under AR16MT, verified at one root; what holds are the leaves that the state has there.
pub(super) fn ar16mt_range(bytes: &[u8]) {
    let Some(proof) = read_twice::<RangeProof>(bytes) else {
        return;
    };
    ACCOUNTS16.with(|state| {
        if let Ok(true) = proof.verify(state.root()) {
            let then = state.at(Version(0)).expect("the only version");
            let leaves = then.leaves().expect("the tree has them");
            let own = leaves.prove_range(proof.from, proof.to).expect("a range");
            let own: RangeProof = own.into().expect("a range");
            assert_eq!(proof.entries, own.entries, "a range forged");
        }
    });
}

/// Reads JSON as `arbor verify-proof` does; what is read must be written as it was read.
fn read_twice<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
    bytes: &[u8],
) -> Option<T> {
    let read: T = json::from_value(json::parse(bytes).ok()?).ok()?;
    let text = serde_json::to_vec(&read).expect("JSON");
    let again: T = json::from_value(json::parse(&text).expect("its own JSON")).expect("its own");
    assert_eq!(again, read, "it is written otherwise");
    Some(read)
}

thread_local! {
    static AR16MT: (Tree16, [u8; 32]) = {
        let mut near = [1; 32];
        near[30] = 2;
        let keys = [[1; 32], near, [2; 32], [0x99; 32]];
        let updates: Vec<_> = keys.into_iter().zip(1..).map(|(key, index)| LeafUpdate {
            key,
            existed: false,
            new: Some(Entry { index, value: [index as u8; 32] }),
        }).collect();
        let mut tree = Tree16::default();
        let done = arbor_tree_ar16mt::apply(&tree, Blake2s::new(), &updates).expect("applies");
        tree.change(&done, &updates);
        (tree, done.root)
    };
}

thread_local! {
    /// Accounts and slots under AR16MT.
    static ACCOUNTS16: State = {
        let mut state = Database::open(&Arc::default(), arbor_trees::ar16mt::AR16MT.tree()).expect("created");
        let computed = state.compute(&changes(0)).expect("computed");
        let block = BlockRef {
            number: 0,
            hash: B256::ZERO,
            record: Vec::new(),
        };
        state.commit(&block, computed).expect("committed");
        state
    };
}

/// Well-formed inputs.
pub(crate) fn ar16mt_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut seeds = AR16MT.with(|(tree, _)| {
        let keys = [[1; 32], [3; 32], [0x99; 32]];
        let proof = arbor_tree_ar16mt::Multiproof::new(tree, Blake2s::new(), &keys);
        let mut seeds = vec![("ar16mt_multiproof", proof.expect("proven").encode())];
        seeds.extend(logs_seeds(tree));
        for (path, record) in tree.nodes() {
            let mut bytes = Vec::new();
            path.encode_into(&mut bytes);
            bytes.extend_from_slice(record);
            seeds.push(("ar16mt_record", bytes));
        }
        seeds
    });
    let leaf = || LeafProof {
        index: Some(1),
        path: vec![B256::ZERO; 3],
    };
    let proof = StateProof {
        address: Address::ZERO,
        exists: true,
        nonce: 1,
        balance: U256::from(2),
        code_hash: KECCAK256_EMPTY,
        nonce_leaf: leaf(),
        balance_leaf: leaf(),
        code_hash_leaf: LeafProof {
            index: None,
            path: Vec::new(),
        },
        slots: Vec::new(),
    };
    seeds.push(("ar16mt_proof", serde_json::to_vec(&proof).expect("JSON")));
    seeds.extend(ar16mt_state_seeds());
    seeds
}

/// Logs that hold: of reads, present and absent, of changes and new leaves, of nothing.
fn logs_seeds(tree: &Tree16) -> Vec<(&'static str, Vec<u8>)> {
    let read = |key| Operation { key, new: None };
    let write = |key, index, value| Operation {
        key,
        new: Some(Entry { index, value }),
    };
    let batches = [
        vec![read([2; 32]), read([3; 32])],
        vec![
            write([2; 32], 3, [9; 32]),
            write([3; 32], 5, [8; 32]),
            read([3; 32]),
            write([3; 32], 5, [7; 32]),
            write([0x98; 32], 6, [6; 32]),
        ],
        Vec::new(),
    ];
    let seed = |operations: Vec<Operation>| {
        let (_, proofs) = apply_with_proofs(tree, Blake2s::new(), &operations).expect("applies");
        let leaves = tree.leaves().len() as u64;
        let logs = StorageLogs::new(Blake2s::new(), leaves, &operations, &proofs);
        ("ar16mt_logs", logs.encode())
    };
    batches.into_iter().map(seed).collect()
}

/// Proofs that hold of accounts and ranges, present and absent.
fn ar16mt_state_seeds() -> Vec<(&'static str, Vec<u8>)> {
    ACCOUNTS16.with(|state| {
        let then = state.at(Version(0)).expect("the only version");
        let named = |number, slots: &[u64]| AccountSlots {
            address: Address::with_last_byte(number),
            slots: slots.iter().copied().map(U256::from).collect(),
        };
        let accounts = [
            vec![named(1, &[0, 4, 77]), named(2, &[]), named(99, &[1])],
            vec![named(0, &[])],
            Vec::new(),
        ];
        let by_key = then.leaves().expect("the tree has them");
        let range = |from, to| -> RangeProof {
            let proof = by_key.prove_range(from, to).expect("proven");
            proof.into().expect("a range")
        };
        let leaves = range(B256::ZERO, B256::repeat_byte(0xff)).entries;
        let (second, last) = (leaves[1].key, leaves[leaves.len() - 1].key);
        let ranges = [
            (second, leaves[3].key),
            (B256::ZERO, second),
            (last, B256::repeat_byte(0xff)),
            (second, second),
            (B256::with_last_byte(1), B256::with_last_byte(2)),
        ];
        let accounts = accounts.map(|accounts| {
            let proof = then.prove_together(&accounts).expect("proven");
            let proof: StateMultiproof = proof.into().expect("of several accounts");
            let holds = matches!(proof.verify(state.root()), Ok(Some(_)));
            // One of nothing shows nothing.
            assert_eq!(holds, !accounts.is_empty());
            ("ar16mt_accounts", serde_json::to_vec(&proof).expect("JSON"))
        });
        let ranges = ranges.map(|(from, to)| {
            let proof = range(from, to);
            assert_eq!(proof.verify(state.root()), Ok(true));
            ("ar16mt_range", serde_json::to_vec(&proof).expect("JSON"))
        });
        accounts.into_iter().chain(ranges).collect()
    })
}

//! The state that a witness of a Verkle tree has.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, U256, keccak256};
use arbor_accounts::{Account, AccountChange, StateChanges};
use arbor_ipa::ValueChange;
use arbor_tree_verkle::{MemoryTree, Settings, StemUpdate, apply, prove};
use arbor_verify::verkle::{HeaderLayout, StemHash, StemName, Stems, chunk_code, committer};
use arbor_verify::{PartialState, WitnessParts, standard};

const ADDRESS: Address = Address::repeat_byte(0x12);

/// Three chunks: JUMPDESTs, a PUSH32 at the end of the first one, and JUMPDESTs.
fn code() -> Vec<u8> {
    let mut code = vec![0x5b; 93];
    code[30] = 0x7f;
    code
}

fn account() -> Account {
    Account {
        nonce: 1,
        balance: U256::from(1_000),
        code_hash: keccak256(code()),
    }
}

/// A tree with one account that has code, as a witness of some suffixes of its header, and its root.
fn witness(suffixes: &[u8]) -> (Vec<u8>, B256) {
    let name = StemName::header(ADDRESS);
    let stem = Stems::new(committer().clone(), 0).of_once(&[name])[0];
    let fields = HeaderLayout::BasicData.leaves(&account(), 93).unwrap();
    let chunks = (128..).zip(chunk_code(&code()));
    let mut tree = MemoryTree::new();
    let changes = fields.into_iter().chain(chunks).map(|(suffix, value)| {
        tree.set_value(stem, suffix, Some(value));
        ValueChange {
            suffix,
            old: None,
            new: Some(value),
        }
    });
    let changes = changes.collect();
    let updates = [StemUpdate { stem, changes }];
    let done = apply(&tree, committer(), &updates, &Settings::default()).unwrap();
    tree.change_nodes(&done.nodes);
    let keys: Vec<_> = suffixes.iter().map(|suffix| (stem, *suffix)).collect();
    let witness = prove(&tree, committer(), &keys).unwrap();
    (witness.to_bytes(), done.root_hash().into())
}

fn state((bytes, root): &(Vec<u8>, B256)) -> Box<dyn PartialState> {
    let kind = standard().find("verkle").unwrap();
    let parts = WitnessParts {
        hash: "pedersen",
        root: *root,
        nodes: &[bytes.clone().into()],
        codes: &[],
    };
    kind.partial_state.unwrap()(parts).unwrap()
}

/// Zeros stood in place of a chunk, and execution stopped there as if the code had ended.
#[test]
fn a_chunk_that_a_witness_lacks_is_named() {
    let some = witness(&[0, 1, 128, 130]);
    let state = state(&some);
    state.check().unwrap();
    assert_eq!(state.account(ADDRESS).unwrap(), Some(account()));
    let hash = account().code_hash;
    let found = state.code_of(ADDRESS, hash).unwrap().unwrap();
    let code = code();
    assert_eq!((&found[..31], &found[62..]), (&code[..31], &code[62..]));
    // The first byte of the third chunk is data of the PUSH32, here as there.
    assert_eq!(chunk_code(&found)[2], chunk_code(&code)[2]);
    assert_eq!(state.code_of(ADDRESS, B256::ZERO).unwrap(), None);
    let check = |chunks: &[u32]| {
        let chunks: BTreeSet<u32> = chunks.iter().copied().collect();
        let checked = state.check_chunks(&BTreeMap::from([(ADDRESS, chunks)]));
        checked.map_err(|error| error.to_string())
    };
    check(&[0, 2, 3, 99]).unwrap();
    let error = check(&[0, 1, 2]).unwrap_err();
    assert!(
        error.starts_with(&format!("witness: chunk 1 of the code of {ADDRESS:#x}: ")),
        "{error}"
    );
    let error = state.storage(ADDRESS, U256::from(5)).unwrap_err();
    assert!(error.to_string().contains("slot 0x5"), "{error}");
}

/// The root after a change is that of the tree with the change.
#[test]
fn commitments_change_by_differences() {
    let (bytes, root) = witness(&[0, 1]);
    let state = state(&(bytes.clone(), root));
    let old = account();
    let new = Account {
        balance: old.balance + U256::ONE,
        ..old
    };
    let change = |old, new| AccountChange {
        old: Some(old),
        new: Some(new),
        storage_cleared: false,
        slots: BTreeMap::new(),
    };
    let changes = |change| StateChanges {
        accounts: BTreeMap::from([(ADDRESS, change)]),
        codes: BTreeMap::new(),
    };
    let mut roots = state.pending_roots();
    let after = roots.root_after(&changes(change(old, new))).unwrap();
    assert_ne!(after, root);
    // Back again it is the root before.
    assert_eq!(roots.root_after(&changes(change(new, old))).unwrap(), root);
    for (nodes, of, wanted) in [
        (vec![bytes.clone().into()], after, "its proof is false"),
        (vec![bytes[..99].to_vec().into()], root, "witness: "),
        (vec![bytes.clone().into(), bytes.into()], root, "2 nodes"),
    ] {
        let parts = WitnessParts {
            hash: "pedersen",
            root: of,
            nodes: &nodes,
            codes: &[],
        };
        let kind = standard().find("verkle").unwrap();
        let state = kind.partial_state.unwrap()(parts).unwrap();
        let error = state.check().unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
        assert!(state.account(ADDRESS).is_err());
    }
}

//! Absent is not empty: an account that exists and has nothing is told from one that does not exist, under every
//! tree, at the head and before, by every way to read it and by what proofs show.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeMap;

use crate::trees::{address, block, change, empty, plain, trees};
use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use arbor_state::{
    Account, Historical, RecentState, State, StateChanges, StateError, StateView, Tree,
};
use arbor_trees::MPT;
use arbor_trees::ar16mt::{Ar16mt, StateProof};
use arbor_verify::Verdict;
use arbor_verify::mpt::{AccountProof, FalseProof};
use arbor_versions::Version;

/// The root of an empty trie.
const EMPTY_ROOT: B256 =
    alloy_primitives::b256!("56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421");

fn commit(state: &mut State, number: u64, changes: &StateChanges) {
    let computed = state.compute(changes).unwrap();
    state.commit(&block(number), computed).unwrap();
}

/// Accounts by their addresses: what each is in the two versions.
fn accounts() -> BTreeMap<Address, [Option<Account>; 2]> {
    let (nothing, something) = (Some(plain(0, 0)), Some(plain(2, 3)));
    [
        // Never there, always empty, never empty.
        [None, None],
        [nothing, nothing],
        [something, something],
        // Empty and then gone, full and then gone, full and then empty.
        [nothing, None],
        [something, None],
        [something, nothing],
        // There from the second version on.
        [None, nothing],
        [None, something],
    ]
    .into_iter()
    .enumerate()
    .map(|(number, versions)| (address(number as u8 + 1), versions))
    .collect()
}

/// The slot that accounts with something have.
const SLOT: U256 = U256::from_limbs([300, 0, 0, 0]);

fn made(tree: &Tree) -> State {
    let mut state = empty(tree);
    for number in 0..2 {
        let mut changes = StateChanges::default();
        for (address, versions) in accounts() {
            let old = match number {
                0 => None,
                _ => versions[0],
            };
            let new = versions[number];
            let is_full = |account: Option<Account>| account.is_some_and(|of| of.nonce > 0);
            let slots = match is_full(new) && !is_full(old) {
                true => &[(300, 0, 9)][..],
                false => &[],
            };
            let mut change = change(old, new, slots);
            change.storage_cleared = is_full(old) && !is_full(new);
            if old != new {
                changes.accounts.insert(address, change);
            }
        }
        commit(&mut state, number as u64, &changes);
    }
    state
}

/// What a proof shows of an account.
fn proven(then: &Historical<'_>, address: Address) -> Option<Account> {
    let proof = then.prove(address, &[SLOT]).unwrap();
    match proof.verify(then.meta().root.into()).unwrap() {
        Verdict::True(claims) if claims.doubtful.is_empty() => claims.accounts[0].account,
        verdict => panic!("{address}: {verdict:?}"),
    }
}

fn check_reads(view: &impl StateView, number: usize) {
    let (addresses, wanted): (Vec<Address>, Vec<_>) = accounts()
        .into_iter()
        .map(|(address, versions)| (address, versions[number]))
        .unzip();
    assert_eq!(view.accounts(&addresses).unwrap(), wanted);
    for (address, wanted) in addresses.into_iter().zip(wanted) {
        assert_eq!(view.account(address).unwrap(), wanted, "{address}");
        let is_full = wanted.is_some_and(|account| account.nonce > 0);
        let value = U256::from(if is_full { 9 } else { 0 });
        assert_eq!(view.storage(address, SLOT).unwrap(), value, "{address}");
        assert_eq!(view.has_storage(address).unwrap(), is_full, "{address}");
    }
}

#[test]
fn absent_accounts_are_told_from_empty_ones() {
    for tree in trees() {
        let mut state = made(&tree);
        for number in 0..2 {
            let then = state.at(Version(number as u64)).unwrap();
            check_reads(&then, number);
            let mut dumped = BTreeMap::new();
            then.dump::<StateError>(|account| {
                dumped.insert(account.address, account.nonce);
                Ok(())
            })
            .unwrap();
            for (address, versions) in accounts() {
                let wanted = versions[number];
                let nonce = wanted.map(|account| account.nonce);
                assert_eq!(dumped.remove(&address), nonce, "{tree:?} {address}");
                assert_eq!(
                    proven(&then, address),
                    wanted,
                    "{tree:?} {number} {address}"
                );
            }
            assert_eq!(dumped, BTreeMap::new());
        }
        check_reads(&state, 1);
        check_reads(&RecentState::new(1 << 20).over(&state), 1);
        check_reads(&state.snapshot().unwrap().reader(), 1);
        state.rollback(Version(0)).unwrap();
        check_reads(&state, 0);
        let report = state.verify().unwrap();
        assert!(report.is_ok(), "{:?}", report.faults);
    }
}

/// Geth writes zeros for both hashes, and wrote those of an empty account before; other clients still do.
#[test]
fn the_proof_of_an_absent_account_has_zeros_for_hashes() {
    let state = made(&MPT.tree());
    let root = state.root();
    let by_fields = |wanted: [Option<Account>; 2]| {
        let mut accounts = accounts().into_iter();
        accounts
            .find(|(_, versions)| *versions == wanted)
            .unwrap()
            .0
    };
    let absent = by_fields([None, None]);
    let proof = state.prove(absent, &[SLOT]).unwrap();
    let proof: AccountProof = proof.into().unwrap();
    assert_eq!(
        (proof.code_hash, proof.storage_hash),
        (B256::ZERO, B256::ZERO)
    );
    assert_eq!(proof.verify(root).unwrap(), Ok(None));
    let mut as_before = proof.clone();
    as_before.code_hash = KECCAK256_EMPTY;
    as_before.storage_hash = EMPTY_ROOT;
    assert_eq!(as_before.verify(root).unwrap(), Ok(None));

    // An empty account has hashes, and no proof makes the one of the other.
    let nothing = Some(plain(0, 0));
    let empty = by_fields([nothing, nothing]);
    let proof = state.prove(empty, &[SLOT]).unwrap();
    let proof: AccountProof = proof.into().unwrap();
    let hashes = (proof.code_hash, proof.storage_hash);
    assert_eq!(hashes, (KECCAK256_EMPTY, EMPTY_ROOT));
    assert_eq!(proof.verify(root).unwrap(), Ok(nothing));
    let mut as_absent = proof.clone();
    as_absent.code_hash = B256::ZERO;
    as_absent.storage_hash = B256::ZERO;
    let refused = Err(FalseProof::Account(empty));
    assert_eq!(as_absent.verify(root).unwrap(), refused);
}

/// The fields of a proof by paths are those of the account that it shows.
#[test]
fn a_proof_by_paths_tells_absent_from_empty() {
    let tree = trees()
        .into_iter()
        .find(|tree| tree.downcast::<Ar16mt>().is_some())
        .unwrap();
    let state = made(&tree);
    let then = state.at(Version(1)).unwrap();
    let root = state.root();
    for (address, versions) in accounts() {
        let proof: StateProof = then.prove(address, &[]).unwrap().into().unwrap();
        let hash = versions[1].map_or(B256::ZERO, |account| account.code_hash);
        assert_eq!(
            (proof.exists, proof.code_hash),
            (versions[1].is_some(), hash)
        );
        let mut as_before = proof.clone();
        if versions[1].is_none() {
            as_before.code_hash = KECCAK256_EMPTY;
        }
        assert_eq!(as_before.verify(root).unwrap(), Ok(versions[1]));
        // Nor is it the other way round.
        let mut opposite = proof;
        opposite.exists = !opposite.exists;
        if !matches!(opposite.verify(root), Ok(Err(_)) | Err(_)) {
            panic!("{address}: {opposite:?}");
        }
    }
}

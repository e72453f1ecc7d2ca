//! Sessions beside the naive models: blocks on top of blocks that are not committed, under every tree.

#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{B256, U256, keccak256};
use arbor_state::{
    BlockRef, Reads, Session, State, StateChanges, StateError, StateView, StateWitness, Touched,
    Tree,
};
use arbor_state_tree::conformance::Codes;
use arbor_store::MemoryStore;
use arbor_versions::{Retain, Version};
use proptest::prelude::*;

use crate::model::{Expected, Place, ROWS, check_then};
use crate::support::{Edit, codes, edit, edit_model};
use crate::trees::{address, block, change, empty, plain, trees};

/// A session with what each of its versions is to be, from the first one on.
struct Branch {
    session: Session,
    versions: Vec<Expected>,
}

fn all_codes() -> Codes {
    codes().map(|code| (keccak256(&code), code)).into()
}

/// The version that edits make of the last one, and the changes between the two.
fn next(tree: &Tree, versions: &[Expected], edits: &[Edit]) -> (Expected, StateChanges) {
    let before = versions.last().cloned().unwrap_or_default();
    let (mut contents, mut changes) = (before.contents.clone(), StateChanges::default());
    for edit in edits {
        edit_model(&mut contents, &mut changes, &before.contents, edit);
    }
    // What a tree keeps of the past follows from all that came before.
    let mut model = (tree.kind().model.unwrap())(&**tree);
    for version in versions {
        model.after(&version.contents, &all_codes());
    }
    let root = model.after(&contents, &all_codes());
    (Expected { contents, root }, changes)
}

impl Branch {
    /// The branch with one more block, which tells by its hash where it was made.
    fn with(&self, tree: &Tree, edits: &[Edit], hash: u64) -> Self {
        let (expected, changes) = next(tree, &self.versions, edits);
        let block = BlockRef::new(self.versions.len() as u64, B256::from(U256::from(hash)));
        let session = self.session.apply(&block, &changes).unwrap();
        assert_eq!(session.root(), expected.root);
        assert_eq!(session.depth(), self.session.depth() + 1);
        let versions = self.versions.iter().cloned().chain([expected]);
        Self {
            session,
            versions: versions.collect(),
        }
    }

    /// The session has its blocks and all that lie below, and each is found by what it is called.
    fn check(&self) {
        let reader = self.session.reader();
        for (version, expected) in self.versions.iter().enumerate() {
            let then = reader.at(Version(version as u64)).unwrap();
            check_then(&then, expected);
            let meta = then.meta().clone();
            assert_eq!(*reader.at_block(version as u64).unwrap().meta(), meta);
            let by_hash = reader.at_block_hash(meta.block_hash.into()).unwrap();
            assert_eq!(*by_hash.meta(), meta);
            let by_root = reader.at_root(expected.root).unwrap();
            assert_eq!(by_root.meta().root, meta.root);
        }
        let none = reader.at_block(self.versions.len() as u64);
        match self.versions.is_empty() {
            true => assert!(none.is_err()),
            false => assert!(matches!(none, Err(StateError::NoBlock { .. })), "{none:?}"),
        }
    }
}

fn committed(tree: &Tree, place: &Place, blocks: &[Vec<Edit>]) -> (State, Vec<Expected>) {
    let mut state = place.open(tree);
    let mut versions: Vec<Expected> = Vec::new();
    for (number, edits) in (0..).zip(blocks) {
        let (expected, changes) = next(tree, &versions, edits);
        let computed = state.compute(&changes).unwrap();
        assert_eq!(computed.root(), expected.root);
        state.commit(&block(number), computed).unwrap();
        versions.push(expected);
        if number == 1 {
            state.flush().unwrap();
        }
    }
    (state, versions)
}

/// Sessions on sessions; each is what the model says, before and after others are committed.
fn agrees(tree: &Tree, below: &[Vec<Edit>], above: &[(usize, Vec<Edit>)], chosen: usize) {
    let place = Place::Memory(Arc::new(MemoryStore::default()));
    let (mut state, versions) = committed(tree, &place, below);
    let mut branches = vec![Branch {
        session: state.session().unwrap(),
        versions: versions.clone(),
    }];
    // One begins three versions ago, as a reorganisation does.
    let back = versions.len().saturating_sub(3);
    if back > 0 && back < versions.len() {
        let snapshot = state.snapshot().unwrap();
        let session = snapshot.session_at(Version(back as u64 - 1)).unwrap();
        let versions = versions[..back].to_vec();
        branches.push(Branch { session, versions });
    }
    let bases = branches.len();
    for (hash, (parent, edits)) in (1_000..).zip(above) {
        let parent = &branches[parent % branches.len()];
        let branch = parent.with(tree, edits, hash);
        branches.push(branch);
    }
    branches.iter().for_each(Branch::check);

    let chosen = &branches[chosen % branches.len()];
    let base = chosen.versions.len() - chosen.session.depth();
    if base < versions.len() {
        let stale = state.commit_session(chosen.session.clone());
        assert!(matches!(stale, Err(StateError::Stale { .. })), "{stale:?}");
        state.rollback(Version(base as u64 - 1)).unwrap();
    }
    // The blocks that are committed already are left out.
    let is_below = |parent: &&Branch| {
        let (parent, chosen) = (parent.session.meta(), chosen.session.reader());
        let same = parent.and_then(|parent| chosen.at(parent.version).ok());
        parent.is_some() && parent == same.as_ref().map(|then| then.meta())
    };
    if let Some(parent) = branches[bases..].iter().find(is_below) {
        state.commit_session(parent.session.clone()).unwrap();
    }
    state.commit_session(chosen.session.clone()).unwrap();
    state.commit_session(chosen.session.clone()).unwrap();
    assert_eq!(state.root(), chosen.session.root());
    assert_eq!(state.head(), chosen.session.meta());
    if chosen.versions.is_empty() {
        return;
    }
    for (version, expected) in chosen.versions.iter().enumerate() {
        if let Ok(then) = state.at(Version(version as u64)) {
            check_then(&then, expected);
        }
    }
    let report = state.verify().unwrap();
    assert!(report.is_ok(), "{:?}", report.faults);
    state.flush().unwrap();
    // The others read on, and none of them can follow.
    branches.iter().for_each(Branch::check);
    drop(state);
    let mut state = place.open(tree);
    assert_eq!(state.head(), chosen.session.meta());
    let report = state.verify().unwrap();
    assert!(report.is_ok(), "{:?}", report.faults);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, ..ProptestConfig::default() })]

    #[test]
    fn stacked_sessions_agree_with_the_model(
        below in prop::collection::vec(prop::collection::vec(edit(), 0..5), 0..6),
        above in prop::collection::vec((0..8usize, prop::collection::vec(edit(), 0..5)), 0..6),
        chosen in 0..8usize,
    ) {
        for tree in &*ROWS {
            agrees(tree, &below, &above, chosen);
        }
    }
}

/// Two candidates for one block, and a child of one of them.
#[test]
fn of_two_candidates_one_is_committed() {
    for tree in trees() {
        let mut state = empty(&tree);
        let genesis = state.session().unwrap();
        let mut changes = StateChanges::default();
        let (one, two) = (address(1), address(2));
        changes
            .accounts
            .insert(one, change(None, Some(plain(0, 5)), &[(1, 0, 7)]));
        let parent = genesis.apply(&block(0), &changes).unwrap();
        let candidate = |balance, number| {
            let mut changes = StateChanges::default();
            let new = Some(plain(1, balance));
            changes
                .accounts
                .insert(two, change(None, new, &[(2, 0, balance)]));
            parent.apply(&BlockRef::new(1, B256::repeat_byte(number)), &changes)
        };
        let (a, b) = (candidate(10, 0xa).unwrap(), candidate(20, 0xb).unwrap());
        assert_ne!(a.root(), b.root());
        assert_eq!(parent.account(two).unwrap(), None);
        assert_eq!(a.account(two).unwrap(), Some(plain(1, 10)));
        assert_eq!(b.storage(two, U256::from(2)).unwrap(), U256::from(20));
        assert_eq!(b.storage(one, U256::from(1)).unwrap(), U256::from(7));
        b.expect(&[one, two], &[(one, U256::from(1))]);
        let mut changes = StateChanges::default();
        changes
            .accounts
            .insert(one, change(Some(plain(0, 5)), None, &[]));
        changes.accounts.get_mut(&one).unwrap().storage_cleared = true;
        let child = b.apply(&block(2), &changes).unwrap();
        // Changes on top of the other candidate are refused by their old values.
        let wrong = StateChanges {
            accounts: [(two, change(Some(plain(1, 10)), None, &[]))].into(),
            ..StateChanges::default()
        };
        assert!(b.apply(&block(2), &wrong).is_err());
        let earlier = child.apply(&block(1), &StateChanges::default());
        assert!(earlier.is_err(), "a block before its parent");

        assert_eq!((state.head(), child.depth()), (None, 3));
        state.commit_session(child.clone()).unwrap();
        assert_eq!(state.root(), child.root());
        let stale = state.commit_session(a.clone());
        let told = stale.unwrap_err().to_string();
        assert!(told.contains("computed on the empty database"), "{told}");
        drop((parent, a, b, child));
        assert_eq!(state.account(one).unwrap(), None);
        assert_eq!(state.head().map(|head| head.version), Some(Version(2)));
        // A block that nothing came after is committed from its snapshot, too.
        let next = state.snapshot().unwrap().session().unwrap();
        let next = next.apply(&block(3), &StateChanges::default()).unwrap();
        state.commit_session(next).unwrap();
        assert!(state.verify().unwrap().is_ok());
    }
}

/// A witness of a block comes from the session that the block is applied to, and leads to the session's root.
#[test]
fn a_session_gives_the_witness_of_the_next_block() {
    let (mut with_witness, one) = (0, address(1));
    for tree in trees() {
        let mut state = empty(&tree);
        let mut changes = StateChanges::default();
        changes
            .accounts
            .insert(one, change(None, Some(plain(0, 5)), &[(1, 0, 7)]));
        let session = state.session().unwrap();
        let (reads, chunks) = (Reads::default(), BTreeMap::default());
        let parent = session.apply(&block(0), &changes).unwrap();
        let mut changes = StateChanges::default();
        changes.accounts.insert(
            one,
            change(Some(plain(0, 5)), Some(plain(1, 4)), &[(1, 7, 8)]),
        );
        let touched = Touched {
            reads: &reads,
            chunks: &chunks,
            changes: &changes,
            transactions: &[],
            guarded: false,
        };
        match parent.witness(touched).unwrap() {
            Some(StateWitness::Nodes { nodes, .. }) => {
                with_witness += 1;
                let root = parent.root();
                let leads = nodes.iter().any(|node| keccak256(node) == root);
                assert!(leads || tree.kind().name != "mpt", "{}", tree.kind().name);
            }
            Some(StateWitness::Leaves(_)) => with_witness += 1,
            None => assert!(!tree.kind().has_witnesses),
        }
    }
    assert!(with_witness >= 3);
}

/// Threads read the latest state while it is written, and each sees whole blocks.
#[test]
fn readers_in_other_threads_see_whole_blocks() {
    for tree in [
        arbor_trees::MPT.tree(),
        arbor_trees::eip8297::EIP8297.tree(),
    ] {
        let mut state = empty(&tree);
        let mut before = None;
        let commit = |state: &mut State, number: u64, before: &mut Option<_>| {
            let account = plain(number, 100 + number);
            let mut changes = StateChanges::default();
            let slots = [(1, number.saturating_sub(1), number)];
            for name in [1, 2] {
                let change = change(*before, Some(account), &slots);
                changes.accounts.insert(address(name), change);
            }
            let computed = state.compute(&changes).unwrap();
            state.commit(&block(number), computed).unwrap();
            *before = Some(account);
        };
        commit(&mut state, 0, &mut before);
        let reader = state.shared_reader().unwrap();
        let last = 60;
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let reader = reader.clone();
                std::thread::spawn(move || {
                    let mut seen = 0;
                    while seen < last {
                        let latest = reader.latest();
                        let head = latest.reader();
                        let number = head.meta().unwrap().block_number;
                        assert!(number >= seen);
                        for name in [1, 2] {
                            let account = head.account(address(name)).unwrap();
                            assert_eq!(account, Some(plain(number, 100 + number)));
                            let slot = head.storage(address(name), U256::from(1)).unwrap();
                            assert_eq!(slot, U256::from(number));
                        }
                        let proof = head.latest().unwrap().prove(address(1), &[]).unwrap();
                        let root = latest.reader().root();
                        let verdict = proof.verify(root).unwrap();
                        assert!(matches!(verdict, arbor_verify::Verdict::True(_)));
                        seen = number;
                    }
                })
            })
            .collect();
        for number in 1..=last {
            commit(&mut state, number, &mut before);
            if number % 20 == 0 {
                state.flush().unwrap();
                state.prune(Retain::Last(4)).unwrap();
            }
        }
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        state.rollback(Version(last - 2)).unwrap();
        let latest = reader.latest();
        assert_eq!(latest.reader().meta(), state.head());
        drop(state);
        // The last state outlives its writer.
        assert_eq!(
            reader.latest().reader().meta().unwrap().block_number,
            last - 2
        );
        assert_eq!(
            latest
                .reader()
                .account(address(1))
                .unwrap()
                .map(|it| it.nonce),
            Some(last - 2)
        );
    }
}

//! The state beside a naive model, under every tree: plain maps for contents, naive or bottom-up trees for roots.

#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::support::{ACCOUNTS, Contents, Step, address, codes, edit_model, slots, step};
use crate::trees::{self, registry};
use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256, keccak256};
use arbor_ipa::Committer;
use arbor_state::{
    AccountSlots, BlockRef, Historical, Network, Scratch, State, StateChanges, StateError,
    StateView, Tree,
};
use arbor_state_tree::conformance::Codes;
use arbor_store::{MemoryStore, Store};
use arbor_store_fjall::FjallStore;
use arbor_tree::naive;
use arbor_tree_eip7864::Hasher as UnifiedHasher;
use arbor_tree_eip8297::Hasher;
use arbor_tree_verkle::{Form, Settings};
use arbor_trees::ar16mt::AR16MT;
use arbor_trees::eip7864::{EIP7864, Eip7864};
use arbor_trees::eip8297::{EIP8297, Eip8297, Packing};
use arbor_trees::verkle::{HeaderLayout, Verkle, VerkleSettings};
use arbor_trees::{MPT, naive_root};
use arbor_verify::{Kinds, ProvenAccount, Verdict};
use arbor_versions::{Options, Retain, Version};
use proptest::prelude::*;

/// Small tables, to be quick; what they compute does not depend on their sizes.
static COMMITTER: LazyLock<Arc<Committer>> =
    LazyLock::new(|| Arc::new(Committer::within(6_000_000)));

pub(crate) static ROWS: LazyLock<Vec<Tree>> = LazyLock::new(trees::trees);

fn verkle(layout: HeaderLayout, form: Form) -> Tree {
    let settings = VerkleSettings {
        layout,
        tree: Settings {
            form,
            ..Settings::default()
        },
        stem_bytes: 10_000,
        ..VerkleSettings::default()
    };
    Arc::new(Verkle::with(COMMITTER.clone(), settings))
}

/// What a version is to be.
#[derive(Clone, Default, PartialEq, Debug)]
pub(crate) struct Expected {
    pub(crate) contents: Contents,
    pub(crate) root: B256,
}

/// Where a history is kept.
pub(crate) enum Place {
    Memory(Arc<MemoryStore>),
    Folder(tempfile::TempDir),
}

impl Place {
    pub(crate) fn open(&self, tree: &Tree) -> State {
        let network = Network {
            chain_id: 1,
            genesis_hash: B256::ZERO,
        };
        let options = Options {
            dirty_bytes: 4096,
            cache_bytes: 1 << 16,
            retain: Retain::Last(6),
            ..Default::default()
        };
        let store: Arc<dyn Store> = match self {
            Self::Memory(store) => store.clone(),
            Self::Folder(folder) => {
                Arc::new(FjallStore::open(folder.path(), &Default::default()).unwrap())
            }
        };
        let state = State::open(store, None, tree.clone(), network, options).unwrap();
        // Three changes are much: most ways back go in steps.
        state.with_scratch(Scratch::new(3, "memory", || {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
            Ok((store, Box::new(())))
        }))
    }
}

/// Everything readable at a version equals the model's contents, and is proven under its root where the tree has such proofs.
fn check(state: &State, version: u64, expected: &Expected) {
    check_then(&state.at(Version(version)).unwrap(), expected);
}

pub(crate) fn check_then(then: &Historical, expected: &Expected) {
    let root = expected.root;
    assert_eq!(B256::from(then.meta().root), root, "{:?}", then.meta());
    check_proofs(then, &check_contents(then, &expected.contents));
}

/// Everything readable at a version equals the model's contents; returns what proofs of it are to show.
pub(crate) fn check_contents(then: &Historical, contents: &Contents) -> Vec<ProvenAccount> {
    let mut proven = Vec::new();
    for number in 0..ACCOUNTS {
        let address = address(number);
        let expected = contents.get(&address);
        let account = then.account(address).unwrap();
        assert_eq!(account, expected.map(|(account, _)| *account));
        let has_storage = expected.is_some_and(|(_, slots)| !slots.is_empty());
        assert_eq!(then.has_storage(address).unwrap(), has_storage);
        if let Some(account) = account.filter(|account| account.code_hash != KECCAK256_EMPTY) {
            let code = then.code(account.code_hash).unwrap();
            assert_eq!(keccak256(&code), account.code_hash);
        }
        let value = |slot| {
            let slots = expected.map(|(_, slots)| slots);
            let value = slots.and_then(|slots| slots.get(&slot));
            value.copied().unwrap_or_default()
        };
        for slot in slots() {
            assert_eq!(then.storage(address, slot).unwrap(), value(slot));
        }
        proven.push(ProvenAccount {
            address,
            account,
            slots: slots()
                .into_iter()
                .map(|slot| (slot, Some(value(slot))))
                .collect(),
        });
    }
    let mut dumped = BTreeMap::new();
    then.dump::<StateError>(|account| {
        dumped.insert(account.address, (account.storage.len(), account.root));
        Ok(())
    })
    .unwrap();
    let expected: BTreeMap<Address, (usize, B256)> = contents
        .iter()
        .map(|(address, (_, slots))| {
            let one = [(*address, slots)].into_iter();
            let leaves = one.flat_map(|(_, slots)| slots).map(|(slot, value)| {
                let key = keccak256(B256::from(*slot)).to_vec();
                (key, alloy_rlp::encode(value))
            });
            let root = naive::root(&leaves.collect()).into();
            (*address, (slots.len(), root))
        })
        .collect();
    assert_eq!(dumped, expected);
    proven
}

/// Accounts and slots are proven, present and absent, alone and together; a proof comes back from its file, and holds under
/// no other root.
fn check_proofs(then: &Historical, accounts: &[ProvenAccount]) {
    let root = B256::from(then.meta().root);
    let names: Vec<AccountSlots> = accounts
        .iter()
        .map(|proven| AccountSlots {
            address: proven.address,
            slots: proven.slots.iter().map(|(slot, _)| *slot).collect(),
        })
        .collect();
    let one = then.meta().version.0 as usize % names.len();
    let alone = then.prove(names[one].address, &names[one].slots);
    let together = then.prove_together(&names);
    let wanted = [&accounts[one..=one], accounts];
    for (proof, wanted) in [alone, together].into_iter().zip(wanted) {
        let proof = proof.unwrap();
        let mut file = Vec::new();
        proof.write_json(&mut file, false).unwrap();
        let known = Kinds::new(registry().rows().map(|row| row.verify));
        let known = known.only(then.tree().kind().name).unwrap();
        let read = known.read(serde_json::from_slice(&file).unwrap());
        let read = read.unwrap();
        assert_eq!(read.form().name, proof.form().name);
        assert_eq!(format!("{read:?}"), format!("{proof:?}"));
        let forms = then.tree().kind().verify.forms;
        assert!(forms.iter().any(|form| form.name == proof.form().name));
        let Verdict::True(mut claims) = read.verify(root).unwrap() else {
            panic!("{} at version {}", proof.form().name, then.meta().version.0);
        };
        let slots = claims.accounts.iter_mut().flat_map(|of| &mut of.slots);
        // What was never written is zero.
        slots.for_each(|(_, value)| *value = Some(value.unwrap_or_default()));
        assert_eq!(
            (claims.accounts, claims.doubtful.len()),
            (wanted.to_vec(), 0)
        );
        let other = read.verify(then.tree().empty_root());
        let holds = matches!(other, Ok(Verdict::True(_)));
        assert_eq!(holds, root == then.tree().empty_root());
    }
}

/// A snapshot has the same versions; those far back are made in stores of their own. In any order: some are on the way to others.
fn check_snapshot(state: &mut State, history: &[Expected]) {
    let snapshot = state.snapshot().unwrap();
    let last = history.len() as u64;
    let versions = last.saturating_sub(7)..last;
    for version in versions.clone().rev().chain(versions) {
        if let Ok(then) = snapshot.reader().at(Version(version)) {
            check_then(&then, &history[version as usize]);
        }
    }
}

/// Who goes from one version to the next finds the same as who opens each.
fn check_walk(state: &State, history: &[Expected]) {
    let proof =
        |then: &Historical, address| format!("{:?}", then.prove(address, &slots()).unwrap());
    let versions = (history.len() as u64).saturating_sub(7)..history.len() as u64;
    let mut walked: Option<Historical> = None;
    for version in versions {
        let Ok(opened) = state.at(Version(version)) else {
            continue;
        };
        let then = match walked.take() {
            Some(before) => before.next().unwrap(),
            None => state.at(Version(version)).unwrap(),
        };
        let address = address(version as u8 % ACCOUNTS);
        // From the second proof on AR16MT keeps all nodes.
        for _ in 0..2 {
            assert_eq!(proof(&then, address), proof(&opened, address));
        }
        check_then(&then, &history[version as usize]);
        walked = Some(then);
    }
    assert!(walked.is_none_or(|head| head.next().is_err()));
}

fn agrees_with_the_model(
    place: &Place,
    tree: &Tree,
    steps: Vec<Step>,
) -> Result<(), TestCaseError> {
    agrees_in_runs(place, tree, steps, 1)
}

/// The same, with up to so many consecutive blocks computed together.
fn agrees_in_runs(
    place: &Place,
    tree: &Tree,
    steps: Vec<Step>,
    most: usize,
) -> Result<(), TestCaseError> {
    let mut state = place.open(tree);
    // Each version, the oldest retained one known to the database.
    let mut history: Vec<Expected> = Vec::new();
    let mut run: Vec<StateChanges> = Vec::new();
    let all_codes: Codes = codes().map(|code| (keccak256(&code), code)).into();
    let mut model = (tree.kind().model.unwrap())(&**tree);
    let mut steps = steps.into_iter().peekable();
    while let Some(step) = steps.next() {
        match step {
            Step::Block(edits) => {
                let before = history.last().cloned().unwrap_or_default();
                let (mut contents, mut changes) =
                    (before.contents.clone(), StateChanges::default());
                for edit in &edits {
                    edit_model(&mut contents, &mut changes, &before.contents, edit);
                }
                let root = model.after(&contents, &all_codes);
                history.push(Expected { contents, root });
                run.push(changes);
                if run.len() < most && matches!(steps.peek(), Some(Step::Block(_))) {
                    continue;
                }
                let computed = match &run[..] {
                    [changes] => vec![state.compute(changes).unwrap()],
                    run => {
                        let changes: Vec<&StateChanges> = run.iter().collect();
                        state.compute_together(&changes).unwrap()
                    }
                };
                let first = history.len() - run.len();
                run.clear();
                for (computed, expected) in computed.iter().zip(&history[first..]) {
                    prop_assert_eq!(computed.root(), expected.root);
                }
                let root = naive_root(&history[history.len() - 1].contents);
                prop_assert_eq!(state.flat_root_after(&computed).unwrap(), root);
                let block = |number| BlockRef {
                    number,
                    hash: B256::from(U256::from(number)),
                    record: vec![],
                };
                let blocks = (first as u64..).map(block).zip(computed);
                state.commit_together(blocks).unwrap();
            }
            Step::Flush => state.flush().unwrap(),
            Step::Reopen => {
                state.flush().unwrap();
                drop(state);
                state = place.open(tree);
            }
            Step::Rollback(back) => {
                let target = (history.len() as u64).saturating_sub(1 + back);
                if !history.is_empty() && state.rollback(Version(target)).is_ok() {
                    history.truncate(target as usize + 1);
                    // What a tree keeps of the past follows from what is left of it.
                    model = (tree.kind().model.unwrap())(&**tree);
                    for version in &history {
                        model.after(&version.contents, &all_codes);
                    }
                }
            }
            Step::Prune(keep) => {
                state.prune(Retain::Last(keep)).unwrap();
            }
            Step::KeepNodes => {
                state.keep_nodes_back(&mut |_, _| true).unwrap();
                let oldest = state.reader().view().oldest();
                let since = state.keeps_nodes_since();
                prop_assert!(since.is_some() && oldest.is_none_or(|oldest| since == Some(oldest)));
            }
            Step::ForgetNodes => state.forget_nodes().unwrap(),
        }
        if let Some(last) = history.last() {
            let head = history.len() as u64 - 1;
            check(&state, head, last);
            let oldest = head.saturating_sub(6);
            for version in oldest..head {
                if state.at(Version(version)).is_ok() {
                    check(&state, version, &history[version as usize]);
                }
            }
            if head.is_multiple_of(3) {
                check_snapshot(&mut state, &history);
            }
            let root = naive_root(&last.contents);
            prop_assert_eq!(state.reader().flat_root().unwrap(), root);
            let report = state.verify().unwrap();
            prop_assert!(report.is_ok(), "{:?}", report.faults);
            prop_assert_eq!(report.flat_root, root);
        }
    }
    check_walk(&state, &history);
    Ok(())
}

pub(crate) fn memory() -> Place {
    Place::Memory(Arc::default())
}

const COMPRESSED: Form = Form {
    compressed: true,
    images: false,
    leaf_commitments: false,
    values: true,
    whole: false,
};
const EVERYTHING: Form = Form {
    images: true,
    ..Form::PUBLISHED
};

/// The usual number of random histories, times the number in the environment's `ARBOR_CASES`.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let times = std::env::var("ARBOR_CASES");
    let times = times.map_or(1, |times| times.parse().expect("ARBOR_CASES is a number"));
    ProptestConfig {
        cases: usual * times,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(16))]

    #[test]
    fn a_random_history_agrees_with_the_model(steps in prop::collection::vec(step(), 1..40)) {
        agrees_with_the_model(&memory(), &MPT.tree(), steps)?;
    }
}

proptest! {
    #![proptest_config(cases(8))]

    /// With every hash function, and records of any number of levels; leaves that are put in order fall into several groups.
    #[test]
    fn an_eip8297_history_agrees_with_the_model(
        steps in prop::collection::vec(step(), 1..30), hash in 0..3usize, levels in 1u8..=8, inner_hashes: bool,
    ) {
        let tree = Eip8297 {
            hasher: Hasher::named(EIP8297.hashes[hash]).unwrap(),
            packing: Packing { levels, inner_hashes },
            leaf_bytes: 4 << 10,
            sort_bytes: 4 << 10,
        };
        agrees_with_the_model(&memory(), &(Arc::new(tree) as Tree), steps)?;
    }

    #[test]
    fn an_eip7864_history_agrees_with_the_model(
        steps in prop::collection::vec(step(), 1..20), hash in 0..3usize, levels in 1u8..=8, inner_hashes: bool,
    ) {
        let usual = EIP7864.tree();
        let tree = Eip7864 {
            hasher: UnifiedHasher::named(EIP7864.hashes[hash]).unwrap(),
            packing: Packing { levels, inner_hashes },
            leaf_bytes: 4 << 10,
            sort_bytes: 4 << 10,
            ..*usual.downcast().unwrap()
        };
        agrees_with_the_model(&memory(), &(Arc::new(tree) as Tree), steps)?;
    }

    #[test]
    fn an_ar16mt_history_agrees_with_the_model(steps in prop::collection::vec(step(), 1..30)) {
        agrees_with_the_model(&memory(), &AR16MT.tree(), steps)?;
    }
}

proptest! {
    #![proptest_config(cases(2))]

    /// Whatever is in the registry, a tree of the tests too.
    #[test]
    fn a_history_under_every_row_agrees_with_the_model(steps in prop::collection::vec(step(), 1..30)) {
        for tree in &*ROWS {
            agrees_with_the_model(&memory(), tree, steps.clone())?;
        }
    }
}

proptest! {
    #![proptest_config(cases(3))]

    #[test]
    fn a_verkle_history_agrees_with_the_model(steps in prop::collection::vec(step(), 1..25)) {
        let tree = verkle(HeaderLayout::BasicData, Form::default());
        agrees_with_the_model(&memory(), &tree, steps)?;
    }

    #[test]
    fn a_verkle_history_in_runs_agrees_with_the_model(steps in prop::collection::vec(step(), 1..40), most in 2usize..8) {
        let tree = verkle(HeaderLayout::BasicData, Form::default());
        agrees_in_runs(&memory(), &tree, steps, most)?;
    }

    #[test]
    fn the_older_layout_agrees_with_the_model(steps in prop::collection::vec(step(), 1..15)) {
        let tree = verkle(HeaderLayout::FiveLeaves, COMPRESSED);
        agrees_with_the_model(&memory(), &tree, steps)?;
    }
}

proptest! {
    #![proptest_config(cases(1))]

    #[test]
    fn a_verkle_history_on_disk_agrees_with_the_model(steps in prop::collection::vec(step(), 1..20)) {
        let tree = verkle(HeaderLayout::BasicData, EVERYTHING);
        let folder = tempfile::tempdir().unwrap();
        agrees_with_the_model(&Place::Folder(folder), &tree, steps)?;
    }

    #[test]
    fn an_eip8297_history_on_disk_agrees_with_the_model(steps in prop::collection::vec(step(), 1..20)) {
        let folder = tempfile::tempdir().unwrap();
        agrees_with_the_model(&Place::Folder(folder), &EIP8297.tree(), steps)?;
    }

    #[test]
    fn an_ar16mt_history_on_disk_agrees_with_the_model(steps in prop::collection::vec(step(), 1..20)) {
        let folder = tempfile::tempdir().unwrap();
        agrees_with_the_model(&Place::Folder(folder), &AR16MT.tree(), steps)?;
    }
}

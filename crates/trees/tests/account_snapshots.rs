//! A state as a list of accounts, and every tree made of it again, with the same root.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::num::NonZeroUsize;
use std::sync::LazyLock;

use crate::support::{Contents, Edit, Step, edit_model, step};
use crate::trees::{NETWORK, address, block, empty, plain, registry, trees};
use alloy_primitives::{B256, KECCAK256_EMPTY, U256, keccak256};
use arbor_state::recovery::{
    AccountEntry, AccountsFile, Chunk, EntriesReader, EntriesWriter, Order, Recovery, RecoveryError,
};
use arbor_state::{AccountSource, FullAccount, Historical, State, StateChanges, StateView, Tree};
use arbor_state_tree::KeptAccount;
use arbor_versions::Version;
use proptest::prelude::*;

/// Trees without leaves by key, whose snapshots are lists of accounts.
static TREES: LazyLock<Vec<Tree>> = LazyLock::new(|| {
    let mut trees = trees();
    trees.retain(|tree| tree.leaves().is_none());
    trees
});

/// Commits the blocks of a history, and returns the contents after each.
fn commit(state: &mut State, blocks: &[Vec<Edit>]) -> Vec<Contents> {
    let (mut contents, mut all) = (Contents::new(), Vec::new());
    for edits in blocks {
        let (before, mut changes) = (contents.clone(), StateChanges::default());
        for edit in edits {
            edit_model(&mut contents, &mut changes, &before, edit);
        }
        let number = all.len() as u64;
        let computed = state.compute(&changes).unwrap();
        state.commit(&block(number), computed).unwrap();
        all.push(contents.clone());
    }
    all
}

fn written(state: &State, version: u64, together: usize) -> Vec<u8> {
    let then = state.at(Version(version)).unwrap();
    let form = (Order::Key, NonZeroUsize::new(together).unwrap());
    let head = then.entries_head(NETWORK, None, form).unwrap();
    let written = then.write_entries(Vec::new(), &head, &|_, _| ());
    written.unwrap().0
}

fn recover(state: &mut State, list: &[u8]) -> Result<(), RecoveryError> {
    let mut entries = EntriesReader::new(list, list.len() as u64)?;
    let mut recovery = Recovery::new(state, entries.head().clone())?;
    let done = recovery.done();
    while let Some(chunk) = entries.next_chunk()? {
        if entries.chunks() > done {
            recovery.add(chunk, entries.place())?;
        }
    }
    recovery.finish(entries.place())
}

/// Compares a state that was recovered with the one that the list is of.
fn agrees(recovered: &mut State, state: &State, version: u64, contents: &Contents) {
    let then = state.at(Version(version)).unwrap();
    assert_eq!(recovered.root(), B256::from(then.meta().root));
    let head = recovered.at(recovered.head().unwrap().version).unwrap();
    let kept = |of: &Historical<'_>| -> Vec<KeptAccount> {
        let listing = of.tree().records().kept_listing(of).unwrap();
        listing.map(Result::unwrap).collect()
    };
    assert_eq!(kept(&head), kept(&then));
    for (address, (account, slots)) in contents {
        assert_eq!(head.account(*address).unwrap(), Some(*account));
        for (slot, value) in slots {
            assert_eq!(head.storage(*address, *slot).unwrap(), *value);
        }
        if account.code_hash != KECCAK256_EMPTY {
            assert_eq!(
                keccak256(head.code(account.code_hash).unwrap()),
                account.code_hash
            );
        }
    }
    let report = recovered.verify().unwrap();
    assert!(report.is_ok(), "{:?}", report.faults);
}

/// The blocks of a history of random steps.
fn blocks_of(steps: Vec<Step>) -> Vec<Vec<Edit>> {
    let blocks = steps.into_iter().filter_map(|step| match step {
        Step::Block(edits) => Some(edits),
        _ => None,
    });
    blocks.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    /// What is gone leaves zeros in some trees, which the list has to bring back.
    #[test]
    fn a_snapshot_has_the_root_of_its_version(
        steps in prop::collection::vec(step(), 4..16), together in 1usize..40, at in any::<prop::sample::Index>(),
    ) {
        let blocks = blocks_of(steps);
        prop_assume!(!blocks.is_empty());
        for tree in &*TREES {
            let mut state = empty(tree);
            let contents = commit(&mut state, &blocks);
            for version in [at.index(blocks.len()), blocks.len() - 1] {
                let list = written(&state, version as u64, together);
                let mut recovered = empty(tree);
                recover(&mut recovered, &list).unwrap();
                agrees(&mut recovered, &state, version as u64, &contents[version]);
            }
        }
    }
}

/// A state in which everything is that a list can have: slots in several chunks, code, and things that are gone.
fn rich() -> Vec<Vec<Edit>> {
    let set = |account, code, slots: &[(usize, u8)]| Edit::Set {
        account,
        balance: 3,
        code,
        slots: slots.to_vec(),
    };
    let many: Vec<(usize, u8)> = (0..12).map(|slot| (slot, 2)).collect();
    vec![
        vec![
            set(1, 5, &many),
            set(2, 4, &many),
            set(3, 3, &many[..4]),
            set(4, 6, &[]),
        ],
        vec![
            set(1, 1, &[(0, 0), (9, 0)]),
            Edit::Remove { account: 2 },
            set(4, 0, &[(3, 1)]),
        ],
        vec![set(5, 2, &many[3..7])],
    ]
}

#[test]
fn accounts_of_a_file_are_a_source_for_every_tree() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list");
    for tree in &*TREES {
        let mut state = empty(tree);
        let contents = commit(&mut state, &rich());
        std::fs::write(&path, written(&state, 2, 3)).unwrap();
        assert!(AccountsFile::is_one(&path).unwrap());
        let file = AccountsFile::open(&path, &registry()).unwrap();
        let listed =
            |first| -> Vec<FullAccount> { file.full(first).unwrap().map(Result::unwrap).collect() };
        let all = listed(None);
        assert_eq!(all.len(), contents[2].len());
        for account in &all {
            let (expected, slots) = &contents[2][&account.address];
            assert_eq!(account.account, *expected);
            assert_eq!(
                account
                    .slots
                    .iter()
                    .copied()
                    .collect::<crate::support::Slots>(),
                *slots
            );
            if expected.code_hash != KECCAK256_EMPTY {
                let code = file.code_bytes(expected.code_hash).unwrap();
                assert_eq!(keccak256(code), expected.code_hash);
            }
        }
        let by_first: Vec<FullAccount> = (0..=255).flat_map(|first| listed(Some(first))).collect();
        assert_eq!(by_first, all);
        let mut loaded = empty(tree);
        let computed = loaded.load(&file, &|_, _| ()).unwrap();
        loaded
            .commit_loaded(vec![(block(2), computed.root())], computed)
            .unwrap();
        assert_eq!(
            loaded.reader().flat_root().unwrap(),
            state.reader().flat_root().unwrap()
        );
    }
}

/// A recovery that stops after any chunk goes on with the same list, and with no other.
#[test]
fn a_recovery_of_accounts_goes_on_after_any_chunk() {
    for tree in &*TREES {
        let mut state = empty(tree);
        let contents = commit(&mut state, &rich());
        let list = written(&state, 2, 2);
        let chunks = {
            let mut entries = EntriesReader::new(&list[..], list.len() as u64).unwrap();
            while entries.next_chunk().unwrap().is_some() {}
            entries.chunks()
        };
        assert!(chunks > 8, "{chunks}");
        for stop in (1..chunks).step_by(3) {
            let mut recovered = empty(tree);
            let mut entries = EntriesReader::new(&list[..], list.len() as u64).unwrap();
            let mut recovery = Recovery::new(&mut recovered, entries.head().clone()).unwrap();
            while entries.chunks() < stop {
                let chunk = entries.next_chunk().unwrap().unwrap();
                recovery.add(chunk, entries.place()).unwrap();
            }
            recovery.pause().unwrap();
            let other = written(&state, 2, 3);
            assert!(matches!(
                recover(&mut recovered, &other),
                Err(RecoveryError::OtherFile(_))
            ));
            recover(&mut recovered, &list).unwrap();
            agrees(&mut recovered, &state, 2, &contents[2]);
        }
    }
}

/// A list with changed accounts, and right checks.
fn changed(list: &[u8], mut change: impl FnMut(&mut Chunk)) -> Vec<u8> {
    let mut entries = EntriesReader::new(list, list.len() as u64).unwrap();
    let mut writer = EntriesWriter::new(Vec::new(), entries.head()).unwrap();
    while let Some(mut chunk) = entries.next_chunk().unwrap() {
        change(&mut chunk);
        writer.chunk(&chunk).unwrap();
    }
    writer.finish().unwrap().0
}

#[test]
fn changed_lists_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list");
    for tree in &*TREES {
        let mut state = empty(tree);
        commit(&mut state, &rich());
        let list = written(&state, 2, 100);
        let refused = |change: &mut dyn FnMut(&mut Vec<AccountEntry>)| {
            let list = changed(&list, |chunk| {
                if let Chunk::Accounts(entries) = chunk {
                    change(entries);
                }
            });
            let error = recover(&mut empty(tree), &list).unwrap_err().to_string();
            std::fs::write(&path, &list).unwrap();
            let source = AccountsFile::open(&path, &registry());
            (error, source.err().map(|error| error.to_string()))
        };
        let (error, _) = refused(&mut |entries| {
            for entry in entries {
                if let Some(account) = &mut entry.account {
                    account.balance += U256::ONE;
                }
            }
        });
        assert!(error.contains("root"), "{error}");
        let (error, source) = refused(&mut |entries| {
            let first = entries[0].clone();
            entries.push(first);
        });
        assert!(error.contains("comes twice in a chunk"), "{error}");
        assert!(source.unwrap().contains("not in the order of the tree"));
        let (error, _) = refused(&mut |entries| {
            if let Some(entry) = entries.iter_mut().find(|entry| !entry.slots.is_empty()) {
                let first = entry.slots[0];
                entry.slots.push(first);
            }
        });
        assert!(error.contains("has a slot twice"), "{error}");
        let (error, _) = refused(&mut |entries| {
            entries.push(AccountEntry {
                address: address(0xee),
                account: Some(arbor_state::Account {
                    code_hash: B256::repeat_byte(7),
                    ..plain(1, 1)
                }),
                slots: Vec::new(),
            });
        });
        assert!(error.contains(&"07".repeat(32)), "{error}");
    }
}

#[test]
fn leaves_are_no_list_of_accounts_and_have_indices() {
    let ar16mt = trees()
        .into_iter()
        .find(|tree| tree.leaves().is_some())
        .unwrap();
    let mut state = empty(&ar16mt);
    commit(&mut state, &rich()[..1]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list");
    std::fs::write(&path, written(&state, 0, 8)).unwrap();
    let error = AccountsFile::open(&path, &registry()).unwrap_err();
    assert!(error.to_string().contains("arbor recover"), "{error}");
    let mut other = empty(&TREES[0]);
    commit(&mut other, &rich()[..1]);
    let then = other.at(Version(0)).unwrap();
    let form = (Order::Index, NonZeroUsize::MIN);
    let error = then.entries_head(NETWORK, None, form).unwrap_err();
    assert!(matches!(error, RecoveryError::NoLeaves(_)), "{error}");
}

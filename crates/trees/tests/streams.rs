//! Every tree is loaded from a database of every other one, at the head and at an older version.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::trees::{block, empty, open, plain, trees};
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use arbor_state::{
    Account, AccountChange, AccountSource, DumpAccount, Historical, KeyedAccount, ReadError,
    SlotChange, SortedAccounts, State, StateChanges, StateError, StateView, Tree,
};
use arbor_store::{MemoryStore, Reader, Store, Table, Write};
use arbor_trees::ar16mt::AR16MT;
use arbor_versions::Version;

type Slots = BTreeMap<U256, U256>;
type Contents = BTreeMap<Address, (Account, Slots)>;

/// No code, a delegation, code of a few chunks, and of more chunks than lie beside an account's
/// fields.
fn codes() -> [Bytes; 4] {
    [
        Bytes::new(),
        [&[0xef, 0x01, 0x00][..], &[7; 20]].concat().into(),
        b"\x60\x01".repeat(40).into(),
        b"\x61\x02\x00".repeat(31 * 70).into(),
    ]
}

/// The accounts of a version. Every version removes some accounts, clears slots of others, and
/// changes the rest.
fn contents(version: u64) -> Contents {
    let accounts = (0..160u64).filter(|number| !(number + version).is_multiple_of(5));
    let accounts = accounts.map(|number| {
        let code = &codes()[(number + version) as usize % 4];
        let account = Account {
            code_hash: keccak256(code),
            ..plain(number, number * 1_000 + version)
        };
        let many = [0, 1, 63, 64, 65, 255, 256, 70_000];
        let slots = many.into_iter().take((number + version) as usize % 9);
        let slots = slots.map(|slot| (U256::from(slot), U256::from(slot + version + 1)));
        let address = Address::from_word(keccak256(number.to_be_bytes()));
        (address, (account, slots.collect()))
    });
    let mut contents: Contents = accounts.collect();
    // Two accounts whose addresses begin alike, and the last slot of all.
    let last = Slots::from([
        (U256::MAX, U256::from(version + 1)),
        (U256::ZERO, U256::ONE),
    ]);
    contents.insert(Address::with_last_byte(1), (plain(1, version), last));
    contents.insert(Address::with_last_byte(2), (plain(0, 5), Slots::new()));
    contents
}

fn changes(before: &Contents, after: &Contents) -> StateChanges {
    let mut changes = StateChanges::default();
    for code in codes() {
        changes.codes.insert(keccak256(&code), code);
    }
    for address in before.keys().chain(after.keys()) {
        let (old, new) = (before.get(address), after.get(address));
        let value = |of: Option<&(Account, Slots)>, slot| {
            let value = of.and_then(|(_, slots)| slots.get(slot));
            value.copied().unwrap_or_default()
        };
        let slots = [old, new].into_iter().flatten();
        let slots = slots.flat_map(|(_, slots)| slots.keys());
        let slots = slots.filter(|_| new.is_some());
        let slots = slots.map(|slot| {
            let (old, new) = (value(old, slot), value(new, slot));
            (*slot, SlotChange { old, new })
        });
        let slots = slots.filter(|(_, change)| change.old != change.new);
        let change = AccountChange {
            old: old.map(|(account, _)| *account),
            new: new.map(|(account, _)| *account),
            storage_cleared: old.is_some() && new.is_none(),
            slots: slots.collect(),
        };
        changes.accounts.insert(*address, change);
    }
    changes
}

fn commit(state: &mut State, number: u64, changes: &StateChanges) -> B256 {
    let computed = state.compute(changes).unwrap();
    let root = computed.root();
    state.commit(&block(number), computed).unwrap();
    root
}

/// A database with three versions.
fn history(tree: &Tree) -> State {
    let mut state = empty(tree);
    let mut before = Contents::new();
    for version in 0..3 {
        let after = contents(version);
        commit(&mut state, version, &changes(&before, &after));
        before = after;
    }
    state
}

/// All accounts, by address: the order of a dump is that of the tree.
fn dump(state: &State, version: u64) -> BTreeMap<Address, DumpAccount> {
    let mut dumped = BTreeMap::new();
    let then = state.at(Version(version)).unwrap();
    then.dump(|account| {
        assert!(dumped.insert(account.address, account).is_none());
        Ok::<(), StateError>(())
    })
    .unwrap();
    dumped
}

/// Loads a version of one tree into an empty database of another one.
fn convert(then: &Historical<'_>, tree: &Tree, store: &Arc<MemoryStore>) -> State {
    let mut state = open(tree, store);
    let computed = match then.order() == tree.order() {
        true => state.load(then, &|_, _| ()),
        false => {
            let (accounts, code) = (then.full_accounts().unwrap(), |hash| {
                StateView::code(then, hash)
            });
            let sorted = SortedAccounts::of(tree.order(), accounts, code, 1 << 20);
            state.load(&sorted.unwrap(), &|_, _| ())
        }
    };
    state.commit(&block(0), computed.unwrap()).unwrap();
    state.flush().unwrap();
    state
}

#[test]
fn every_tree_is_loaded_from_every_other_one() {
    let trees = trees();
    let next = |version| changes(&contents(version), &contents(7));
    for from in &trees {
        let source = history(from);
        for (to, version) in trees.iter().flat_map(|to| [(to, 1), (to, 2)]) {
            let what = format!("{} to {}", from.kind().name, to.kind().name);
            let then = source.at(Version(version)).unwrap();
            let store = Arc::new(MemoryStore::default());
            drop(convert(&then, to, &store));
            let mut loaded = open(to, &store);

            // A tree that keeps zeros has none of those that the source's history left.
            let mut made = empty(to);
            let root = commit(&mut made, 0, &changes(&Contents::new(), &contents(version)));
            assert_eq!(loaded.root(), root, "{what}");
            let wanted = dump(&source, version);
            assert_eq!(wanted.len(), contents(version).len(), "{what}");
            assert_eq!(dump(&loaded, 0), wanted, "{what}");
            let report = loaded.verify().unwrap();
            assert!(report.is_ok(), "{what}: {:?}", report.faults);
            assert_eq!(report.accounts, wanted.len() as u64, "{what}");
            assert_eq!(
                report.flat_root,
                made.reader().flat_root().unwrap(),
                "{what}"
            );

            // The loaded database goes on like any other.
            let root = commit(&mut made, 1, &next(version));
            assert_eq!(commit(&mut loaded, 1, &next(version)), root, "{what}");
        }
    }
}

#[test]
fn ranges_of_a_version_are_all_its_accounts_in_order() {
    for tree in trees() {
        let state = history(&tree);
        let then = state.at(Version(1)).unwrap();
        let read = |first| -> Vec<KeyedAccount> {
            let accounts = then.stream(first).unwrap();
            accounts.map(Result::unwrap).collect()
        };
        let all = read(None);
        assert_eq!(all.len(), contents(1).len());
        assert!(all.is_sorted_by(|a, b| a.key < b.key));
        let ranges = (0..=u8::MAX).flat_map(|first| {
            let range = read(Some(first));
            assert!(range.iter().all(|of| of.key[0] == first));
            range
        });
        assert!(ranges.eq(all.iter().cloned()));
        for of in &all {
            assert!(of.slots.is_sorted_by(|a, b| a.key < b.key));
        }
    }
}

/// What is read of a state that was made ready to be read as a whole.
fn arranged(then: &Historical<'_>, bytes: usize) -> Result<Vec<KeyedAccount>, ReadError> {
    let folder = tempfile::tempdir().unwrap();
    let state = then.arranged(folder.path(), bytes)?;
    let ranges = (0..=u8::MAX).map(|first| state.stream(Some(first))?.collect());
    let ranges: Vec<Vec<KeyedAccount>> = ranges.collect::<Result<_, ReadError>>()?;
    let all: Vec<KeyedAccount> = state.stream(None)?.collect::<Result<_, ReadError>>()?;
    assert!(ranges.concat() == all);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    Ok(all)
}

#[test]
fn an_arranged_state_lists_the_same() {
    for tree in trees() {
        let mut state = history(&tree);
        // Values in several files, and keys that are sorted in several passes.
        let many = (1..10_000u64).map(|slot| (U256::from(slot), U256::from(slot % 7)));
        let mut after = contents(2);
        let account = after.get_mut(&Address::with_last_byte(1)).unwrap();
        account.1.extend(many.filter(|(_, value)| !value.is_zero()));
        commit(&mut state, 3, &changes(&contents(2), &after));
        for version in 0..4 {
            let then = state.at(Version(version)).unwrap();
            let wanted: Vec<KeyedAccount> = then
                .stream(None)
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
            assert_eq!(wanted.len(), contents(version.min(2)).len());
            for bytes in [1, 64 << 20] {
                assert!(
                    arranged(&then, bytes).unwrap() == wanted,
                    "{}",
                    tree.kind().name
                );
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let then = state.at(Version(3)).unwrap();
        let root = then.arranged(folder.path(), 1).unwrap().flat_root();
        assert_eq!(root.unwrap(), state.reader().flat_root().unwrap());
    }
}

#[test]
fn an_arranged_state_has_no_leaf_without_a_name() {
    const NAMES: Table = Table(2);
    let ar16mt = AR16MT.tree();
    let store = Arc::new(MemoryStore::default());
    let mut state = open(&ar16mt, &store);
    commit(&mut state, 0, &changes(&Contents::new(), &contents(0)));
    state.flush().unwrap();
    drop(state);
    let name = [
        &Address::with_last_byte(1)[..],
        &U256::MAX.to_be_bytes::<32>(),
    ]
    .concat();
    assert!(store.get(NAMES, &name).unwrap().is_some());
    let gone = Write {
        table: NAMES,
        key: name.into(),
        value: None,
    };
    store.write(&[gone], true).unwrap();
    let state = open(&ar16mt, &store);
    let error = arranged(&state.at(Version(0)).unwrap(), 1).unwrap_err();
    assert!(error.to_string().contains("no name leads to it"), "{error}");
}

#[test]
fn a_stream_above_the_bound_is_refused_before_anything_is_loaded() {
    let state = history(&trees().remove(0));
    let then = state.at(Version(2)).unwrap();
    let code = |hash| StateView::code(&then, hash);
    let accounts = then.full_accounts().unwrap();
    let error = SortedAccounts::of(then.order(), accounts, code, 10_000).map(drop);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("limited to 10000 bytes"), "{error}");
}

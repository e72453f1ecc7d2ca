//! No caller can damage a database: changes that do not fit the state, and what was computed for another one, are
//! refused by name under every tree, and nothing is changed by them.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::sync::Arc;

use crate::trees::{NETWORK, address, block, change, empty, open, plain, trees};
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use arbor_state::recovery::{EntriesReader, Order, Recovery};
use arbor_state::{
    Account, AccountChange, AccountOrder, AccountSource, BlockRef, Computed, FullAccount, HeadId,
    KeyedAccount, KeyedAccounts, ReadError, State, StateChanges, StateError, StateSnapshot,
    StateView, Tree, Unfinished, WrongChanges,
};
use arbor_store::{MemoryStore, Store};
use arbor_trees::verkle::Verkle;
use arbor_versions::Version;

/// Has code and slots, some of them alone under their part of a key.
const CONTRACT: Address = Address::repeat_byte(0x11);
const SLOTS: [(u64, u64); 6] = [(1, 5), (2, 6), (63, 7), (64, 8), (1_000, 9), (1_001, 10)];
/// Has neither.
const PLAIN: Address = Address::repeat_byte(0x22);
const NOBODY: Address = Address::repeat_byte(0x33);

fn code() -> Bytes {
    b"\x60\x01".repeat(40).into()
}

fn contract() -> Account {
    Account {
        code_hash: keccak256(code()),
        ..plain(1, 100)
    }
}

fn one(address: Address, change: AccountChange) -> StateChanges {
    StateChanges {
        accounts: [(address, change)].into(),
        ..StateChanges::default()
    }
}

fn first_block() -> StateChanges {
    let slots = SLOTS.map(|(slot, value)| (slot, 0, value));
    let mut changes = one(CONTRACT, change(None, Some(contract()), &slots));
    changes
        .accounts
        .insert(PLAIN, change(None, Some(plain(3, 7)), &[]));
    changes.codes.insert(keccak256(code()), code());
    changes
}

fn commit(state: &mut State, number: u64, changes: &StateChanges) {
    let computed = state.compute(changes).unwrap();
    state.commit(&block(number), computed).unwrap();
}

fn begun(tree: &Tree) -> State {
    let mut state = empty(tree);
    commit(&mut state, 0, &first_block());
    state
}

/// A block that touches all that the first one made.
fn second_block() -> StateChanges {
    let slots = SLOTS.map(|(slot, value)| (slot, value, value % 3));
    let mut changes = one(CONTRACT, change(Some(contract()), Some(contract()), &slots));
    changes
        .accounts
        .insert(PLAIN, change(Some(plain(3, 7)), Some(plain(4, 6)), &[]));
    changes
}

/// Whether the state is whole, and goes on as one to which nothing was ever refused.
fn check_unharmed(state: &mut State, version: u64) {
    let report = state.verify().unwrap();
    assert!(report.is_ok(), "{:?}", report.faults);
    let mut other = begun(state.tree());
    assert_eq!(state.root(), other.root());
    commit(state, version + 1, &second_block());
    commit(&mut other, 1, &second_block());
    assert_eq!(state.root(), other.root());
    let report = state.verify().unwrap();
    assert!(report.is_ok(), "{:?}", report.faults);
    state.rollback(Version(version)).unwrap();
    assert_eq!(
        state.storage(CONTRACT, U256::from(1)).unwrap(),
        U256::from(5)
    );
    let report = state.verify().unwrap();
    assert!(report.is_ok(), "{:?}", report.faults);
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    OldAccount,
    OldSlot,
    Slots,
    NoCode,
    CodeHash,
}

fn kind(error: &StateError) -> Option<Kind> {
    let StateError::WrongChanges(wrong) = error else {
        return None;
    };
    Some(match **wrong {
        WrongChanges::OldAccount { .. } => Kind::OldAccount,
        WrongChanges::OldSlot { .. } => Kind::OldSlot,
        WrongChanges::SlotsOfAbsentAccount { .. } => Kind::Slots,
        WrongChanges::NoCode { .. } => Kind::NoCode,
        WrongChanges::CodeHash { .. } => Kind::CodeHash,
    })
}

/// Changes that cannot be made to the state after the first block.
fn wrong_changes() -> Vec<(Kind, StateChanges)> {
    let was = Some(contract());
    let slots = |slots: &[(u64, u64, u64)]| one(CONTRACT, change(was, was, slots));
    let account = |address, old, new| one(address, change(old, new, &[]));
    let mut wrong = Vec::new();
    for (slot, value) in SLOTS {
        // Another value, a slot that is said to be absent; set, cleared, and left as it is said to have been.
        for said in [value + 1, 0] {
            for new in [77, 0, said, value] {
                wrong.push((Kind::OldSlot, slots(&[(slot, said, new)])));
            }
        }
    }
    for absent in [0, 3, 65, 2_000] {
        for new in [77, 0, 4] {
            wrong.push((Kind::OldSlot, slots(&[(absent, 4, new)])));
        }
    }
    wrong.push((Kind::OldSlot, slots(&[(1, 5, 50), (2, 5, 50)])));
    let mut cleared = change(was, was, &[(1, 5, 6)]);
    cleared.storage_cleared = true;
    wrong.push((Kind::OldSlot, one(CONTRACT, cleared)));
    let of_new = change(None, Some(plain(0, 1)), &[(1, 5, 6)]);
    wrong.push((Kind::OldSlot, one(NOBODY, of_new)));

    let richer = Account {
        balance: U256::from(101),
        ..contract()
    };
    let other_nonce = Account {
        nonce: 2,
        ..contract()
    };
    for said in [Some(richer), Some(other_nonce), Some(plain(1, 100)), None] {
        for new in [Some(plain(9, 9)), said, was] {
            wrong.push((Kind::OldAccount, account(CONTRACT, said, new)));
        }
    }
    wrong.push((Kind::OldAccount, account(PLAIN, None, None)));
    for new in [Some(plain(0, 1)), Some(plain(0, 0)), None] {
        wrong.push((Kind::OldAccount, account(NOBODY, Some(plain(0, 0)), new)));
    }

    let removed = |old, slots: &[(u64, u64, u64)]| change(old, None, slots);
    wrong.push((Kind::Slots, one(CONTRACT, removed(was, &[(1, 5, 6)]))));
    wrong.push((Kind::Slots, one(CONTRACT, removed(was, &[(1, 5, 0)]))));
    wrong.push((Kind::Slots, one(NOBODY, removed(None, &[(1, 0, 6)]))));

    for code_hash in [keccak256(b"nowhere"), B256::ZERO] {
        let with_code = Account {
            code_hash,
            ..plain(1, 1)
        };
        wrong.push((Kind::NoCode, account(NOBODY, None, Some(with_code))));
        wrong.push((Kind::NoCode, account(CONTRACT, was, Some(with_code))));
        // Nor do other bytes help, or none.
        for bytes in [&b"elsewhere"[..], b""] {
            let mut changes = account(NOBODY, None, Some(with_code));
            changes
                .codes
                .insert(code_hash, Bytes::copy_from_slice(bytes));
            wrong.push((Kind::CodeHash, changes));
        }
    }
    wrong
}

#[test]
fn changes_that_do_not_fit_the_state_are_refused_by_name() {
    for tree in trees() {
        let mut state = begun(&tree);
        for (wanted, changes) in wrong_changes() {
            let error = state.compute(&changes).map(drop).unwrap_err();
            assert_eq!(kind(&error), Some(wanted), "{tree:?} {changes:?}: {error}");
        }
        check_unharmed(&mut state, 0);
    }
}

/// A refused change names what is wrong with it, with both values.
#[test]
fn a_wrong_old_value_is_shown_beside_the_right_one() {
    for tree in trees() {
        let state = begun(&tree);
        let was = Some(contract());
        let error = |changes: &StateChanges| state.compute(changes).map(drop).unwrap_err();
        let message = error(&one(CONTRACT, change(was, was, &[(64, 0, 9)]))).to_string();
        let wanted = format!(
            "account {CONTRACT}, slot 0x40: the changes say that its value was 0x0, but the state has 0x8"
        );
        assert_eq!(message, wanted);
        let message = error(&one(PLAIN, change(None, None, &[]))).to_string();
        assert!(
            message.contains("was absent, but the state has nonce 3 balance 7"),
            "{message}"
        );
    }
}

/// Code may be stored already, and a slot may be set to the value that it has.
#[test]
fn what_fits_the_state_is_not_refused() {
    for tree in trees() {
        let mut state = begun(&tree);
        let twin = change(None, Some(contract()), &[(5, 0, 0), (6, 0, 1)]);
        let mut changes = one(NOBODY, twin);
        let was = Some(contract());
        let same = change(was, was, &[(1, 5, 5), (3, 0, 0), (64, 8, 0)]);
        changes.accounts.insert(CONTRACT, same);
        commit(&mut state, 1, &changes);
        assert_eq!(state.account(NOBODY).unwrap(), Some(contract()));
        let report = state.verify().unwrap();
        assert!(report.is_ok(), "{:?}", report.faults);
        state.rollback(Version(0)).unwrap();
        check_unharmed(&mut state, 0);
    }
}

/// Two databases that have the same state, or none, do not take each other's changes.
#[test]
fn changes_computed_on_another_database_are_refused() {
    let refused = |done: Result<(), StateError>| {
        assert!(matches!(done, Err(StateError::OtherDatabase)), "{done:?}");
    };
    let refuse = |one: &mut State, other: &mut State, number, changes: &StateChanges| {
        let computed = |on: &State| on.compute(changes).unwrap();
        refused(other.commit(&block(number), computed(one)));
        refused(other.commit_together([(block(number), computed(one))]));
        refused(other.flat_root_after(&[computed(one)]).map(drop));
        let session = one.session().unwrap();
        refused(other.commit_session(session.apply(&block(number), changes).unwrap()));
    };
    for tree in trees() {
        let (mut one, mut other) = (empty(&tree), empty(&tree));
        refuse(&mut one, &mut other, 0, &first_block());
        commit(&mut one, 0, &first_block());
        commit(&mut other, 0, &first_block());
        assert_eq!(one.head(), other.head());
        refuse(&mut one, &mut other, 1, &second_block());
        check_unharmed(&mut other, 0);
    }
}

/// What was computed before a database was closed is computed again.
#[test]
fn changes_computed_before_a_database_was_opened_are_refused() {
    for tree in trees() {
        let store = Arc::new(MemoryStore::default());
        let mut state = open(&tree, &store);
        commit(&mut state, 0, &first_block());
        state.flush().unwrap();
        let before = state.compute(&second_block()).unwrap();
        let session = state.session().unwrap();
        drop(state);
        let mut state = open(&tree, &store);
        let error = state.commit(&block(1), before).unwrap_err();
        assert!(matches!(error, StateError::OtherDatabase), "{error}");
        let error = state.commit_session(session).unwrap_err();
        assert!(error.to_string().contains("compute them again"), "{error}");
        check_unharmed(&mut state, 0);
    }
}

#[test]
fn changes_computed_on_another_head_are_refused() {
    for tree in trees() {
        let mut state = begun(&tree);
        let head = |state: &State| state.head().map(HeadId::of);
        let on = head(&state);
        let paid = |balance| {
            one(
                PLAIN,
                change(Some(plain(3, 7)), Some(plain(3, balance)), &[]),
            )
        };
        let on_first = |state: &State| state.compute(&paid(1)).unwrap();
        let (stale, again, as_one, together) = (
            on_first(&state),
            on_first(&state),
            on_first(&state),
            on_first(&state),
        );
        commit(&mut state, 1, &paid(2));
        let at = head(&state);
        let check = |error: StateError, wanted: Option<HeadId>, at: Option<HeadId>| {
            let StateError::Stale { computed_on, head } = error else {
                panic!("{error}");
            };
            assert_eq!((computed_on, head), (wanted, at));
        };
        check(
            state
                .flat_root_after(std::slice::from_ref(&stale))
                .unwrap_err(),
            on,
            at,
        );
        check(state.commit(&block(2), stale).unwrap_err(), on, at);
        let root = as_one.root();
        check(
            state.commit_as_one([(block(2), root)], as_one).unwrap_err(),
            on,
            at,
        );
        check(
            state.commit_together([(block(2), together)]).unwrap_err(),
            on,
            at,
        );
        // The same version on another branch is another head.
        let on_second = state.compute(&one(PLAIN, change(Some(plain(3, 2)), None, &[])));
        state.rollback(Version(0)).unwrap();
        commit(&mut state, 1, &paid(3));
        let branch = head(&state);
        let error = state.commit(&block(2), on_second.unwrap()).unwrap_err();
        check(error, at, branch);
        // Also if nothing but the block's hash is another one.
        let on_branch = state.compute(&one(PLAIN, change(Some(plain(3, 3)), None, &[])));
        state.rollback(Version(0)).unwrap();
        let computed = state.compute(&paid(3)).unwrap();
        let twin = BlockRef::new(1, B256::repeat_byte(0x77));
        state.commit(&twin, computed).unwrap();
        let error = state.commit(&block(2), on_branch.unwrap()).unwrap_err();
        check(error, branch, head(&state));
        // And one to which the database has returned is the same.
        state.rollback(Version(0)).unwrap();
        state.commit(&block(1), again).unwrap();
        assert_eq!(state.account(PLAIN).unwrap(), Some(plain(3, 1)));
        let report = state.verify().unwrap();
        assert!(report.is_ok(), "{:?}", report.faults);
        state.rollback(Version(0)).unwrap();
        check_unharmed(&mut state, 0);
        let on_nothing = empty(&tree).compute(&first_block()).unwrap();
        let error = state.commit(&block(1), on_nothing).unwrap_err();
        assert!(matches!(error, StateError::OtherDatabase), "{error}");
        check_unharmed(&mut state, 0);
    }
}

/// What was computed together has its nodes with the last block.
#[test]
fn a_run_is_committed_whole_and_in_order() {
    for tree in trees() {
        let paid = |from, to| one(PLAIN, change(Some(plain(3, from)), Some(plain(3, to)), &[]));
        let run = |state: &State, to: u64| {
            let blocks = [paid(7, to), paid(to, 2), paid(2, 3)];
            state.compute_together(&blocks.each_ref())
        };
        let mut state = begun(&tree);
        let Ok(computed) = run(&state, 1) else {
            // Only some trees compute several blocks at once.
            assert!(tree.downcast::<Verkle>().is_none());
            continue;
        };
        let is_refused = |result: Result<(), StateError>| {
            let error = result.unwrap_err();
            assert!(
                matches!(error, StateError::PartOfRun { of: 3, .. }),
                "{error}"
            );
        };
        assert!(state.flat_root_after(&computed).is_ok());
        is_refused(state.flat_root_after(&computed[..2]).map(drop));
        let mut blocks = (1..).map(block).zip(computed);
        let (first, second, third) = (
            blocks.next().unwrap(),
            blocks.next().unwrap(),
            blocks.next().unwrap(),
        );
        is_refused(state.commit(&first.0, first.1));
        is_refused(state.commit_together([second]));
        is_refused(state.commit_as_one([(third.0, B256::ZERO)], third.1));
        let swapped = |state: &State| {
            let mut computed = run(state, 1).unwrap();
            computed.swap(0, 1);
            computed
        };
        let with_another = |state: &State| {
            let mut computed = run(state, 1).unwrap();
            computed[0] = run(state, 5).unwrap().remove(0);
            computed
        };
        type Way<'a> = &'a dyn Fn(&State) -> Vec<Computed>;
        let ways: [Way<'_>; 2] = [&swapped, &with_another];
        for way in ways {
            let computed = way(&state);
            is_refused(state.commit_together((1..).map(block).zip(computed)));
        }
        check_unharmed(&mut state, 0);
        let computed = run(&state, 1).unwrap();
        state
            .commit_together((1..).map(block).zip(computed))
            .unwrap();
        assert_eq!(state.account(PLAIN).unwrap(), Some(plain(3, 3)));
        // A later block is compared with what the earlier ones leave, and may use their code.
        let wrong = [paid(3, 4), paid(3, 5)];
        let error = state.compute_together(&wrong.each_ref()).unwrap_err();
        assert_eq!(kind(&error), Some(Kind::OldAccount), "{error}");
        let bytes = Bytes::from_static(b"\x00");
        let with_code = Account {
            code_hash: keccak256(&bytes),
            ..plain(3, 5)
        };
        let mut blocks = [
            paid(3, 4),
            one(PLAIN, change(Some(plain(3, 4)), Some(with_code), &[])),
        ];
        let error = state.compute_together(&blocks.each_ref()).unwrap_err();
        assert_eq!(kind(&error), Some(Kind::NoCode), "{error}");
        blocks[0].codes.insert(with_code.code_hash, bytes);
        state.compute_together(&blocks.each_ref()).unwrap();
    }
}

/// Accounts to load, of which the source may have no more.
struct Source {
    order: &'static AccountOrder,
    ends: bool,
    has_code: bool,
}

impl Source {
    fn accounts() -> Vec<FullAccount> {
        let slots = SLOTS.map(|(slot, value)| (U256::from(slot), U256::from(value)));
        let full = |address, account, slots| FullAccount {
            address,
            account,
            slots,
        };
        vec![
            full(CONTRACT, contract(), slots.into()),
            full(PLAIN, plain(3, 7), Vec::new()),
        ]
    }
}

impl AccountSource for Source {
    fn order(&self) -> &'static AccountOrder {
        self.order
    }

    fn stream(&self, first: Option<u8>) -> Result<KeyedAccounts<'_>, ReadError> {
        let mut accounts = self.order.with_keys(Self::accounts());
        accounts.sort_by_key(|of| of.key);
        let wanted = move |of: &KeyedAccount| first.is_none_or(|first| of.key[0] == first);
        let accounts = accounts.into_iter().filter(wanted).map(Ok);
        let ends = self.ends && first.is_none_or(|first| first == 0xff);
        let end = ends.then(|| Err(ReadError::new("the source has no more")));
        Ok(Box::new(accounts.chain(end)))
    }

    fn code_bytes(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        match self.has_code && code_hash == keccak256(code()) {
            true => Ok(code()),
            false => Err(ReadError::MissingCode(code_hash)),
        }
    }
}

fn is_unfinished(error: &StateError, wanted: Unfinished) -> bool {
    matches!(error, StateError::Unfinished(what) if *what == wanted)
}

#[test]
fn a_database_whose_load_did_not_finish_is_refused() {
    for tree in trees() {
        let order = tree.order();
        let whole = Source {
            order,
            ends: false,
            has_code: true,
        };
        let store = Arc::new(MemoryStore::default());
        let mut state = open(&tree, &store);
        let on_nothing = |state: &State| state.compute(&first_block());
        let before = on_nothing(&state).unwrap();
        let source = Source {
            order,
            ends: true,
            has_code: true,
        };
        state.load(&source, &|_, _| ()).unwrap_err();
        let refused = |result: Result<(), StateError>| {
            let error = result.unwrap_err();
            assert!(is_unfinished(&error, Unfinished::Load), "{error}");
        };
        refused(on_nothing(&state).map(drop));
        refused(state.commit(&block(0), before));
        refused(state.load(&whole, &|_, _| ()).map(drop));
        refused(state.snapshot().map(drop));
        drop(state);
        let reader = || -> Arc<dyn Store> { store.clone() };
        let opened = State::open(reader(), None, tree.clone(), NETWORK, Default::default());
        refused(opened.map(drop));
        refused(StateSnapshot::open(store.clone(), None, tree.clone(), NETWORK).map(drop));

        // One that did finish is whole with its first version, which nothing else can be.
        let mut state = empty(&tree);
        let before = on_nothing(&state).unwrap();
        let loaded = state.load(&whole, &|_, _| ()).unwrap();
        refused(on_nothing(&state).map(drop));
        refused(state.commit(&block(0), before));
        let unloaded = Computed::of_load(loaded.root(), Default::default());
        let error = empty(&tree).commit(&block(0), loaded).unwrap_err();
        assert!(matches!(error, StateError::OtherDatabase), "{error}");
        let error = empty(&tree).commit(&block(0), unloaded).unwrap_err();
        assert!(matches!(error, StateError::NotLoaded), "{error}");
        let mut state = empty(&tree);
        let loaded = state.load(&whole, &|_, _| ()).unwrap();
        state.commit(&block(0), loaded).unwrap();
        state.flush().unwrap();
        check_unharmed(&mut state, 0);

        let source = Source {
            order,
            ends: false,
            has_code: false,
        };
        let error = empty(&tree).load(&source, &|_, _| ()).unwrap_err();
        let is_missing = |hash| hash == keccak256(code());
        let named = match &error {
            StateError::WrongChanges(wrong) => {
                matches!(**wrong, WrongChanges::NoCode { code_hash, .. } if is_missing(code_hash))
            }
            _ => false,
        };
        assert!(named, "{error}");
    }
}

#[test]
fn a_database_whose_recovery_did_not_finish_is_refused() {
    for tree in trees() {
        let original = begun(&tree);
        let then = original.at(Version(0)).unwrap();
        let together = std::num::NonZeroUsize::MIN;
        let head = then.entries_head(NETWORK, None, (Order::Key, together));
        let head = head.unwrap();
        let list: Vec<u8> = then.write_entries(Vec::new(), &head, &|_, _| ()).unwrap().0;
        let store = Arc::new(MemoryStore::default());
        let mut state = open(&tree, &store);
        let before = state.compute(&first_block()).unwrap();
        let mut entries = EntriesReader::new(&list[..], list.len() as u64).unwrap();
        let mut recovery = Recovery::new(&mut state, entries.head().clone()).unwrap();
        let chunk = entries.next_chunk().unwrap().unwrap();
        recovery.add(chunk, entries.place()).unwrap();
        recovery.pause().unwrap();
        let refused = |result: Result<(), StateError>| {
            let error = result.unwrap_err();
            assert!(is_unfinished(&error, Unfinished::Recovery), "{error}");
        };
        refused(state.compute(&StateChanges::default()).map(drop));
        if let Some(leaves) = state.leaves() {
            refused(leaves.compute(&[]).map(drop));
        }
        refused(state.commit(&block(0), before));
        drop(state);
        let base = || -> Arc<dyn Store> { store.clone() };
        let options = Default::default;
        refused(State::open(base(), None, tree.clone(), NETWORK, options()).map(drop));
        refused(StateSnapshot::open(store.clone(), None, tree.clone(), NETWORK).map(drop));

        let state = State::open_to_recover(base(), None, tree.clone(), NETWORK, options());
        let mut state = state.unwrap();
        let mut recovery = Recovery::new(&mut state, entries.head().clone()).unwrap();
        while let Some(chunk) = entries.next_chunk().unwrap() {
            recovery.add(chunk, entries.place()).unwrap();
        }
        recovery.finish(entries.place()).unwrap();
        assert_eq!(state.root(), original.root());
        drop(state);
        let mut state = open(&tree, &store);
        let version = state.head().unwrap().version.0;
        check_unharmed(&mut state, version);
    }
}

/// Accounts of which nothing is left but their address are not those that never were, nor the other way round.
#[test]
fn addresses_apart_are_accounts_apart() {
    for tree in trees() {
        let mut state = begun(&tree);
        let number = address(0x44);
        commit(
            &mut state,
            1,
            &one(number, change(None, Some(plain(0, 0)), &[])),
        );
        assert_eq!(state.account(number).unwrap(), Some(plain(0, 0)));
        let said = one(number, change(None, Some(plain(0, 1)), &[]));
        let error = state.compute(&said).map(drop).unwrap_err();
        assert_eq!(kind(&error), Some(Kind::OldAccount), "{error}");
        commit(
            &mut state,
            2,
            &one(number, change(Some(plain(0, 0)), None, &[])),
        );
        let said = one(number, change(Some(plain(0, 0)), Some(plain(0, 1)), &[]));
        let error = state.compute(&said).map(drop).unwrap_err();
        assert_eq!(kind(&error), Some(Kind::OldAccount), "{error}");
        state.rollback(Version(0)).unwrap();
        check_unharmed(&mut state, 0);
    }
}

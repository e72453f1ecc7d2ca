//! A database is opened in one call, and nothing that a caller gives makes it panic.

use std::path::Path;

use arbor_database::primitives::{Address, B256, Bytes, U256};
use arbor_database::{
    Account, BlockRef, DatabaseError, Folder, FullAccount, Network, OpenOptions, ReadError,
    Registry, Retain, SortedAccounts, State, StateChanges, StateError, StateSnapshot, StateView,
    Verdict, Version,
};

const ALICE: Address = Address::repeat_byte(1);

fn commit(state: &mut State, number: u64, balance: u64) -> B256 {
    let mut changes = StateChanges::default();
    let code_hash = changes.add_code(Bytes::from(vec![0x60; 3 + number as usize]));
    let account = Account {
        code_hash,
        ..Account::with_balance(U256::from(balance))
    };
    let slot = U256::from(number);
    let set = changes.set_account(state, ALICE, Some(account));
    set.expect("a state in memory is read");
    let set = changes.set_slot(state, ALICE, slot, U256::from(balance));
    set.expect("a state in memory is read");
    let computed = state.compute(&changes).expect("computed");
    let root = computed.root();
    let block = BlockRef::new(number, B256::from(U256::from(number)));
    state.commit(&block, computed).expect("committed");
    root
}

/// Every tree is opened by its name, keeps what it is made of, and proves.
#[test]
fn each_tree_is_opened_by_its_name() {
    for kind in arbor_trees::standard().rows() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let dir = dir.path().join("made/with it");
        let options = OpenOptions::new().tree(kind.name).memory(64 << 20);
        // Under the hash function that does nothing, no proof holds.
        let mut hashes = kind.hashes.iter().filter(|hash| **hash != "no_op256");
        let hash = hashes.next_back().expect("a hash function");
        let mut state = options.clone().hash(*hash).open(&dir).expect(kind.name);
        let roots = [1, 2].map(|number| commit(&mut state, number, 1_000));
        state.flush().expect("flushed");
        drop(state);

        // Nothing is asked for again, neither the tree nor its hash function.
        let state = OpenOptions::new().open(&dir).expect(kind.name);
        assert_eq!(state.tree().kind().name, kind.name);
        assert_eq!(state.tree().hash(), *hash);
        assert_eq!(state.root(), roots[1]);
        let read = OpenOptions::new().open_to_read(&dir).expect("beside it");
        for (version, root) in [(Version(0), roots[0]), (Version(1), roots[1])] {
            let then = read.reader().at(version).expect("it is retained");
            let proof = then.prove(ALICE, &[U256::from(2)]).expect("proven");
            let verdict = proof.verify(root).expect("well-formed");
            assert!(
                matches!(verdict, Verdict::True(_)),
                "{}: {verdict:?}",
                kind.name
            );
        }
    }
}

/// A copy is a database of its own, though tables are shared: both go on, and neither sees the other's versions.
#[test]
fn a_copy_goes_on_by_itself() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let [dir, copy] = ["db", "copy"].map(|name| temporary.path().join(name));
    let options = OpenOptions::new().tree("eip8297").memory(64 << 20);
    let trees = arbor_trees::standard();
    let mut state = options.clone().open(&dir).expect("made");
    commit(&mut state, 1, 1_000);
    state.flush().expect("flushed");
    state.compact().expect("merged");
    drop(state);
    Folder::new(&dir, &trees).copy_to(&copy).expect("copied");
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let tables = copy.join("fjall/keyspaces/1/tables");
        let mut tables = std::fs::read_dir(tables).expect("listed").peekable();
        assert!(tables.peek().is_some(), "the state is in tables");
        for table in tables {
            let found = table.and_then(|table| table.metadata()).expect("read");
            assert_eq!(found.nlink(), 2);
        }
    }
    let [own, other] = [(&dir, 7), (&copy, 8)].map(|(dir, balance)| {
        let mut state = options.clone().open(dir).expect("opened");
        let root = commit(&mut state, 2, balance);
        state.flush().expect("flushed");
        state.compact().expect("merged");
        root
    });
    assert_ne!(own, other);
    for (dir, root) in [(&dir, own), (&copy, other)] {
        let mut state = options.clone().open(dir).expect("opened");
        assert_eq!(state.root(), root);
        let checked = state.verify().expect("checked");
        assert_eq!((checked.fault_count, checked.slots), (0, 2));
    }
    let [none, other] = ["none", "other"].map(|name| temporary.path().join(name));
    let nowhere = Folder::new(&none, &trees).copy_to(&other);
    assert!(refused(nowhere).contains("none"));
}

fn refused<T>(opened: Result<T, DatabaseError>) -> String {
    let mut error: &dyn std::error::Error = &opened.err().expect("refused");
    let mut text = error.to_string();
    while let Some(source) = error.source() {
        text = format!("{text}: {source}");
        error = source;
    }
    text
}

#[test]
fn what_contradicts_a_folder_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("db");
    let mut state = OpenOptions::new().open(&path).expect("made");
    assert_eq!(state.tree().kind().name, "mpt");
    commit(&mut state, 0, 1);
    state.flush().expect("flushed");
    let said = refused(OpenOptions::new().open(&path));
    assert!(said.contains("already open for writing"), "{said}");
    drop(state);

    let said = refused(OpenOptions::new().tree("verkle").open(&path));
    assert!(said.contains("its tree is mpt"), "{said}");
    let said = refused(OpenOptions::new().tree("verkle").open_to_read(&path));
    assert!(said.contains("its tree is mpt"), "{said}");
    let said = refused(OpenOptions::new().tree("oak").open(&path));
    assert!(
        said.contains("no tree 'oak'") && said.contains("mpt, verkle") && said.contains("features"),
        "{said}"
    );
    let said = refused(OpenOptions::new().hash("md5").open(&path));
    assert!(said.contains("md5"), "{said}");
    let said = refused(OpenOptions::new().tree_setting("fast").open(&path));
    assert!(said.contains("fast"), "{said}");
    let other = Network {
        chain_id: 7,
        genesis_hash: B256::ZERO,
    };
    let said = refused(OpenOptions::new().network(other).open(&path));
    assert!(said.contains("chain"), "{said}");
    let none = Registry::new([]);
    let said = refused(OpenOptions::new().trees(none.clone()).open(&path));
    assert!(
        said.contains("which this version of arbor does not know"),
        "{said}"
    );
    let said = refused(OpenOptions::new().trees(none).in_memory());
    assert!(said.contains("no tree"), "{said}");
    let said = refused(OpenOptions::new().open_to_read(dir.path().join("none")));
    assert!(said.contains("there is no database"), "{said}");
    let file = dir.path().join("file");
    std::fs::write(&file, "text").expect("written");
    refused(OpenOptions::new().open(&file));
    refused(OpenOptions::new().open_to_read(&file));
    assert_untouched(&path);
}

fn assert_untouched(path: &Path) {
    let state = OpenOptions::new().open(path).expect("opened");
    assert_eq!(state.head().map(|head| head.block_number), Some(0));
}

/// A whole state is loaded from the caller's accounts, by names of the facade alone.
#[test]
fn a_state_is_loaded_from_accounts_in_any_order() {
    for kind in arbor_trees::standard().rows() {
        let options = OpenOptions::new().tree(kind.name).memory(64 << 20);
        let [mut loaded, mut by_hand] = [(); 2].map(|()| options.in_memory().expect(kind.name));
        let account = |byte: u8| FullAccount {
            address: Address::repeat_byte(byte),
            account: Account::with_balance(U256::from(byte)),
            slots: vec![
                (U256::from(9), U256::from(byte)),
                (U256::ZERO, U256::from(1)),
            ],
        };
        let accounts = [7, 3, 5].map(account);
        let no_code = |hash| Err(ReadError::MissingCode(hash));
        let source = SortedAccounts::of(
            loaded.tree().order(),
            accounts.iter().cloned().map(Ok),
            no_code,
            1 << 20,
        );
        let source = source.expect("sorted");
        let computed = loaded.load(&source, &|_, _| ()).expect("loaded");
        let root = computed.root();
        let block = BlockRef::new(0, B256::ZERO);
        let committed = loaded.commit_loaded(vec![(block.clone(), root)], computed);
        committed.expect("committed");

        let mut changes = StateChanges::default();
        for FullAccount {
            address,
            account,
            slots,
        } in accounts
        {
            let set = changes.set_account(&by_hand, address, Some(account));
            set.expect("read");
            for (slot, value) in slots {
                let set = changes.set_slot(&by_hand, address, slot, value);
                set.expect("read");
            }
        }
        let computed = by_hand.compute(&changes).expect("computed");
        // AR16MT numbers its leaves in the order in which they come.
        if kind.name != "ar16mt" {
            assert_eq!(computed.root(), root, "{}", kind.name);
        }
        by_hand.commit(&block, computed).expect("committed");
        assert!(loaded.verify().expect("read").is_ok());
    }
}

/// A writer with a wrong path gets an error instead of a new database.
#[test]
fn no_database_is_made_where_that_is_forbidden() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (none, empty) = (dir.path().join("none"), dir.path().join("empty"));
    std::fs::create_dir(&empty).expect("made");
    let options = OpenOptions::new().create_if_missing(false);
    for said in [
        refused(options.open(&none)),
        refused(options.open_key_value(&none)),
    ] {
        assert!(said.contains("there is no database at"), "{said}");
    }
    for said in [
        refused(options.open(&empty)),
        refused(options.open_key_value(&empty)),
    ] {
        assert!(said.contains("there is no store in it"), "{said}");
    }
    assert!(!none.exists());
    let left = std::fs::read_dir(&empty).expect("listed").next();
    assert!(left.is_none(), "{left:?}");

    let path = dir.path().join("db");
    drop(OpenOptions::new().open(&path).expect("made"));
    let mut state = options.open(&path).expect("it has a database");
    commit(&mut state, 0, 1);
    state.flush().expect("flushed");
    drop(state);
    std::fs::remove_file(path.join("HEAD")).expect("removed");
    let said = refused(options.open(&path));
    assert!(said.contains("it has no HEAD"), "{said}");
}

/// A state is copied while this process has it open, with its history and what its folder remembers.
#[test]
fn a_state_is_backed_up_while_it_is_open() {
    for kind in arbor_trees::standard().rows() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let options = OpenOptions::new().tree(kind.name).memory(64 << 20);
        let options = options.retain(Retain::Last(9));
        let mut state = options.open(&from).expect(kind.name);
        let empty = dir.path().join("empty");
        let made = options.backup(&from, &empty).expect("nothing is copied");
        assert_eq!(made.version, None);
        assert!(options.open(&empty).expect("opened").head().is_none());
        let roots = [1, 2, 3].map(|number| commit(&mut state, number, 1_000));
        state.flush().expect("flushed");
        commit(&mut state, 4, 7);
        let made = options.backup(&from, &to).expect(kind.name);
        assert_eq!((made.version, made.block), (Some(Version(2)), 3));
        assert_eq!(made.root, roots[2]);
        let said = refused(options.backup(&from, &to));
        assert!(said.contains("exists already"), "{said}");

        let mut copy = OpenOptions::new()
            .memory(64 << 20)
            .open(&to)
            .expect(kind.name);
        assert_eq!(copy.versions().options().retain, Retain::Last(9));
        assert_eq!(copy.root(), roots[2]);
        let report = copy.verify().expect("read");
        assert!(report.is_ok(), "{:?}", report.faults);
        commit(&mut copy, 4, 7);
        assert_eq!(copy.root(), state.root());
        copy.rollback(Version(0)).expect("rolled back");
        assert_eq!(copy.root(), roots[0]);
    }
    let none = tempfile::tempdir().expect("a temporary folder");
    let to = none.path().join("to");
    refused(OpenOptions::new().backup(none.path().join("none"), &to));
    assert!(
        std::fs::read_dir(none.path())
            .expect("listed")
            .next()
            .is_none()
    );
}

#[test]
fn history_that_is_asked_for_is_remembered() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let retains = |options: OpenOptions| {
        let state = options.open(dir.path()).expect("opened");
        state.versions().options().retain
    };
    assert_eq!(retains(OpenOptions::new()), Retain::Last(128));
    assert_eq!(
        retains(OpenOptions::new().retain(Retain::Last(7))),
        Retain::Last(7)
    );
    assert_eq!(retains(OpenOptions::new()), Retain::Last(7));
    let durable = OpenOptions::new()
        .durable(true)
        .in_memory()
        .expect("opened");
    assert!(durable.versions().options().durable_each);
}

/// What a state is asked for without having it is an error that names it.
#[test]
fn wrong_calls_are_errors() {
    let mut state = OpenOptions::new().in_memory().expect("opened");
    assert!(state.prove(ALICE, &[]).is_err());
    assert!(state.at(Version(0)).is_err());
    assert!(state.rollback(Version(0)).is_err());
    assert_eq!(state.account(ALICE).expect("read"), None);
    commit(&mut state, 5, 1);
    let on_five = state.compute(&StateChanges::default()).expect("computed");
    commit(&mut state, 6, 2);
    let block = BlockRef::new(7, B256::ZERO);
    let stale = state.commit(&block, on_five).err();
    assert!(matches!(stale, Some(StateError::Stale { .. })), "{stale:?}");
    let next = state.compute(&StateChanges::default()).expect("computed");
    let earlier = BlockRef::new(5, B256::ZERO);
    let error = state
        .commit(&earlier, next)
        .expect_err("block 5 is before 6");
    assert!(error.to_string().contains('5'), "{error}");
    assert!(state.at(Version(u64::MAX)).is_err());
    assert!(state.rollback(Version(2)).is_err());
    let mut slots = StateChanges::default();
    let nobody = Address::repeat_byte(9);
    let set = slots.set_slot(&state, nobody, U256::ZERO, U256::from(1));
    set.expect("read");
    let error = state.compute(&slots).expect_err("nobody has slots");
    assert!(matches!(error, StateError::WrongChanges(_)), "{error}");
    assert_eq!(state.head().map(|head| head.block_number), Some(6));
}

/// Setters say what the state was before, also when they come several times.
#[test]
fn changes_are_written_one_by_one() {
    let mut state = OpenOptions::new().in_memory().expect("opened");
    commit(&mut state, 0, 9);
    let mut changes = StateChanges::default();
    let (slot, other) = (U256::ZERO, U256::from(3));
    let mut set = |slot, new: u64| {
        let set = changes.set_slot(&state, ALICE, slot, U256::from(new));
        set.expect("read");
        let change = &changes.accounts[&ALICE];
        let found = change.slots.get(&slot);
        found.map(|change| (change.old.to::<u64>(), change.new.to::<u64>()))
    };
    assert_eq!(set(slot, 4), Some((9, 4)));
    assert_eq!(set(slot, 5), Some((9, 5)));
    assert_eq!(set(slot, 9), None);
    assert_eq!(set(other, 1), Some((0, 1)));
    // An account that goes takes its slots along, and one that comes in its place has none of them.
    changes.set_account(&state, ALICE, None).expect("read");
    assert!(changes.accounts[&ALICE].slots.is_empty());
    let again = Some(Account::with_balance(U256::from(1)));
    changes.set_account(&state, ALICE, again).expect("read");
    let set = changes.set_slot(&state, ALICE, slot, U256::from(2));
    set.expect("read");
    let change = &changes.accounts[&ALICE];
    assert!(change.storage_cleared);
    assert_eq!(change.slots[&slot].old, U256::ZERO);
    let computed = state.compute(&changes).expect("computed");
    let block = BlockRef::new(1, B256::ZERO);
    state.commit(&block, computed).expect("committed");
    assert_eq!(state.account(ALICE).expect("read"), again);
    assert_eq!(state.storage(ALICE, slot).expect("read"), U256::from(2));
    assert_eq!(state.storage(ALICE, other).expect("read"), U256::ZERO);
}

#[test]
fn handles_cross_threads_and_can_be_shown() {
    fn crosses<T: Send + Sync + std::fmt::Debug>() {}
    crosses::<OpenOptions>();
    crosses::<State>();
    crosses::<StateSnapshot>();
    crosses::<arbor_database::Head<'_>>();
    crosses::<arbor_database::Historical<'_>>();
    crosses::<arbor_database::Computed>();
    crosses::<arbor_database::PastState>();
    crosses::<StateChanges>();
    crosses::<DatabaseError>();
    let state = OpenOptions::new().in_memory().expect("opened");
    assert!(format!("{state:?}").contains("mpt"), "{state:?}");
}

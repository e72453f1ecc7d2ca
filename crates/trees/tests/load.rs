//! A state loaded as a whole is the one that a block with the same changes makes.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use crate::trees;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use arbor_state::{
    Account, AccountChange, AccountOrder, AccountSource, BlockRef, Computed, FullAccount,
    KeyedAccount, KeyedAccounts, LoadedCodes, Network, NumberedLeaf, ReadError, SlotChange,
    SortedAccounts, SpreadLeaf, State, StateChanges, StateError, StateView, Tree, code_write,
};
use arbor_store::{MemoryStore, Reader, Store, Table, Write};
use arbor_trees::MPT;
use arbor_trees::ar16mt::AR16MT;
use arbor_trees::eip7864::{EIP7864, Eip7864};
use arbor_trees::eip8297::{Eip8297, Packing};
use arbor_trees::verkle::{Committer, HeaderLayout, Verkle, VerkleSettings};
use arbor_versions::{Retain, Version};

/// Codes of a byte, of as many chunks as a Verkle tree has under two stems, and of one more.
static CODES: LazyLock<[Bytes; 3]> = LazyLock::new(|| {
    const TWO_STEMS: usize = 31 * (128 + 256);
    [2, TWO_STEMS, TWO_STEMS + 1].map(|size| b"\x60\x01".repeat(size).split_off(size).into())
});

fn codes() -> impl Iterator<Item = (B256, Bytes)> {
    CODES.iter().map(|code| (keccak256(code), code.clone()))
}

fn open(store: &Arc<MemoryStore>) -> Result<State, StateError> {
    open_as(MPT.tree(), store)
}

fn open_as(tree: Tree, store: &Arc<MemoryStore>) -> Result<State, StateError> {
    let network = Network {
        chain_id: 1,
        genesis_hash: B256::ZERO,
    };
    let store: Arc<dyn Store> = store.clone();
    State::open(store, None, tree, network, Default::default())
}

fn block(number: u64) -> BlockRef {
    BlockRef {
        number,
        hash: B256::with_last_byte(number as u8),
        record: Vec::new(),
    }
}

/// Accounts of all shapes: `number` decides how many slots, and whether there is code.
fn account(number: u64) -> (Address, Account, Vec<(U256, U256)>) {
    let slots = match number % 7 {
        0 => 0,
        1 => 1,
        2 | 3 => 2,
        // A trie of several batches' nodes and many depths.
        6 if number == 6 => 30_000,
        other => other * 9,
    };
    let account = Account {
        nonce: number % 3,
        // As much as has room under every tree.
        balance: U256::from(number) << (number % 100),
        code_hash: match number % 2 {
            0 => KECCAK256_EMPTY,
            _ => keccak256(&CODES[number as usize % 3]),
        },
    };
    let slots = (0..slots).map(|slot| (U256::from(slot * slot), U256::from(slot + 1)));
    let address = Address::from_word(keccak256(number.to_be_bytes()));
    (address, account, slots.collect())
}

/// Accounts in the order of their numbers.
fn full_accounts(
    numbers: impl IntoIterator<Item = u64>,
) -> impl Iterator<Item = Result<FullAccount, ReadError>> {
    numbers.into_iter().map(|number| {
        let (address, account, slots) = account(number);
        Ok(FullAccount {
            address,
            account,
            slots,
        })
    })
}

fn code(code_hash: B256) -> Result<Bytes, ReadError> {
    let mut codes = codes();
    let found = codes.find(|(hash, _)| *hash == code_hash);
    let found = found.map(|(_, code)| code);
    found.ok_or(ReadError::MissingCode(code_hash))
}

/// Accounts in the order in which a tree loads them.
fn source(tree: &Tree, numbers: impl IntoIterator<Item = u64>) -> SortedAccounts<'static> {
    SortedAccounts::of(tree.order(), full_accounts(numbers), code, usize::MAX).unwrap()
}

fn changes(numbers: impl IntoIterator<Item = u64>) -> StateChanges {
    let mut changes = StateChanges::default();
    for number in numbers {
        let (address, account, slots) = account(number);
        let code = code(account.code_hash).ok();
        changes
            .codes
            .extend(code.map(|code| (account.code_hash, code)));
        let slots = slots.into_iter().map(|(slot, new)| {
            let old = U256::ZERO;
            (slot, SlotChange { old, new })
        });
        let change = AccountChange {
            new: Some(account),
            slots: slots.collect(),
            ..AccountChange::default()
        };
        changes.accounts.insert(address, change);
    }
    changes
}

type Entry = (Box<[u8]>, Arc<[u8]>);

fn contents(store: &MemoryStore, table: u8) -> Vec<Entry> {
    let scan = store.scan(Table(table), b"", b"").unwrap();
    scan.map(Result::unwrap).collect()
}

#[test]
fn a_loaded_state_is_that_of_a_block() {
    for count in [0, 1, 2, 17, 3_000] {
        loaded_is_made(&MPT.tree(), 0..count, Some(256));
    }
}

#[test]
fn a_loaded_ar16mt_state_is_that_of_a_block() {
    for count in [0, 1, 2, 17, 3_000] {
        loaded_is_made(&AR16MT.tree(), 0..count, Some(257));
    }
}

#[test]
fn a_loaded_eip8297_state_is_that_of_a_block() {
    // All leaves at once, and in many groups; zones whose records are shared, and are not.
    for (levels, leaf_bytes) in [(4, 512 << 20), (3, 1 << 12), (7, 1 << 12), (8, 1 << 20)] {
        let tree: Tree = Arc::new(Eip8297 {
            packing: Packing {
                levels,
                inner_hashes: levels == 7,
            },
            leaf_bytes,
            ..Eip8297::default()
        });
        // Without the one of 30,000 slots.
        for count in [0, 1, 2, 17, 300] {
            loaded_is_made(&tree, 7..7 + count, Some(258));
        }
    }
}

#[test]
fn a_loaded_eip7864_state_is_that_of_a_block() {
    // All leaves at once, and in many groups; parts whose records are shared, and are not.
    let usual = EIP7864.tree();
    for (levels, leaf_bytes) in [(4, 512 << 20), (3, 1 << 12), (7, 1 << 12), (8, 1 << 20)] {
        let tree: Tree = Arc::new(Eip7864 {
            packing: Packing {
                levels,
                inner_hashes: levels == 7,
            },
            leaf_bytes,
            ..*usual.downcast().unwrap()
        });
        // Without the one of 30,000 slots.
        for count in [0, 1, 2, 17, 300] {
            loaded_is_made(&tree, 7..7 + count, Some(258));
        }
    }
}

#[test]
fn a_loaded_state_of_every_row_is_that_of_a_block() {
    for tree in trees::trees() {
        // Without the one of 30,000 slots.
        for count in [0, 1, 2, 17, 300] {
            loaded_is_made(&tree, 7..7 + count, None);
        }
    }
}

#[test]
fn a_loaded_verkle_state_is_that_of_a_block() {
    let committer = Arc::new(Committer::within(20_000_000));
    // All leaves at once, and in many groups.
    for (layout, leaf_bytes) in HeaderLayout::ALL.into_iter().zip([512 << 20, 1 << 10]) {
        let settings = VerkleSettings {
            layout,
            leaf_bytes,
            ..VerkleSettings::default()
        };
        let tree: Tree = Arc::new(Verkle::with(committer.clone(), settings));
        // Without the one of 30,000 slots.
        for count in [0, 1, 2, 17, 300] {
            loaded_is_made(&tree, 7..7 + count, Some(258));
        }
    }
}

/// Loads accounts, in so many steps if that is known, and compares all tables with those of a block that makes the same accounts.
fn loaded_is_made(tree: &Tree, numbers: Range<u64>, of_steps: Option<u64>) {
    let open = |store| open_as(tree.clone(), store);
    let by_block = Arc::new(MemoryStore::default());
    let mut state = open(&by_block).unwrap();
    let computed = state.compute(&changes(numbers.clone())).unwrap();
    let root = computed.root();
    state.commit(&block(0), computed).unwrap();
    state.flush().unwrap();

    let loaded = Arc::new(MemoryStore::default());
    let mut state = open(&loaded).unwrap();
    let steps = AtomicU64::new(0);
    let computed = state
        .load(&source(tree, numbers.clone()), &|done, of| {
            assert!(done <= of);
            steps.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
    if let Some(of_steps) = of_steps {
        assert_eq!(steps.into_inner(), of_steps);
    }
    assert_eq!(computed.root(), root, "{numbers:?}");
    state.commit(&block(0), computed).unwrap();
    state.flush().unwrap();
    for table in 0..=u8::MAX {
        let same = contents(&loaded, table) == contents(&by_block, table);
        assert!(same, "table {table} of {numbers:?}");
    }

    built_is_loaded(tree, numbers.clone(), &loaded);

    // It goes on as any other, and back.
    let mut state = open(&loaded).unwrap();
    assert_eq!(state.root(), root);
    let computed = state
        .compute(&changes(numbers.end..numbers.end + 5))
        .unwrap();
    state.commit(&block(1), computed).unwrap();
    assert!(state.account(account(numbers.end).0).unwrap().is_some());
    state.rollback(Version(0)).unwrap();
    assert_eq!(state.root(), root);
    assert_eq!(state.account(account(numbers.end).0).unwrap(), None);
    state.prune(Retain::None).unwrap();
}

/// Builds the same state in parts, as a conversion does, and compares all tables.
fn built_is_loaded(tree: &Tree, numbers: Range<u64>, loaded: &MemoryStore) {
    let Some(build) = tree.build() else { return };
    let what = format!("{} of {numbers:?}", tree.kind().name);
    let store = Arc::new(MemoryStore::default());
    let mut state = open_as(tree.clone(), &store).unwrap();
    let source = source(tree, numbers);
    let codes = LoadedCodes::of(&source);
    let (mut leaves, mut hashes) = (Vec::new(), BTreeSet::new());
    for first in 0..=u8::MAX {
        let accounts: Result<Vec<KeyedAccount>, _> = source.stream(Some(first)).unwrap().collect();
        for accounts in accounts.unwrap().chunks(3) {
            hashes.extend(accounts.iter().map(|account| account.account.code_hash));
            let spread = build.spread(accounts.to_vec(), &codes).unwrap();
            for list in spread.records {
                state.load_part(&mut list.into_iter()).unwrap();
            }
            for SpreadLeaf { key, value } in spread.leaves {
                let number = leaves.len() as u64;
                leaves.push(NumberedLeaf { number, key, value });
            }
        }
    }
    hashes.remove(&KECCAK256_EMPTY);
    let mut writes = hashes
        .iter()
        .map(|hash| code_write(hash, &code(*hash).unwrap()));
    state.load_part(&mut writes).unwrap();
    let count = leaves.len() as u64;
    leaves.sort_by_key(|leaf| leaf.key);
    let (mut parts, mut nodes) = (Vec::new(), Vec::new());
    for first in 0..=u8::MAX {
        let of_part = leaves.iter().filter(|leaf| leaf.key[0] == first).cloned();
        let view = state.versions().view();
        let built = build.part(view, first, of_part.collect()).unwrap();
        nodes.extend(built.records);
        nodes.extend(built.nodes);
        parts.push(built.part);
    }
    let joined = build.join(parts, count).unwrap();
    nodes.extend(joined.writes);
    nodes.sort_by(Write::cmp_place);
    let is_once = nodes
        .windows(2)
        .all(|pair| pair[0].cmp_place(&pair[1]).is_lt());
    assert!(is_once, "{what}: a node is made twice");
    state.load_part(&mut nodes.into_iter()).unwrap();
    let computed = Computed::of_load(joined.root, Default::default());
    let blocks = vec![(block(0), joined.root)];
    state.commit_loaded(blocks, computed).unwrap();
    for table in 0..=u8::MAX {
        let same = contents(&store, table) == contents(loaded, table);
        assert!(same, "table {table} of {what}");
    }
}

#[test]
fn only_an_empty_database_is_loaded() {
    let store = Arc::new(MemoryStore::default());
    let mut state = open(&store).unwrap();
    let computed = state.compute(&changes(0..3)).unwrap();
    state.commit(&block(0), computed).unwrap();
    let source = source(&MPT.tree(), 0..3);
    let error = state.load(&source, &|_, _| ()).unwrap_err();
    assert!(
        error.to_string().contains("has version 0 already"),
        "{error}"
    );
}

#[test]
fn a_load_that_did_not_end_is_told_when_opening() {
    /// Accounts of which some cannot be read.
    struct Failing(SortedAccounts<'static>);
    impl AccountSource for Failing {
        fn order(&self) -> &'static AccountOrder {
            self.0.order()
        }

        fn stream(&self, first: Option<u8>) -> Result<KeyedAccounts<'_>, ReadError> {
            let end = || Err(ReadError::new("the source is at its end"));
            let accounts = self.0.stream(first)?;
            Ok(Box::new(accounts.map(move |account| match account {
                Ok(account) if account.key[0] >= 200 => end(),
                account => account,
            })))
        }

        fn code_bytes(&self, code_hash: B256) -> Result<Bytes, ReadError> {
            self.0.code_bytes(code_hash)
        }
    }
    /// Accounts that descend.
    struct Unordered(SortedAccounts<'static>);
    impl AccountSource for Unordered {
        fn order(&self) -> &'static AccountOrder {
            self.0.order()
        }

        fn stream(&self, first: Option<u8>) -> Result<KeyedAccounts<'_>, ReadError> {
            let mut accounts: Vec<_> = self.0.stream(first)?.collect();
            accounts.reverse();
            Ok(Box::new(accounts.into_iter()))
        }

        fn code_bytes(&self, code_hash: B256) -> Result<Bytes, ReadError> {
            self.0.code_bytes(code_hash)
        }
    }
    for tree in trees::trees() {
        let source = || source(&tree, 0..2_000);
        let sources: [(&dyn AccountSource, &str); 2] = [
            (&Failing(source()), "the source is at its end"),
            (&Unordered(source()), "one before"),
        ];
        for (source, reason) in sources {
            is_told_when_opening(&tree, source, reason);
        }
    }
}

fn is_told_when_opening(tree: &Tree, source: &dyn AccountSource, reason: &str) {
    let store = Arc::new(MemoryStore::default());
    let error = open_as(tree.clone(), &store)
        .unwrap()
        .load(source, &|_, _| ())
        .unwrap_err();
    let mut chain = vec![error.to_string()];
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        chain.push(error.to_string());
        cause = error.source();
    }
    assert!(chain.join(": ").contains(reason), "{chain:?}");
    let error = open_as(tree.clone(), &store).map(drop).unwrap_err();
    assert!(error.to_string().contains("interrupted"), "{error}");
}

#[test]
fn a_source_of_another_order_is_refused_and_harms_nothing() {
    let (mpt, ar16mt) = (MPT.tree(), AR16MT.tree());
    for (tree, other) in [(&mpt, &ar16mt), (&ar16mt, &mpt)] {
        let mut state = open_as(tree.clone(), &Arc::new(MemoryStore::default())).unwrap();
        let error = state.load(&source(other, 0..3), &|_, _| ()).unwrap_err();
        assert!(error.to_string().contains("sort them first"), "{error}");
        let computed = state.load(&source(tree, 0..3), &|_, _| ()).unwrap();
        state.commit(&block(0), computed).unwrap();
    }
}

#[test]
fn code_with_another_hash_is_refused() {
    let wrong = |_| Ok(CODES[0].clone());
    for tree in trees::trees() {
        let accounts = full_accounts([1]);
        let source = SortedAccounts::of(tree.order(), accounts, wrong, usize::MAX).unwrap();
        let mut state = trees::empty(&tree);
        let error = state.load(&source, &|_, _| ()).unwrap_err();
        assert!(error.to_string().contains("has the hash"), "{error}");
    }
}

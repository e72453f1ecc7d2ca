//! Rebuilding every trie from the flat tables, on all cores.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::iter::{self, Peekable};
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256, hex};
use arbor_hashing::KeccakBatch;
use arbor_store::{Table, Value};
use arbor_tree::{Hash, Position};
use arbor_tree_mpt::{Part, TreeError, build_many, build_part, join};
use arbor_versions::{Entries, VersionsError};
use rayon::prelude::*;

use super::failed;
use super::keys::{ACCOUNTS, SLOTS};
use super::records::{AccountRecord, FlatRecord, SlotRecord};
use super::undo::split_slot_key;
use arbor_state_tree::Ahead;
use arbor_state_tree::StateError;

/// Slots of one account from which on its storage is shared by ranges too: small enough to be kept in memory, by reckoning 20 MB
/// with their records, leaves and nodes, and enough that the few read twice do not count.
const MANY_SLOTS: usize = 1 << 16;
/// Accounts, or slots of them, whose storage tries are built together, so that hashes of small ones fill lanes.
const STORAGE_BUILT_TOGETHER: usize = 1 << 9;

/// What looks on while tries are rebuilt, from several threads.
pub(crate) trait Watch: Sync {
    /// A flat table's entries.
    fn scan(&self, table: Table, prefix: &[u8], from: &[u8]) -> Result<Entries<'_>, VersionsError>;

    /// A flat record, which was decoded, of an account or (`None`) a slot.
    fn record(&self, account: Option<&AccountRecord>) -> Result<(), StateError>;

    /// A node as the flat tables make it, of the account trie or of a storage trie with very many slots.
    fn node(&self, position: &Position, record: &[u8]) -> Result<(), StateError>;

    /// The stored nodes of storage tries whose owners have this first byte, if they are to be [compared](Self::compare).
    fn storage_nodes(&self, first: u8) -> Result<StoredNodes<'_>, VersionsError>;

    /// Nodes of other storage tries as the flat tables make them, ascending by their keys, beside what is left of those stored.
    fn compare(&self, built: &[Node], stored: &mut StoredNodes<'_>) -> Result<(), StateError>;

    /// What is left of the stored nodes when all were compared.
    fn left(&self, stored: StoredNodes<'_>) -> Result<(), StateError>;

    /// Something wrong with the flat tables.
    fn fault(&self, fault: String) -> Result<(), StateError>;

    /// One of the 256 ranges of account keys is done.
    fn range_done(&self) {}
}

/// A node's place and record.
pub(crate) type Node = (Position, Arc<[u8]>);
/// Stored nodes, ascending by their keys.
pub(crate) type StoredNodes<'a> = Peekable<Entries<'a>>;

/// Rebuilds the subtrees of the account trie below some first bytes, with the storage tries below. Memory does not grow with
/// the state.
pub(crate) fn rebuild(watch: &dyn Watch, firsts: &[u8]) -> Result<Vec<Part>, StateError> {
    let rebuild = Rebuild { watch };
    let parts = firsts.par_iter().map(|first| rebuild.accounts(*first));
    parts.collect()
}

/// Builds the nodes above all subtrees of the account trie, and returns the state root.
pub(crate) fn rebuild_top(watch: &dyn Watch, parts: Vec<Part>) -> Result<B256, StateError> {
    Ok(Rebuild { watch }.join(None, parts)?.into())
}

/// Computes the state root from the flat tables alone, reading no node, on the threads of the caller's pool.
///
/// # Errors
/// The store's errors, and a record that is not what its table promises.
pub(crate) fn flat_root(flat: &Ahead<'_>) -> Result<B256, StateError> {
    let (watch, firsts) = (Strict(flat), Vec::from_iter(0..=u8::MAX));
    let parts = rebuild(&watch, &firsts)?;
    rebuild_top(&watch, parts)
}

/// Stops at the first fault.
struct Strict<'a>(&'a Ahead<'a>);

impl Watch for Strict<'_> {
    fn scan(&self, table: Table, prefix: &[u8], from: &[u8]) -> Result<Entries<'_>, VersionsError> {
        self.0.scan(table, prefix, from)
    }

    fn record(&self, _: Option<&AccountRecord>) -> Result<(), StateError> {
        Ok(())
    }

    fn node(&self, _: &Position, _: &[u8]) -> Result<(), StateError> {
        Ok(())
    }

    fn storage_nodes(&self, _: u8) -> Result<StoredNodes<'_>, VersionsError> {
        let none: Entries<'_> = Box::new(iter::empty());
        Ok(none.peekable())
    }

    fn compare(&self, _: &[Node], _: &mut StoredNodes<'_>) -> Result<(), StateError> {
        Ok(())
    }

    fn left(&self, _: StoredNodes<'_>) -> Result<(), StateError> {
        Ok(())
    }

    fn fault(&self, fault: String) -> Result<(), StateError> {
        Err(StateError::Read(fault))
    }
}

/// A leaf of a trie.
type Leaf = (Hash, Vec<u8>);
/// Slots, ascending, of one account after the other.
type Slots<'a> = Peekable<Entries<'a>>;

/// What is left of the accounts of a range, their slots and the stored nodes of their storage; account leaves that are made, and names that are not checked yet.
struct Range<'a> {
    accounts: Entries<'a>,
    slots: Slots<'a>,
    nodes: StoredNodes<'a>,
    leaves: VecDeque<Leaf>,
    names: Names,
}

/// Addresses (20 bytes) and slots' numbers (32) whose hashes must be the keys that they were found under: hashed together, to fill lanes.
#[derive(Default)]
struct Names {
    names: KeccakBatch,
    /// The keys, behind the owners' of slots.
    keys: Vec<(Option<Hash>, Hash)>,
}

impl Names {
    fn add(
        &mut self,
        name: &[u8],
        key: (Option<Hash>, Hash),
        watch: &dyn Watch,
    ) -> Result<(), StateError> {
        self.names.push(name);
        self.keys.push(key);
        match self.keys.len() {
            STORAGE_BUILT_TOGETHER => self.check(watch),
            _ => Ok(()),
        }
    }

    /// Looks at all since the last time.
    fn check(&mut self, watch: &dyn Watch) -> Result<(), StateError> {
        self.names.finish();
        for (at, (hash, (owner, key))) in self.names.digests().iter().zip(&self.keys).enumerate() {
            if hash == key {
                continue;
            }
            let (name, key) = (self.names.message(at), B256::from(*key));
            watch.fault(match owner.map(B256::from) {
                None => {
                    let address = Address::from_slice(name);
                    format!("account {address:#x}: its key {key} is not the hash of its address")
                }
                Some(owner) => {
                    let slot = U256::from_be_slice(name);
                    format!("slot {slot:#x} of account hash {owner}: its key {key} is not the hash of its number")
                }
            })?;
        }
        self.names.clear();
        self.keys.clear();
        Ok(())
    }
}

/// An account's storage: the leaves of its trie, or the root if they were very many.
enum Storage {
    Leaves(Vec<Leaf>),
    Root(Hash),
}

/// An account's key, record and storage.
type Stored = (Hash, Value, Storage);

#[derive(Clone, Copy)]
struct Rebuild<'a> {
    watch: &'a dyn Watch,
}

impl<'a> Rebuild<'a> {
    /// Runs a build over leaves that can fail, and shows its nodes. `None` among the leaves is a record that is no leaf.
    fn build<T>(
        self,
        leaves: impl Iterator<Item = Result<Option<Leaf>, StateError>>,
        build: impl FnOnce(
            &mut dyn Iterator<Item = Leaf>,
            &mut dyn FnMut(Position, Arc<[u8]>),
        ) -> Result<T, TreeError>,
    ) -> Result<T, StateError> {
        let stop: RefCell<Option<StateError>> = RefCell::new(None);
        let mut leaves = leaves.map_while(|leaf| {
            let failed = |error| *stop.borrow_mut() = Some(error);
            leaf.map_err(failed).ok()
        });
        let mut leaves = std::iter::from_fn(|| leaves.find_map(|leaf| leaf));
        let built = build(&mut leaves, &mut |position, record| {
            if stop.borrow().is_none() {
                let shown = self.watch.node(&position, &record);
                *stop.borrow_mut() = shown.err();
            }
        });
        match stop.take() {
            Some(error) => Err(error),
            None => built.map_err(failed),
        }
    }

    fn join(self, trie: Option<Hash>, parts: Vec<Part>) -> Result<Hash, StateError> {
        self.build(std::iter::empty(), |_, sink| join(trie, parts, sink))
    }

    /// The part of the account trie whose keys have this first byte, with the storage below.
    fn accounts(self, first: u8) -> Result<Part, StateError> {
        let mut range = Range {
            accounts: self.watch.scan(ACCOUNTS, &[first], &[])?,
            slots: self.watch.scan(SLOTS, &[first], &[])?.peekable(),
            nodes: self.watch.storage_nodes(first)?,
            leaves: VecDeque::new(),
            names: Names::default(),
        };
        let leaves = iter::from_fn(|| self.next_leaf(&mut range).transpose());
        let leaves = leaves.map(|leaf| leaf.map(Some));
        let part = self.build(leaves, |leaves, sink| build_part(None, leaves, sink))?;
        range.names.check(self.watch)?;
        self.orphans(&mut range.slots, None)?;
        self.watch.left(range.nodes)?;
        self.watch.range_done();
        Ok(part)
    }

    fn next_leaf(self, range: &mut Range<'a>) -> Result<Option<Leaf>, StateError> {
        while range.leaves.is_empty() {
            let accounts = self.group(range)?;
            if accounts.is_empty() {
                return Ok(None);
            }
            self.leaves_of(accounts, range)?;
        }
        Ok(range.leaves.pop_front())
    }

    /// Takes the next accounts and their slots off a range; one with very many slots is the last of its group.
    fn group(self, range: &mut Range<'a>) -> Result<Vec<Stored>, StateError> {
        let (mut accounts, mut count) = (Vec::new(), 0);
        while count < STORAGE_BUILT_TOGETHER
            && let Some(entry) = range.accounts.next()
        {
            let (key, bytes) = entry?;
            let Ok(owner) = Hash::try_from(&key[..]) else {
                let key = hex::encode(key);
                self.watch
                    .fault(format!("account record: its key {key} is not a hash"))?;
                continue;
            };
            self.orphans(&mut range.slots, Some(&owner))?;
            let storage = self.storage(owner, &mut range.slots, &mut range.names)?;
            count += match &storage {
                Storage::Leaves(leaves) => leaves.len() + 1,
                Storage::Root(_) => STORAGE_BUILT_TOGETHER,
            };
            accounts.push((owner, bytes, storage));
        }
        Ok(accounts)
    }

    /// Builds the storage tries of some accounts, and makes the accounts' own leaves, of all whose records make one.
    fn leaves_of(self, accounts: Vec<Stored>, range: &mut Range<'a>) -> Result<(), StateError> {
        let mut nodes = Vec::new();
        let apart = accounts.into_iter().map(|(owner, bytes, storage)| {
            let (leaves, root) = match storage {
                Storage::Leaves(leaves) => (leaves, None),
                Storage::Root(root) => (Vec::new(), Some(root)),
            };
            ((owner, leaves), (owner, bytes, root))
        });
        let (tries, accounts): (Vec<_>, Vec<_>) = apart.unzip();
        let roots = build_many(tries, &mut |position, record| {
            nodes.push((position, record));
        })
        .map_err(failed)?;
        for of_one in nodes.chunk_by_mut(|(a, _), (b, _)| a.trie == b.trie) {
            of_one.sort_unstable_by_key(|(position, _)| (position.path.len(), position.path));
        }
        self.watch.compare(&nodes, &mut range.nodes)?;
        for ((owner, bytes, known), root) in accounts.into_iter().zip(roots) {
            let leaf = self.account(owner, &bytes, known.unwrap_or(root), &mut range.names)?;
            range.leaves.extend(leaf);
        }
        Ok(())
    }

    /// An account's leaf, if its record makes one.
    fn account(
        self,
        owner: Hash,
        bytes: &[u8],
        storage_root: Hash,
        names: &mut Names,
    ) -> Result<Option<Leaf>, StateError> {
        let record = match AccountRecord::decode(&owner, bytes) {
            Ok(record) => record,
            Err(error) => {
                self.watch.fault(error.to_string())?;
                return Ok(None);
            }
        };
        self.watch.record(Some(&record))?;
        let address = record.address;
        names.add(address.as_slice(), (None, owner), self.watch)?;
        if storage_root != record.storage_root.0 {
            let (given, stored) = (B256::from(storage_root), record.storage_root);
            self.watch.fault(format!(
                "account {address:#x}: its slots give storage root {given}, its record has {stored}"
            ))?;
        }
        Ok(Some((owner, record.filled_leaf())))
    }

    /// Takes an account's slots off the front of `slots`; if they are very many, rebuilds their trie.
    fn storage(
        self,
        owner: Hash,
        slots: &mut Slots<'a>,
        names: &mut Names,
    ) -> Result<Storage, StateError> {
        let mut few = Vec::new();
        while few.len() < MANY_SLOTS {
            match slots.next_if(|entry| of_owner(entry, &owner)) {
                Some(entry) => few.push(entry?),
                None => {
                    let leaves = few.iter().map(|(key, bytes)| self.slot(key, bytes, names));
                    let leaves: Result<Vec<_>, StateError> =
                        leaves.filter_map(Result::transpose).collect();
                    return leaves.map(Storage::Leaves);
                }
            }
        }
        if few[0].0.len() == owner.len() {
            let owner = B256::from(owner);
            self.watch.fault(format!(
                "slot record of account hash {owner} without a slot"
            ))?;
        }
        drop(few);
        // Longer than any key of this owner.
        let after = [&owner[..], &[0xff; 33]].concat();
        *slots = self.watch.scan(SLOTS, &owner[..1], &after)?.peekable();
        let parts = (0..=u8::MAX).into_par_iter();
        let parts: Result<Vec<Part>, StateError> =
            parts.map(|first| self.slots(owner, first)).collect();
        self.join(Some(owner), parts?).map(Storage::Root)
    }

    /// The part of a storage trie whose keys have this first byte.
    fn slots(self, owner: Hash, first: u8) -> Result<Part, StateError> {
        let prefix = [&owner[..], &[first]].concat();
        let slots = self.watch.scan(SLOTS, &prefix, &[])?;
        let mut names = Names::default();
        let leaves = slots.map(|entry| {
            let (key, bytes) = entry?;
            self.slot(&key, &bytes, &mut names)
        });
        let part = self.build(leaves, |leaves, sink| build_part(Some(owner), leaves, sink))?;
        names.check(self.watch)?;
        Ok(part)
    }

    /// A slot's leaf, if its record makes one.
    fn slot(self, key: &[u8], bytes: &[u8], names: &mut Names) -> Result<Option<Leaf>, StateError> {
        let decoded =
            split_slot_key(key).and_then(|keys| Ok((keys, SlotRecord::decode(key, bytes)?)));
        let ((owner, tree_key), record) = match decoded {
            Ok(decoded) => decoded,
            Err(error) => {
                self.watch.fault(error.to_string())?;
                return Ok(None);
            }
        };
        self.watch.record(None)?;
        let number = record.slot.to_be_bytes::<32>();
        names.add(&number, (Some(owner), tree_key), self.watch)?;
        Ok(Some((tree_key, SlotRecord::leaf(record.value).into_vec())))
    }

    /// Takes slots before the account `next` off the front: their account does not exist.
    fn orphans(self, slots: &mut Slots<'a>, next: Option<&Hash>) -> Result<(), StateError> {
        let before = |entry: &Entry| match (entry, next) {
            (Ok((key, _)), Some(next)) => key[..] < next[..],
            _ => true,
        };
        while let Some(entry) = slots.next_if(before) {
            let key = hex::encode(entry?.0);
            self.watch
                .fault(format!("slot record {key}: its account does not exist"))?;
        }
        Ok(())
    }
}

type Entry = Result<(Box<[u8]>, Value), VersionsError>;

/// Whether a slot is of an account; errors are everybody's.
fn of_owner(entry: &Entry, owner: &Hash) -> bool {
    entry
        .as_ref()
        .map_or(true, |(key, _)| key.starts_with(owner))
}

//! Building a whole state at once, from accounts sorted by their keys.

use std::collections::HashSet;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_store::{Value, Write};
use arbor_tree::{Hash, Position};
use arbor_tree_mpt::{Part, build_many, build_part, join};
use arbor_versions::{Changes, Versions};
use rayon::prelude::*;

use super::keys::{ACCOUNTS, SLOTS, account_key, flat_slot_key, node_table, slot_key};
use super::records::{AccountRecord, SlotRecord};
use crate::checks::check_loaded_code;
use crate::node_load::NodeLoad;
use crate::state::code_writes;
use crate::{Account, Computed, StateError};

/// An account with all its storage, as it is loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadAccount {
    /// Keccak-256 of the address, by which accounts are sorted.
    pub key: Hash,
    /// The address.
    pub address: Address,
    /// Nonce, balance, code.
    pub account: Account,
    /// Its slots, ascending by key.
    pub slots: Vec<LoadSlot>,
}

/// A slot that is not zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadSlot {
    /// Keccak-256 of the slot's number (32 bytes, big-endian).
    pub key: Hash,
    /// The number.
    pub slot: U256,
    /// The value; not zero.
    pub value: U256,
}

impl LoadAccount {
    /// An account with its keys; slots come in any order, each once. Those with zero are absent.
    pub fn new(
        address: Address,
        account: Account,
        slots: impl IntoIterator<Item = (U256, U256)>,
    ) -> Self {
        let slots = slots.into_iter().filter(|(_, value)| !value.is_zero());
        let slots = slots.map(|(slot, value)| LoadSlot {
            key: slot_key(slot),
            slot,
            value,
        });
        let mut slots: Vec<LoadSlot> = slots.collect();
        slots.sort_unstable_by_key(|slot| slot.key);
        Self {
            key: account_key(address),
            address,
            account,
            slots,
        }
    }
}

/// Where a state to be loaded comes from. It is read in the order that the tree's tables have: once by hashed key, range by range and by several
/// threads, or several times by address.
pub trait LoadSource: Sync {
    /// All accounts whose keys have this first byte, ascending by key.
    ///
    /// # Errors
    /// Whatever keeps them from being had; the load ends with it.
    fn range(&self, first: u8) -> Result<Vec<LoadAccount>, StateError>;

    /// All accounts, ascending by address.
    fn by_address(&self) -> Box<dyn Iterator<Item = Result<LoadAccount, StateError>> + '_>;

    /// The codes of all accounts, by their hashes.
    fn codes(&self) -> Vec<(B256, Bytes)>;
}

/// Computes the root of a state, which need not be stored anywhere, on the threads of the caller's pool.
///
/// # Errors
/// Accounts or slots that do not ascend by key; errors of the source.
pub fn state_root(source: &dyn LoadSource) -> Result<B256, StateError> {
    let parts = (0..=u8::MAX).into_par_iter().map(|first| {
        let accounts = source.range(first)?;
        let records = records(&accounts, &mut |_, _| ())?;
        account_part(&accounts, &records, &mut |_, _| ())
    });
    let parts: Result<Vec<Part>, StateError> = parts.collect();
    Ok(join(None, parts?, &mut |_, _| ())?.into())
}

/// Ranges of account keys, by their first byte.
const RANGES: u64 = 256;
/// Ranges that are loaded at once, or as many as there are threads, before their part of the account trie.
const GROUP: usize = 16;

/// What is made of the accounts of a range.
struct Range {
    /// Accounts, slots and storage nodes, as they are stored.
    writes: Vec<Write>,
    /// Their part of the account trie, and its nodes.
    trie: (Part, Vec<Write>),
}

/// Fills an empty database with a whole state; see [`State::load`](crate::State::load).
///
/// In memory are some ranges (256ths of the state) for each thread, the account nodes of a sixteenth,
/// and up to 16 MiB of nodes of each depth.
pub(super) fn load(
    versions: &mut Versions,
    source: &dyn LoadSource,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Computed, StateError> {
    let codes = source.codes();
    let known: HashSet<B256> = codes.iter().map(|(code_hash, _)| *code_hash).collect();
    let done = Mutex::new(0);
    let make = |first: &u8| {
        let accounts = source.range(*first)?;
        for LoadAccount {
            address, account, ..
        } in &accounts
        {
            check_loaded_code(*address, account, |code_hash| known.contains(code_hash))?;
        }
        let range = make_range(&accounts)?;
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        *done += 1;
        progress(*done, RANGES);
        Ok(range)
    };
    let (mut parts, mut load) = (Vec::new(), NodeLoad::default());
    let ranges: Vec<u8> = (0..=u8::MAX).collect();
    for group in ranges.chunks(GROUP.max(rayon::current_num_threads())) {
        for (part, nodes) in load_ranges(versions, group, &make)? {
            parts.push(part);
            load.add(versions, nodes)?;
        }
    }
    let mut nodes = Vec::new();
    let root = join(None, parts, &mut |position, record| {
        nodes.push(node_write(&position, record));
    })?;
    load.add(versions, nodes)?;
    load.finish(versions)?;
    let codes = code_writes(codes.iter().map(|(hash, code)| (hash, code)));
    Ok(Computed::of_load(root.into(), Changes::of_blobs(codes)))
}

/// Loads the writes of consecutive ranges while the next are made, as many at a time as there are threads, and returns their tries.
fn load_ranges(
    versions: &mut Versions,
    ranges: &[u8],
    make: &(impl Fn(&u8) -> Result<Range, StateError> + Sync),
) -> Result<Vec<(Part, Vec<Write>)>, StateError> {
    // One batch is being written, one waits, one is being made.
    let (sender, batches) = sync_channel::<Vec<Write>>(1);
    thread::scope(|scope| {
        let loading = scope.spawn(move || versions.load(&mut batches.into_iter().flatten()));
        let make_all = || {
            let mut tries = Vec::with_capacity(ranges.len());
            for together in ranges.chunks(rayon::current_num_threads()) {
                let made: Result<Vec<Range>, StateError> = together.par_iter().map(make).collect();
                for range in made? {
                    tries.push(range.trie);
                    // Where nobody listens the load has failed, and tells why.
                    if sender.send(range.writes).is_err() {
                        return Ok(tries);
                    }
                }
            }
            Ok(tries)
        };
        let made = make_all();
        drop(sender);
        match loading.join() {
            Ok(loaded) => Ok(loaded?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        .and(made)
    })
}

fn make_range(accounts: &[LoadAccount]) -> Result<Range, StateError> {
    let mut storage = Vec::new();
    let records = records(accounts, &mut |position, record| {
        storage.push(node_write(&position, record));
    })?;
    storage.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    let mut nodes = Vec::new();
    let part = account_part(accounts, &records, &mut |position, record| {
        nodes.push(node_write(&position, record));
    })?;
    let slots: usize = accounts.iter().map(|account| account.slots.len()).sum();
    let mut writes = Vec::with_capacity(accounts.len() + slots + storage.len());
    let mut storage = storage.into_iter().peekable();
    for (account, record) in accounts.iter().zip(&records) {
        writes.push(Write {
            table: ACCOUNTS,
            key: account.key.into(),
            value: Some(record.encode()),
        });
        writes.extend(account.slots.iter().map(|slot| {
            let record = SlotRecord {
                slot: slot.slot,
                value: slot.value,
            };
            Write {
                table: SLOTS,
                key: flat_slot_key(&account.key, &slot.key).into(),
                value: Some(record.encode()),
            }
        }));
        let own = |node: &Write| node.key.starts_with(&account.key);
        writes.extend(std::iter::from_fn(|| storage.next_if(own)));
    }
    Ok(Range {
        writes,
        trie: (part, nodes),
    })
}

/// The flat records of accounts; the nodes of their storage tries go to `sink`.
pub(super) fn records(
    accounts: &[LoadAccount],
    sink: &mut dyn FnMut(Position, Arc<[u8]>),
) -> Result<Vec<AccountRecord>, StateError> {
    let roots = storage_roots(accounts, sink)?;
    let records = accounts
        .iter()
        .zip(roots)
        .map(|(account, root)| AccountRecord {
            address: account.address,
            account: account.account,
            storage_root: root.into(),
        });
    Ok(records.collect())
}

/// Builds the part of the account trie that accounts make.
fn account_part(
    accounts: &[LoadAccount],
    records: &[AccountRecord],
    sink: &mut dyn FnMut(Position, Arc<[u8]>),
) -> Result<Part, StateError> {
    let leaves = accounts.iter().zip(records);
    let leaves = leaves.map(|(account, record)| (account.key, record.filled_leaf()));
    Ok(build_part(None, leaves, sink)?)
}

/// Builds accounts' storage tries, and returns their roots.
fn storage_roots(
    accounts: &[LoadAccount],
    sink: &mut dyn FnMut(Position, Arc<[u8]>),
) -> Result<Vec<Hash>, StateError> {
    let tries = accounts.iter().map(|account| {
        let leaves = account.slots.iter();
        let leaves = leaves.map(|slot| (slot.key, SlotRecord::leaf(slot.value).into_vec()));
        (account.key, leaves)
    });
    Ok(build_many(tries, sink)?)
}

fn node_write(position: &Position, record: Value) -> Write {
    Write {
        table: node_table(position),
        key: position.encode().into(),
        value: Some(record),
    }
}

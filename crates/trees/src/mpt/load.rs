//! Building a whole state at once, from accounts sorted by their keys.

use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread;

use arbor_store::{Value, Write};
use arbor_tree::Position;
use arbor_tree_mpt::{Part, join};
use arbor_versions::{Changes, Versions};
use rayon::prelude::*;

use super::failed;
use super::keys::{ACCOUNTS, SLOTS, flat_slot_key, node_table};
use super::records::{AccountRecord, FlatRecord, SlotRecord};
use crate::node_load::NodeLoad;
use arbor_state_tree::{AccountSource, KeyedAccount};
use arbor_state_tree::{Computed, LoadedCodes, StateError};
use arbor_verify::mpt::{account_part, records};

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

/// Fills an empty database with a whole state.
///
/// In memory are some ranges (256ths of the state) for each thread, the account nodes of a sixteenth,
/// and up to 16 MiB of nodes of each depth.
pub(super) fn load(
    versions: &mut Versions,
    source: &dyn AccountSource,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Computed, StateError> {
    let codes = LoadedCodes::of(source);
    let done = Mutex::new(0);
    let make = |first: &u8| {
        let accounts: Vec<KeyedAccount> = source.stream(Some(*first))?.collect::<Result<_, _>>()?;
        for KeyedAccount {
            address, account, ..
        } in &accounts
        {
            codes.size(*address, account)?;
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
    })
    .map_err(failed)?;
    load.add(versions, nodes)?;
    load.finish(versions)?;
    codes.store(versions)?;
    Ok(Computed::of_load(root.into(), Changes::default()))
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

fn make_range(accounts: &[KeyedAccount]) -> Result<Range, StateError> {
    let (records, writes) = range_writes(accounts)?;
    let mut nodes = Vec::new();
    let part = account_part(accounts, &records, &mut |position, record| {
        nodes.push(node_write(&position, record));
    })?;
    Ok(Range {
        writes,
        trie: (part, nodes),
    })
}

/// Makes the records of accounts, which ascend by key, and the writes of accounts, slots and storage nodes, ascending by table and key.
pub(super) fn range_writes(
    accounts: &[KeyedAccount],
) -> Result<(Vec<AccountRecord>, Vec<Write>), StateError> {
    let mut storage = Vec::new();
    let records = records(accounts, &mut |position, record| {
        storage.push(node_write(&position, record));
    })?;
    storage.sort_unstable_by(|a, b| a.key.cmp(&b.key));
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
    Ok((records, writes))
}

pub(super) fn node_write(position: &Position, record: Value) -> Write {
    Write {
        table: node_table(position),
        key: position.encode().into(),
        value: Some(record),
    }
}

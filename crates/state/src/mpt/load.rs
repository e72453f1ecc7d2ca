//! Building a whole state at once, from accounts sorted by their keys.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_store::{Value, Write};
use arbor_tree::{Hash, Position};
use arbor_tree_mpt::{Part, build_many, build_part, join};
use arbor_versions::Changes;
use rayon::prelude::*;

use super::keys::{account_key, flat_slot_key, node_table, slot_key};
use super::records::{AccountRecord, SlotRecord};
use crate::node_load::NodeLoad;
use crate::state::code_writes;
use crate::tables::{ACCOUNTS, SLOTS};
use crate::tree::{MERKLE_PATRICIA, Tree};
use crate::{Account, Computed, State, StateError, Timings, Work, verkle};

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

/// Where a state to be loaded comes from. It is read several times, in the order that the tree's tables have: by hashed key, range by range and by several
/// threads, or by address.
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
        let records = records(&accounts)?;
        let leaves = accounts.iter().zip(records);
        let leaves = leaves.map(|(account, record)| (account.key, record.filled_leaf()));
        Ok(build_part(None, leaves, &mut |_, _| ())?)
    });
    let parts: Result<Vec<Part>, StateError> = parts.collect();
    Ok(join(None, parts?, &mut |_, _| ())?.into())
}

/// Ranges of account keys, by their first byte.
const RANGES: u64 = 256;
/// Ranges whose account nodes are made together: those of keys with the same first nibble.
const NODE_GROUP: u8 = 16;

impl State {
    /// Fills an empty database with a whole state, bottom-up and in the order of its tables, and returns what is then to be
    /// committed as version 0; its root is that of the state.
    ///
    /// Every table is written once. In memory are, under Merkle-Patricia, some ranges (256ths of the state) for each thread; under a Verkle tree some four million
    /// stems with their names, and the nodes of a sixteenth of the state; besides up to 16 MiB of nodes of each depth. `progress` is called with the parts done and their number. Until
    /// version 0 has been committed and flushed the database cannot be opened again.
    ///
    /// # Errors
    /// AR16MT; a database that has a version; accounts or slots that do not ascend; errors of the source and of the store.
    pub fn load(
        &mut self,
        source: &dyn LoadSource,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Computed, StateError> {
        match self.tree().clone() {
            Tree::MerklePatricia => {}
            Tree::Verkle(verkle) => {
                return verkle::load(&verkle, &mut self.versions, source, progress);
            }
            Tree::Ar16mt(_) => return Err(StateError::OtherTree(MERKLE_PATRICIA)),
        }
        let done = Mutex::new(0);
        let steps = Steps {
            source,
            done: &|| {
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                *done += 1;
                progress(*done, 4 * RANGES);
            },
        };
        self.load_ranges(|first| steps.accounts(first))?;
        self.load_ranges(|first| steps.slots(first))?;
        let root = self.load_account_nodes(&steps)?;
        self.load_ranges(|first| steps.storage_nodes(first))?;
        Ok(Computed {
            root: root.into(),
            changes: Changes::of_blobs(code_writes(
                source.codes().iter().map(|(hash, code)| (hash, code)),
            )),
            timings: Timings::default(),
            work: Work::default(),
        })
    }

    /// Loads what `make` gives for each range, in their order.
    fn load_ranges(
        &mut self,
        make: impl Fn(u8) -> Result<Vec<Write>, StateError> + Sync,
    ) -> Result<(), StateError> {
        let versions = &mut self.versions;
        // One batch is being written, one waits, one is being made.
        let (sender, batches) = sync_channel(1);
        thread::scope(|scope| {
            let loading = scope.spawn(move || versions.load(&mut in_order(batches)));
            let made = make_batches(make, &sender);
            drop(sender);
            match loading.join() {
                Ok(loaded) => Ok(loaded?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
            .and(made)
        })
    }

    /// Loads the nodes of the account trie, made of the accounts that are stored, and returns its root.
    fn load_account_nodes(&mut self, steps: &Steps<'_>) -> Result<Hash, StateError> {
        let (mut parts, mut load) = (Vec::new(), NodeLoad::default());
        for group in 0..=u8::MAX / NODE_GROUP {
            let group = group * NODE_GROUP..=group * NODE_GROUP + (NODE_GROUP - 1);
            let made: Result<Vec<(Part, Vec<Write>)>, StateError> = group
                .into_par_iter()
                .map(|first| self.account_nodes(first, steps))
                .collect();
            for (part, nodes) in made? {
                parts.push(part);
                load.add(&mut self.versions, nodes)?;
            }
        }
        let mut nodes = Vec::new();
        let root = join(None, parts, &mut |position, record| {
            nodes.push(node_write(&position, record));
        })?;
        load.add(&mut self.versions, nodes)?;
        load.finish(&mut self.versions)?;
        Ok(root)
    }

    fn account_nodes(
        &self,
        first: u8,
        steps: &Steps<'_>,
    ) -> Result<(Part, Vec<Write>), StateError> {
        let mut failed = None;
        let accounts = self.versions.view().scan(ACCOUNTS, &[first], &[])?;
        let leaves = accounts.map_while(|entry| {
            let leaf = entry.map_err(StateError::from).and_then(|(key, bytes)| {
                let record = AccountRecord::decode(&key, &bytes)?;
                let key = Hash::try_from(&key[..]).map_err(|_| StateError::Corrupt {
                    table: "accounts",
                    key: key.to_vec(),
                    why: "key of another length than a hash",
                })?;
                Ok((key, record.filled_leaf()))
            });
            leaf.map_err(|error| failed = Some(error)).ok()
        });
        let mut nodes = Vec::new();
        let part = build_part(None, leaves, &mut |position, record| {
            nodes.push(node_write(&position, record));
        });
        if let Some(error) = failed {
            return Err(error);
        }
        (steps.done)();
        Ok((part?, nodes))
    }
}

/// What is made of each range, and who is told.
struct Steps<'a> {
    source: &'a dyn LoadSource,
    done: &'a (dyn Fn() + Sync),
}

impl Steps<'_> {
    fn accounts(&self, first: u8) -> Result<Vec<Write>, StateError> {
        let accounts = self.source.range(first)?;
        let records = records(&accounts)?;
        let writes = accounts.iter().zip(records).map(|(account, record)| Write {
            table: ACCOUNTS,
            key: account.key.into(),
            value: Some(record.encode()),
        });
        let writes = writes.collect();
        (self.done)();
        Ok(writes)
    }

    fn slots(&self, first: u8) -> Result<Vec<Write>, StateError> {
        let accounts = self.source.range(first)?;
        let writes = accounts.iter().flat_map(|account| {
            account.slots.iter().map(|slot| {
                let record = SlotRecord {
                    slot: slot.slot,
                    value: slot.value,
                };
                Write {
                    table: SLOTS,
                    key: flat_slot_key(&account.key, &slot.key).into(),
                    value: Some(record.encode()),
                }
            })
        });
        let writes = writes.collect();
        (self.done)();
        Ok(writes)
    }

    fn storage_nodes(&self, first: u8) -> Result<Vec<Write>, StateError> {
        let mut writes = Vec::new();
        storage_roots(&self.source.range(first)?, &mut |position, record| {
            writes.push(node_write(&position, record));
        })?;
        writes.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        (self.done)();
        Ok(writes)
    }
}

/// The flat records of accounts.
pub(super) fn records(accounts: &[LoadAccount]) -> Result<Vec<AccountRecord>, StateError> {
    let roots = storage_roots(accounts, &mut |_, _| ())?;
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

/// Builds accounts' storage tries, and returns their roots.
fn storage_roots(
    accounts: &[LoadAccount],
    sink: &mut dyn FnMut(Position, Arc<[u8]>),
) -> Result<Vec<Hash>, StateError> {
    let tries = accounts.iter().map(|account| {
        let leaves = account.slots.iter();
        let leaves = leaves.map(|slot| (slot.key, SlotRecord::leaf(slot.value)));
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

/// Makes ranges, as many at a time as there are threads.
fn make_batches(
    make: impl Fn(u8) -> Result<Vec<Write>, StateError> + Sync,
    sender: &SyncSender<Vec<Write>>,
) -> Result<(), StateError> {
    let ranges: Vec<u8> = (0..=u8::MAX).collect();
    for together in ranges.chunks(rayon::current_num_threads()) {
        let made: Result<Vec<Vec<Write>>, StateError> =
            together.par_iter().map(|first| make(*first)).collect();
        for writes in made? {
            if sender.send(writes).is_err() {
                // The load has failed, and tells why.
                return Ok(());
            }
        }
    }
    Ok(())
}

fn in_order(batches: Receiver<Vec<Write>>) -> impl Iterator<Item = Write> {
    batches.into_iter().flatten()
}

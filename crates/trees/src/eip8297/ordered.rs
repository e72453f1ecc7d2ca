//! All leaves of a state in the order of their keys, by hashing every name that the flat tables
//! have.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::named_records::{account_key, slot_name};
use alloy_primitives::{Address, B256, U256};
use arbor_state_tree::{ACCOUNTS, SLOTS, StateError};
use arbor_tree::Hash;
use arbor_tree_eip8297::{LeafUpdate, Path};
use arbor_verify::eip8297::{Embedding, FIELDS, code_key, group_of, header_key};
use arbor_verify::stems::chunk_code;
use arbor_versions::View;
use rayon::prelude::*;

use super::records::{AccountRecord, decode_slot};
use super::{CODE_USERS, records};
use crate::stems::{groups, stored_code};

/// From so many names on that a thread has read it hashes them.
const NAMES: usize = 1 << 12;

/// What to do about a record that cannot be read: to go on without it, or not at all.
pub(super) type Unreadable<'a> = &'a (dyn Fn(StateError) -> Result<(), StateError> + Sync);

/// Returns first bytes of accounts' hashes in groups whose leaves take up to so many bytes.
pub(super) fn first_bytes(
    view: View<'_>,
    firsts: &[u8],
    bytes: usize,
) -> Result<Vec<Vec<u8>>, StateError> {
    let count = |table| -> Result<u64, StateError> {
        let counts = (0..=u8::MAX).into_par_iter().map(|first| {
            let mut entries = view.scan(table, &[first], &[])?;
            entries.try_fold(0, |count, entry| {
                Ok::<u64, StateError>(entry.map(|_| count + 1)?)
            })
        });
        counts.sum()
    };
    let leaves = 2 * count(ACCOUNTS)? + count(SLOTS)?;
    // Vectors that grow have up to twice the room that they need.
    Ok(groups(firsts, 2 * leaves, bytes / size_of::<LeafUpdate>()))
}

/// Leaves of accounts whose hashes begin alike.
#[derive(Default)]
pub(super) struct Bucket {
    /// Those of fields, and of slots beside them.
    pub(super) header: Vec<LeafUpdate>,
    /// Those of other slots.
    pub(super) storage: Vec<LeafUpdate>,
}

/// Leaves by the first bytes of their accounts' hashes.
pub(super) struct OrderedLeaves(Vec<Mutex<Bucket>>);

impl OrderedLeaves {
    /// The leaves of the accounts whose hashes have these first bytes.
    pub(super) fn read(
        view: View<'_>,
        embedding: Embedding,
        firsts: &[u8],
        unreadable: Unreadable<'_>,
    ) -> Result<Self, StateError> {
        let buckets = std::iter::repeat_with(Mutex::default).take(256).collect();
        let leaves = Self(buckets);
        let mut wanted = [false; 256];
        firsts
            .iter()
            .for_each(|first| wanted[usize::from(*first)] = true);
        let reading = Reading {
            view,
            embedding,
            wanted,
            unreadable,
            leaves: &leaves,
        };
        (0..=u8::MAX).into_par_iter().try_for_each(|first| {
            reading.accounts(first)?;
            reading.slots(first)
        })?;
        Ok(leaves)
    }

    fn of(&self, first: u8) -> MutexGuard<'_, Bucket> {
        let bucket = self.0[usize::from(first)].lock();
        bucket.unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out the leaves in headers of accounts whose hashes have this first byte, ascending.
    pub(super) fn take_header(&self, first: u8) -> Vec<LeafUpdate> {
        sorted(std::mem::take(&mut self.of(first).header))
    }

    /// Takes out their other slots, ascending.
    pub(super) fn take_storage(&self, first: u8) -> Vec<LeafUpdate> {
        sorted(std::mem::take(&mut self.of(first).storage))
    }
}

fn sorted(mut leaves: Vec<LeafUpdate>) -> Vec<LeafUpdate> {
    leaves.sort_unstable_by_key(|leaf| leaf.key);
    leaves
}

/// A pass over the flat tables.
struct Reading<'a> {
    view: View<'a>,
    embedding: Embedding,
    wanted: [bool; 256],
    unreadable: Unreadable<'a>,
    leaves: &'a OrderedLeaves,
}

impl Reading<'_> {
    /// The fields of accounts whose addresses begin with this byte.
    fn accounts(&self, first: u8) -> Result<(), StateError> {
        let (mut names, mut waiting) = (Vec::new(), Vec::new());
        for entry in self.view.scan(ACCOUNTS, &[first], &[])? {
            let (key, bytes) = entry?;
            let fields = account_key(&key).and_then(|address| {
                let record = AccountRecord::decode(&key, &bytes)?;
                Ok((address, record.fields(address)?))
            });
            match fields {
                Ok((address, fields)) => {
                    names.push(address);
                    waiting.push(fields);
                }
                Err(error) => (self.unreadable)(error)?,
            }
            if names.len() >= NAMES {
                self.put_accounts(&mut names, &mut waiting);
            }
        }
        self.put_accounts(&mut names, &mut waiting);
        Ok(())
    }

    fn put_accounts(&self, names: &mut Vec<Address>, waiting: &mut Vec<[Hash; 3]>) {
        let hashes = self.embedding.accounts(names);
        for (hash, fields) in hashes.iter().zip(waiting.drain(..)) {
            if self.wanted[usize::from(hash[0])] {
                let leaves = FIELDS.into_iter().zip(fields);
                let leaves = leaves.filter(|(_, value)| *value != [0; 32]);
                let leaves = leaves.map(|(suffix, value)| LeafUpdate {
                    key: header_key(hash, suffix),
                    value,
                });
                self.leaves.of(hash[0]).header.extend(leaves);
            }
        }
        names.clear();
    }

    /// The slots of accounts whose addresses begin with this byte.
    fn slots(&self, first: u8) -> Result<(), StateError> {
        let (mut owner, mut waiting) = (None, Vec::new());
        for entry in self.view.scan(SLOTS, &[first], &[])? {
            let (key, bytes) = entry?;
            let slot = slot_name(&key).and_then(|name| Ok((name, decode_slot(&key, &bytes)?)));
            let ((address, slot), value) = match slot {
                Ok(slot) => slot,
                Err(error) => {
                    (self.unreadable)(error)?;
                    continue;
                }
            };
            let hash = match owner {
                Some((of, hash)) if of == address => hash,
                _ => self.embedding.account(address),
            };
            owner = Some((address, hash));
            if self.wanted[usize::from(hash[0])] {
                waiting.push(((hash, address, slot), value.to_be_bytes()));
            }
            if waiting.len() >= NAMES {
                self.put_slots(&mut waiting);
            }
        }
        self.put_slots(&mut waiting);
        Ok(())
    }

    fn put_slots(&self, waiting: &mut Vec<((Hash, Address, U256), Hash)>) {
        let names: Vec<_> = waiting.iter().map(|(name, _)| *name).collect();
        let keys: Vec<Path> = self.embedding.slots(&names);
        for (key, ((hash, _, slot), value)) in keys.into_iter().zip(waiting.drain(..)) {
            let mut bucket = self.leaves.of(hash[0]);
            let zone = match group_of(slot) {
                None => &mut bucket.header,
                Some(_) => &mut bucket.storage,
            };
            zone.push(LeafUpdate { key, value });
        }
    }
}

/// Gives out the leaves, ascending, of those groups of chunks whose hashes begin with one of some bytes, of all codes that
/// accounts have.
pub(super) fn code_leaves_in_order(
    view: View<'_>,
    embedding: Embedding,
    firsts: &[u8],
    unreadable: Unreadable<'_>,
    leaf: &mut dyn FnMut(LeafUpdate) -> Result<(), StateError>,
) -> Result<(), StateError> {
    let mut names: Vec<(B256, u32)> = Vec::new();
    for entry in view.scan(CODE_USERS, &[], &[])? {
        let (key, bytes) = entry?;
        let code = records::code_key(&key).and_then(|hash| {
            records::decode_users(&key, &bytes)?;
            Ok((hash, stored_code(view, hash)?))
        });
        match code {
            Ok((hash, code)) => {
                let groups = chunk_code(&code).len().div_ceil(256) as u32;
                names.extend((0..groups).map(|group| (hash, group)));
            }
            Err(error) => unreadable(error)?,
        }
    }
    let hashes = embedding.code_groups(&names);
    let groups = hashes.into_iter().zip(names);
    let mut groups: Vec<(Hash, (B256, u32))> = groups
        .filter(|(hash, _)| firsts.contains(&hash[0]))
        .collect();
    groups.sort_unstable();
    for (hash, (code_hash, group)) in groups {
        let chunks = chunk_code(&stored_code(view, code_hash)?);
        let chunks = chunks.into_iter().skip(256 * group as usize).take(256);
        for (suffix, value) in (0..=u8::MAX).zip(chunks) {
            let key = code_key(&hash, suffix);
            if value != [0; 32] {
                leaf(LeafUpdate { key, value })?;
            }
        }
    }
    Ok(())
}

//! Checking a database: the tree rebuilt from the flat tables, in the order of its keys, and
//! compared record by record.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use alloy_primitives::{B256, Bytes, KECCAK256_EMPTY, hex, keccak256};
use arbor_state_tree::{ACCOUNTS, Check, CheckedPart, ReadError, SLOTS, StateError, corrupt};
use arbor_tree_eip8297::{LeafUpdate, Path};
use arbor_verify::eip8297::{Code, delegation_code};
use rayon::prelude::*;

use super::build::{ZoneBuilders, finish_zones, join_zones, zone_builders};
use super::ordered::{OrderedLeaves, code_leaves_in_order, first_bytes};
use super::reader::RECORDS;
use super::records::{self, AccountRecord, decode_slot};
use super::{CODE_USERS, Eip8297, failed};
use crate::binary::{Comparison, check_keys};
use crate::header_root::checked_root;
use crate::named_records::{account_key, slot_name};
use crate::stems::stored_code;

/// Rebuilds the subtrees of some first bytes and compares them with what is stored; reads the
/// records of accounts, slots and users of code.
pub(super) fn check_part(
    check: &Check<'_>,
    tree: Eip8297,
    firsts: &[u8],
) -> Result<CheckedPart, StateError> {
    let rebuild = Rebuild::new(check, tree, firsts)?;
    let subtrees = rebuild.subtrees()?;
    let (are_readable, users) = rebuild.every_record()?;
    let users = users.iter().flat_map(|(code, users)| {
        let users = users.to_be_bytes();
        code.0.into_iter().chain(users)
    });
    Ok(CheckedPart {
        subtrees,
        sums: rebuild.comparison.keys(firsts)?.collect(),
        rest: users.collect(),
        account_trie: RECORDS.checked_trie(are_readable, &check.view, (firsts, tree.sort_bytes))?,
    })
}

/// Rebuilds the nodes above all subtrees and compares them with what is stored; returns the
/// Merkle-Patricia root of the flat tables, zero if they have none.
pub(super) fn check_join(
    check: &Check<'_>,
    tree: Eip8297,
    parts: &[CheckedPart],
) -> Result<B256, StateError> {
    let Rebuild {
        tree, comparison, ..
    } = Rebuild::new(check, tree, &[])?;
    let mut built = Vec::new();
    let mut sink = |path, record| built.push((path, record));
    let subtrees = CheckedPart::all_subtrees(parts).map(|bytes| &bytes[..]);
    let root = join_zones(tree, subtrees, &mut sink)?;
    comparison.compare(&mut built)?;
    comparison.check_root(root, check.root(&tree));
    check_keys(&comparison, parts);
    check_users(check, parts)?;
    checked_root(check, parts)
}

/// Compares how many accounts have each code, in all parts, with the numbers that are stored.
fn check_users(check: &Check<'_>, parts: &[CheckedPart]) -> Result<(), StateError> {
    let mut users: BTreeMap<B256, u64> = BTreeMap::new();
    for part in parts {
        let (entries, _) = part.rest.as_chunks::<40>();
        for entry in entries {
            let (code, number) = entry.split_at(32);
            let number = number
                .iter()
                .fold(0, |all, byte| all << 8 | u64::from(*byte));
            *users.entry(B256::from_slice(code)).or_default() += number;
        }
    }
    let mut stored: BTreeMap<B256, u64> = BTreeMap::new();
    for entry in check.view.scan(CODE_USERS, &[], &[])? {
        let (key, bytes) = entry?;
        // A record that cannot be read is reported by its part.
        if let (Ok(code), Ok(number)) =
            (records::code_key(&key), records::decode_users(&key, &bytes))
        {
            stored.insert(code, number);
        }
    }
    if users != stored {
        let differs = |hash: &&B256| users.get(*hash) != stored.get(*hash);
        let first = users.keys().chain(stored.keys()).find(differs);
        let first = first.copied().unwrap_or_default();
        let number = |of: &BTreeMap<B256, u64>| of.get(&first).copied().unwrap_or_default();
        check.tell_fault(format!(
            "code {first}: {} accounts have it, and {} are counted",
            number(&users),
            number(&stored)
        ));
    }
    Ok(())
}

struct Rebuild<'a> {
    check: &'a Check<'a>,
    tree: Eip8297,
    comparison: Comparison<'a>,
    firsts: &'a [u8],
}

/// The subtrees of a first byte, and their records on the way to be compared.
struct Zones<'a> {
    comparison: &'a Comparison<'a>,
    builders: ZoneBuilders,
    built: Vec<(Path, Arc<[u8]>)>,
}

impl Zones<'_> {
    /// Adds a leaf to the zone with this place.
    fn add(&mut self, zone: usize, leaf: LeafUpdate) -> Result<(), StateError> {
        let built = &mut self.built;
        let mut sink = |path, record| built.push((path, record));
        let added = self.builders[zone].add(leaf.key, leaf.value, &mut sink);
        added.map_err(failed)?;
        match self.built.len() >= Comparison::TOGETHER {
            true => self.comparison.compare(&mut self.built),
            false => Ok(()),
        }
    }

    fn finish(mut self) -> Result<Bytes, StateError> {
        let built = &mut self.built;
        let mut sink = |path, record| built.push((path, record));
        let part = finish_zones(self.builders, &mut sink)?;
        self.comparison.compare(&mut self.built)?;
        Ok(part.into())
    }
}

impl<'a> Rebuild<'a> {
    fn new(check: &'a Check<'a>, tree: Eip8297, firsts: &'a [u8]) -> Result<Self, StateError> {
        // The records are compared as they are packed.
        let comparison = Comparison::new(check);
        let packing = comparison.packing()?.unwrap_or(tree.packing);
        Ok(Self {
            check,
            tree: Eip8297 { packing, ..tree },
            comparison,
            firsts,
        })
    }

    fn zones(&self) -> Zones<'_> {
        Zones {
            comparison: &self.comparison,
            builders: zone_builders(self.tree),
            built: Vec::new(),
        }
    }

    fn subtrees(&self) -> Result<Vec<Bytes>, StateError> {
        // The places of the zones.
        let [header, code, storage] = [0, 1, 2];
        let (view, embedding) = (self.check.view, self.tree.embedding());
        let mut zones: Vec<Zones<'_>> = self.firsts.iter().map(|_| self.zones()).collect();
        // A record that cannot be read is reported once, when every record is read.
        let pass = |_: StateError| Ok(());
        let mut add = |leaf: LeafUpdate| {
            let place = self.firsts.binary_search(&leaf.key.packed()[1]);
            place.map_or(Ok(()), |place| zones[place].add(code, leaf))
        };
        code_leaves_in_order(view, embedding, self.firsts, &pass, &mut add)?;
        let mut rest = zones.into_iter();
        let mut subtrees = Vec::with_capacity(self.firsts.len());
        for firsts in first_bytes(view, self.firsts, self.tree.leaf_bytes)? {
            let leaves = OrderedLeaves::read(view, embedding, &firsts, &pass)?;
            let of_group: Vec<_> = firsts.into_iter().zip(&mut rest).collect();
            let of_group = of_group.into_par_iter().map(|(first, mut zones)| {
                for leaf in leaves.take_header(first) {
                    zones.add(header, leaf)?;
                }
                for leaf in leaves.take_storage(first) {
                    zones.add(storage, leaf)?;
                }
                self.check.part_done();
                zones.finish()
            });
            let of_group: Result<Vec<Bytes>, StateError> = of_group.collect();
            subtrees.extend(of_group?);
        }
        Ok(subtrees)
    }

    /// Reads every account, slot and number of users of a code. Returns whether all could be read, and how many accounts
    /// have each code.
    fn every_record(&self) -> Result<(bool, BTreeMap<B256, u64>), StateError> {
        let check = self.check;
        let all_readable = AtomicBool::new(true);
        let unreadable = |error: StateError| {
            all_readable.store(false, Ordering::Relaxed);
            self.fault(error.to_string());
        };
        for (table, name) in [
            (ACCOUNTS, "accounts"),
            (SLOTS, "slots"),
            (CODE_USERS, "code users"),
        ] {
            if self.firsts.contains(&0) && check.view.get(table, &[])?.is_some() {
                unreadable(corrupt(name, &[], "a key is empty"));
            }
        }
        let codes = self.codes(&unreadable)?;
        let users: Mutex<BTreeMap<B256, u64>> = Mutex::default();
        self.firsts.par_iter().try_for_each(|first| {
            let mut own: BTreeMap<B256, u64> = BTreeMap::new();
            for entry in check.scan(ACCOUNTS, &[*first], &[])? {
                let (key, bytes) = entry?;
                check.count(&check.counts.accounts);
                let record = account_key(&key).and_then(|address| {
                    let record = AccountRecord::decode(&key, &bytes)?;
                    record.fields(address)?;
                    Ok(record)
                });
                match record {
                    Ok(record) => {
                        if let Some(code) = record.code_with_leaves() {
                            *own.entry(code).or_default() += 1;
                        }
                        self.account_code(&key, &record, &codes)?;
                    }
                    Err(error @ StateError::NoRoom { .. }) => self.fault(error.to_string()),
                    Err(error) => unreadable(error),
                }
            }
            for entry in check.scan(SLOTS, &[*first], &[])? {
                let (key, bytes) = entry?;
                check.count(&check.counts.slots);
                let slot = slot_name(&key).and_then(|_| decode_slot(&key, &bytes));
                slot.map_or_else(unreadable, drop);
            }
            let mut users = users.lock().unwrap_or_else(PoisonError::into_inner);
            own.into_iter()
                .for_each(|(code, more)| *users.entry(code).or_default() += more);
            Ok::<(), StateError>(())
        })?;
        let users = users.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((all_readable.into_inner(), users))
    }

    /// The codes that have users, and what they are. A record of another part that cannot be read is passed over.
    fn codes(&self, unreadable: &dyn Fn(StateError)) -> Result<BTreeMap<B256, Code>, StateError> {
        let mut codes = BTreeMap::new();
        for first in 0..=u8::MAX {
            let is_own = self.firsts.contains(&first);
            let entries = match is_own {
                true => self.check.scan(CODE_USERS, &[first], &[])?,
                false => self.check.view.scan(CODE_USERS, &[first], &[])?,
            };
            for entry in entries {
                let (key, bytes) = entry?;
                let found = records::code_key(&key).and_then(|hash| {
                    records::decode_users(&key, &bytes)?;
                    Ok(hash)
                });
                match found {
                    Ok(hash) => codes.extend(self.code(hash)?.map(|code| (hash, code))),
                    Err(error) if is_own => unreadable(error),
                    Err(_) => {}
                }
            }
        }
        Ok(codes)
    }

    /// What a code is; `None` if it is missing.
    fn code(&self, hash: B256) -> Result<Option<Code>, StateError> {
        match stored_code(self.check.view, hash) {
            Ok(code) => Ok(Code::of(&code).ok()),
            Err(StateError::View(ReadError::MissingCode(_))) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Compares what an account's record says of its code with the code.
    fn account_code(
        &self,
        key: &[u8],
        record: &AccountRecord,
        codes: &BTreeMap<B256, Code>,
    ) -> Result<(), StateError> {
        let (hash, account) = (record.account.code_hash, hex::encode(key));
        if hash == KECCAK256_EMPTY {
            return Ok(());
        }
        if !self.check.has_code(hash)? {
            self.fault(format!("account {account}: code {hash} is missing"));
            return Ok(());
        }
        let agrees = match record.code {
            Code::Delegation(to) => keccak256(delegation_code(to)) == hash,
            code => codes.get(&hash) == Some(&code),
        };
        if !agrees {
            self.fault(format!(
                "account {account}: its record says of code {hash} what the code is not"
            ));
        }
        Ok(())
    }

    fn fault(&self, fault: String) {
        self.check.tell_fault(fault);
    }
}
